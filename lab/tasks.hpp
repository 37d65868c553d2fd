// Work that falls apart into tasks which do not know of each other, and where they are done.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {

/// One task. Its result is JSON, and the same wherever and whenever it is made.
struct Task {
  std::string name;               ///< for people: "ratchet, seed 3"
  std::string key;                ///< what the result depends on (ResultKeys)
  double length = 0;              ///< how long it takes beside others of its kind; 0 = not known
  std::function<Json()> perform;  ///< on any thread; throws InputError for what only a run shows
};

/// Who waits for the results of tasks.
struct TaskClient {
  /// Each result as its task ends, one call at a time; what it throws ends the work.
  std::function<void(std::size_t task, const Json& result)> take;
  const std::atomic<bool>* stop = nullptr;  ///< when it turns true, tasks that have not begun are left out
  std::function<void()> stopped{};          ///< once, when no more tasks begin because of it
};

/// Where tasks are done: on threads of this process, or on the ranks of an MPI job (cli/ranks.hpp).
class Workers {
 public:
  virtual ~Workers() = default;

  /// Does those of `tasks` that `wanted` names, the longest first. What a task throws is thrown again when
  /// all are done; of several, that of the lowest number.
  virtual void perform(const std::vector<Task>& tasks, std::vector<std::size_t> wanted,
                       const TaskClient& client) = 0;

  /// False in a process that does what another one hands out to it: nobody waits for results there, and
  /// perform() returns when there is nothing left to do.
  [[nodiscard]] virtual bool hands_out() const { return true; }
};

/// Threads of this process.
class Threads : public Workers {
 public:
  explicit Threads(unsigned threads) : threads_(threads) {}
  void perform(const std::vector<Task>& tasks, std::vector<std::size_t> wanted,
               const TaskClient& client) override;

 private:
  unsigned threads_;
};

/// `wanted` with the longest of `tasks` first, those of unknown length before them; those of one length keep
/// their order.
std::vector<std::size_t> longest_first(const std::vector<Task>& tasks, std::vector<std::size_t> wanted);

/// Does all of `tasks` on up to `threads` threads. Returns their results in the order of the tasks.
std::vector<Json> perform_all(const std::vector<Task>& tasks, unsigned threads);

/// Steps or jobs times policies, as far as the file says them; 0 if it does not.
double length_of(const ScenarioDocument& scenario);

/// What a task that runs policies comes to, and the way back: [{"label", "metrics"}].
Json labelled_json(const std::vector<LabelledFigures>& results);
std::vector<LabelledFigures> labelled_from(const Json& json);

}  // namespace vramlab
