// The MPI job that the program may be one rank of: rank 0 hands out the tasks of a verb, and all perform
// them.
#pragma once

#include <memory>

#include "cli/verb.hpp"
#include "lab/tasks.hpp"

namespace vramlab {

/// The place of this process in its job, as mpirun of Open MPI says it in the environment.
struct RankPlace {
  int rank = 0;
  int size = 1;  ///< 1 = the program was started alone
};
RankPlace rank_place();

/// One rank of a job. Only rank 0 reads and writes files of results and says anything.
class RankJob {
 public:
  virtual ~RankJob() = default;

  /// Every rank makes the same tasks from the same files; only their numbers and results travel. A rank that
  /// has other tasks than rank 0, or cannot make them, is an InputError there that names it.
  [[nodiscard]] virtual std::shared_ptr<Workers> workers() = 0;

  /// Ends this rank's part. Rank 0 says the error, if there is one, and ends the others: those under way at
  /// once, unless all went well. Returns the exit code of this process.
  virtual int end(const Ending& ending) = 0;
};

/// Throws InputError if this build has no MPI.
std::unique_ptr<RankJob> join_job();

}  // namespace vramlab
