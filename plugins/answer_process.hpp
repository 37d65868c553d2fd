// A process of its own for what policies of plugins are asked: a copy of the program that makes the same run.
// Equal runs ask equal questions, so that only the answers need to cross.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "plugins/answer_bytes.hpp"
#include "policies/contract/policy.hpp"

namespace vramlab {

/// The program and its copy, seen from either of them. The copy asks the policies and sends what they answer;
/// the program takes the answers where it would ask. The copy ends with the last policy of its run, and can
/// neither print nor write to what was open.
class AnswerProcess {
 public:
  /// Makes the copy: from here on both run. `limit`: how long the program waits for an answer. No other
  /// thread may run. Throws InputError where the system makes no process.
  explicit AnswerProcess(std::chrono::seconds limit);
  /// In the program: ends the copy. In the copy: ends it.
  ~AnswerProcess();
  AnswerProcess(const AnswerProcess&) = delete;
  AnswerProcess& operator=(const AnswerProcess&) = delete;

  [[nodiscard]] bool is_copy() const { return child_ == 0; }
  /// A number for one more policy, the same in both.
  std::uint32_t add_policy() { return policies_++; }

  /// In the copy.
  void send(const std::string& message);
  /// In the program: the next message, for the policy `asked`. Empty if the copy is gone or took too long:
  /// `end()` then says what `asked`, or whoever was asked when it went, did.
  std::optional<std::string> receive(const std::string& asked);
  /// What is sent is not what was asked for: the copy is no copy any more.
  void give_up(const std::string& asked, const std::string& did);
  [[nodiscard]] std::string end(const std::string& asked) const;

 private:
  bool read_more(std::chrono::steady_clock::time_point until);
  std::string take(std::size_t size);

  std::chrono::seconds limit_;
  int child_ = 0;  ///< its process; 0 = this is the copy, below 0 = it is gone
  int pipe_ = -1;
  std::string read_;  ///< from the pipe, from `at_` on not yet taken
  std::size_t at_ = 0;
  std::uint32_t policies_ = 0;
  std::string ender_;  ///< the policy that was asked when the copy went
  std::string did_;    ///< and what it did
};

/// The process of the run under way, as long as one of its policies lives.
class RunProcess {
 public:
  explicit RunProcess(std::chrono::seconds limit) : limit_(limit) {}
  std::shared_ptr<AnswerProcess> join() {
    auto process = now_.lock();
    if (process == nullptr) now_ = process = std::make_shared<AnswerProcess>(limit_);
    return process;
  }

 private:
  std::chrono::seconds limit_;
  std::weak_ptr<AnswerProcess> now_;
};

/// Calls of one policy, in both processes.
class RemoteCalls {
 public:
  RemoteCalls(std::string policy, std::shared_ptr<AnswerProcess> process)
      : policy_(std::move(policy)), process_(std::move(process)), number_(process_->add_policy()) {}

  /// In the copy: does `work`, which asks the policy, and sends what came of it. In the program: takes that.
  /// `call` and `moment` must be the same in both. Throws PolicyFault and InputError as `work` did, and
  /// PolicyFault where the copy is gone.
  template <class Result, class Work>
  Result ask(char call, std::int64_t moment, const Work& work) {
    if (process_->is_copy()) return answered<Result>(call, moment, work);
    return taken<Result>(call, moment);
  }

  /// The same for calls that may not fail; `otherwise` where the copy is gone, and the next ask() says it.
  template <class Result, class Work>
  Result ask_or(Result otherwise, char call, const Work& work) {
    try {
      return ask<Result>(call, 0, work);
    } catch (const PolicyFault&) {
      return otherwise;
    }
  }

  [[nodiscard]] bool is_copy() const { return process_->is_copy(); }

 private:
  enum class Outcome : std::uint8_t { answer, fault, refusal };

  template <class... T>
  void send(char call, std::int64_t moment, Outcome outcome, const T&... what) {
    AnswerWriter bytes;
    bytes(call, number_, moment, outcome, what...);
    process_->send(bytes.bytes());
  }

  template <class Result, class Work>
  Result answered(char call, std::int64_t moment, const Work& work) {
    try {
      Result result = work();
      send(call, moment, Outcome::answer, result);
      return result;
    } catch (const PolicyFault& fault) {
      send(call, moment, Outcome::fault, std::string{fault.what()});
      throw;
    } catch (const InputError& error) {
      send(call, moment, Outcome::refusal, error.problems());
      throw;
    }
  }

  template <class Result>
  Result taken(char call, std::int64_t moment) {
    const std::optional<std::string> message = process_->receive(policy_);
    if (!message) throw PolicyFault(process_->end(policy_));
    try {
      return read<Result>(call, moment, *message);
    } catch (const std::out_of_range&) {
      process_->give_up(policy_, "spoilt the process that it runs in: it sent what is no answer");
    }
    throw PolicyFault(process_->end(policy_));
  }

  template <class Result>
  Result read(char call, std::int64_t moment, const std::string& message) const {
    AnswerReader bytes{message};
    char called = 0;
    std::uint32_t number = 0;
    std::int64_t when = 0;
    Outcome outcome{};
    bytes(called, number, when, outcome);
    if (called != call || number != number_ || when != moment) throw std::out_of_range("another question");
    if (outcome == Outcome::answer) return all_of<Result>(bytes);
    if (outcome == Outcome::fault) throw PolicyFault(all_of<std::string>(bytes));
    throw InputError(all_of<std::vector<Problem>>(bytes));
  }

  template <class Value>
  static Value all_of(AnswerReader& bytes) {
    Value value{};
    bytes(value);
    if (!bytes.at_end()) throw std::out_of_range("too many bytes");
    return value;
  }

  std::string policy_;
  std::shared_ptr<AnswerProcess> process_;
  std::uint32_t number_;
};

}  // namespace vramlab
