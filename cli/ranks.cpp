#include "cli/ranks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <future>
#include <iostream>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <mpi.h>

#include "core/error.hpp"
#include "lab/scenario/result_keys.hpp"

namespace vramlab {
namespace {

enum Tag : int {
  kReady = 1,  ///< to rank 0: which tasks this rank has
  kOutcome,    ///< to rank 0: a task's number, a space, what it came to
  kFailed,     ///< to rank 0: exit code, a space, the error that ended this rank
  kTask,       ///< from rank 0: a task's number
  kEnd         ///< from rank 0: there is nothing left to do
};

struct Message {
  int rank = 0;
  int tag = 0;
  std::string text;
};

void send(int rank, Tag tag, const std::string& text) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, rank, tag, MPI_COMM_WORLD);
}

std::optional<Message> received() {
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  Message message{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(message.text.data(), size, MPI_CHAR, message.rank, message.tag, MPI_COMM_WORLD, &status);
  return message;
}

// MPI's own waiting takes a whole core, which another rank may be running on.
void wait_a_little() { std::this_thread::sleep_for(std::chrono::microseconds{100}); }

// The number before the first space, and what stands behind it.
std::pair<std::size_t, std::string> numbered(const std::string& text) {
  const std::size_t space = text.find(' ');
  return {std::stoull(text.substr(0, space)), text.substr(std::min(space, text.size() - 1) + 1)};
}

// What tasks these are, and on which machine.
std::string tasks_and_machine(const std::vector<Task>& tasks) {
  std::uint64_t hash = text_hash("");
  for (const Task& task : tasks) hash = text_hash(task.key + '\n', hash);
  std::string name(MPI_MAX_PROCESSOR_NAME, '\0');
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  return hash_text(hash) + ' ' + name.substr(0, static_cast<std::size_t>(length));
}

// {"result"}, {"problems"} or {"fault"}, as text.
std::string outcome_of(const Task& task) {
  Json outcome;
  try {
    outcome["result"] = task.perform();
  } catch (const InputError& error) {
    for (const Problem& one : error.problems()) outcome["problems"].push_back({one.where, one.what});
  } catch (const std::exception& error) {
    outcome["fault"] = error.what();
  }
  return outcome.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The tasks as rank 0 hands them out. One at a time is its own, on a thread beside the messages.
class HandedOut {
 public:
  HandedOut(const std::vector<Task>& tasks, std::vector<std::size_t> wanted, const TaskClient& client)
      : tasks_(tasks), client_(client), errors_(tasks.size()), own_tasks_(tasks_and_machine(tasks)) {
    for (const std::size_t task : longest_first(tasks, std::move(wanted))) next_.push_back(task);
  }

  void perform() {
    while (!next_.empty() || under_way_ > 0 || own_.valid()) {
      if (client_.stop != nullptr && client_.stop->load()) {
        next_.clear();
        if (client_.stopped) client_.stopped();
        if (own_.valid()) settle_own();
        break;
      }
      if (!step()) wait_a_little();
    }
    for (const std::exception_ptr& error : errors_) {
      if (error) std::rethrow_exception(error);
    }
  }

 private:
  // Whether anything happened.
  bool step() {
    bool moved = false;
    while (const auto message = received()) {
      take(*message);
      moved = true;
    }
    if (own_.valid() && own_.wait_for(std::chrono::seconds{0}) == std::future_status::ready) {
      settle_own();
      moved = true;
    }
    if (!own_.valid() && !next_.empty()) {
      own_task_ = next_.front();
      next_.pop_front();
      own_ = std::async(std::launch::async, outcome_of, std::cref(tasks_[own_task_]));
      moved = true;
    }
    for (; !next_.empty() && !idle_.empty(); next_.pop_front(), idle_.pop_front(), ++under_way_) {
      send(idle_.front(), kTask, std::to_string(next_.front()));
      moved = true;
    }
    return moved;
  }

  void take(const Message& message) {
    if (message.tag == kFailed) {
      const auto [code, error] = numbered(message.text);
      const std::string text = fmt::format("rank {}: {}", message.rank, error);
      if (code == kInternalError) throw InternalError(text);
      throw InputError("", text);
    }
    if (message.tag == kReady) {
      require_same_tasks(message);
    } else {
      --under_way_;
      const auto [task, outcome] = numbered(message.text);
      settle(task, outcome);
    }
    idle_.push_back(message.rank);
  }

  void require_same_tasks(const Message& ready) const {
    const std::size_t hash = own_tasks_.find(' ');
    if (ready.text.substr(0, hash) == own_tasks_.substr(0, hash)) return;
    throw InputError("", fmt::format("rank {} on {} has other files than rank 0 on {}, or another version of "
                                     "the program. All machines must have the same.",
                                     ready.rank, ready.text.substr(hash + 1), own_tasks_.substr(hash + 1)));
  }

  void settle_own() { settle(own_task_, own_.get()); }

  void settle(std::size_t task, const std::string& text) {
    const Json outcome = Json::parse(text);
    if (outcome.contains("result")) return client_.take(task, outcome["result"]);
    if (outcome.contains("fault")) {
      errors_[task] = std::make_exception_ptr(std::runtime_error(outcome["fault"].get<std::string>()));
      return;
    }
    std::vector<Problem> problems;
    for (const Json& one : outcome["problems"]) {
      problems.push_back({one[0].get<std::string>(), one[1].get<std::string>()});
    }
    errors_[task] = std::make_exception_ptr(InputError(std::move(problems)));
  }

  const std::vector<Task>& tasks_;
  const TaskClient& client_;
  std::vector<std::exception_ptr> errors_;  ///< by task
  std::string own_tasks_;
  std::deque<std::size_t> next_;
  std::deque<int> idle_;       ///< ranks
  std::size_t under_way_ = 0;  ///< on other ranks
  std::size_t own_task_ = 0;
  std::future<std::string> own_;
};

class FirstRank : public Workers {
 public:
  void perform(const std::vector<Task>& tasks, std::vector<std::size_t> wanted,
               const TaskClient& client) override {
    HandedOut{tasks, std::move(wanted), client}.perform();
  }
};

class OtherRank : public Workers {
 public:
  void perform(const std::vector<Task>& tasks, std::vector<std::size_t> /*wanted*/,
               const TaskClient& /*client*/) override {
    send(0, kReady, tasks_and_machine(tasks));
    while (const auto task = next_task()) {
      send(0, kOutcome, std::to_string(*task) + ' ' + outcome_of(tasks.at(*task)));
    }
  }
  [[nodiscard]] bool hands_out() const override { return false; }

  /// Until rank 0 has ended the job.
  std::optional<std::size_t> next_task() {
    while (!has_ended_) {
      if (const auto message = received()) {
        if (message->tag == kTask) return std::stoull(message->text);
        has_ended_ = true;
      } else {
        wait_a_little();
      }
    }
    return std::nullopt;
  }

 private:
  bool has_ended_ = false;
};

class MpiJob : public RankJob {
 public:
  MpiJob() {
    int threads = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &place_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place_.size);
    if (place_.rank == 0) {
      workers_ = std::make_shared<FirstRank>();
    } else {
      workers_ = other_ = std::make_shared<OtherRank>();
    }
  }

  [[nodiscard]] std::shared_ptr<Workers> workers() override { return workers_; }

  int end(const Ending& ending) override {
    if (other_) {
      constexpr std::size_t kMost = 2000;  // bytes, which MPI sends off without a receiver
      if (!ending.error.empty()) {
        send(0, kFailed, fmt::format("{} {}", ending.code, ending.error.substr(0, kMost)));
      }
      while (other_->next_task()) {
      }
      MPI_Finalize();
      return kDone;
    }
    std::cerr << ending.error << std::flush;
    std::fflush(stdout);
    if (ending.code > kExpectationFailed) MPI_Abort(MPI_COMM_WORLD, ending.code);
    for (int rank = 1; rank < place_.size; ++rank) send(rank, kEnd, "");
    MPI_Finalize();
    return ending.code;
  }

 private:
  RankPlace place_;
  std::shared_ptr<Workers> workers_;
  std::shared_ptr<OtherRank> other_;  ///< unless this is rank 0
};

}  // namespace

std::unique_ptr<RankJob> join_job() { return std::make_unique<MpiJob>(); }

}  // namespace vramlab
