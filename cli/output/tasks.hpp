// The tasks of a verb: where they are done, how far they have come, and the file that keeps what is done.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/tasks.hpp"

namespace vramlab {

/// Adds -j, --results and --resume.
void add_task_options(Options& options);

/// The ranks of the MPI job that the program is one of, else -j threads of this process. Throws InputError
/// for -j in such a job.
std::shared_ptr<Workers> chosen_workers(const Arguments& arguments, const Output& output);

/// Threads for what every process does for itself: -j, and one in an MPI job.
unsigned own_threads(const Arguments& arguments, const Output& output);

/// "Stopped after 3 of 12 files. …": what was finished, where it is, and how to go on.
std::string stopped_text(std::size_t done, std::size_t all, const std::string& what, const std::string& file);

/// What became of tasks.
struct TaskResults {
  std::vector<std::optional<Json>> results;  ///< by task
  std::size_t before = 0;                    ///< of them from the file
  bool shows = true;  ///< false where another process waits for the results: the verb has nothing to say

  /// Empty unless all are there.
  [[nodiscard]] std::vector<Json> all() const;
};

/// Does `tasks` ("files", "runs") with progress until Ctrl-C, which is then said, and keeps each in the file
/// of
/// --results as it ends; those that the file has are not done again. At the end the file is put into their
/// order, so that it is the same bytes however often the work was broken off. Throws InputError if another
/// program writes the file or it has what is not of these tasks, and what a task throws; the others are kept.
TaskResults perform_tasks(const std::vector<Task>& tasks, const std::string& what, const Arguments& arguments,
                          Output& output);

}  // namespace vramlab
