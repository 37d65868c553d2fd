// Where no MPI was found when the program was built.
#include "cli/ranks.hpp"
#include "core/error.hpp"

namespace vramlab {

std::unique_ptr<RankJob> join_job() {
  throw InputError(
      "mpirun",
      "this build of vramlab has no MPI. Build it where libopenmpi-dev is installed, or make parts "
      "with --shard (docs/scale.md).");
}

}  // namespace vramlab
