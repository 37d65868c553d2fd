// What stands between the program and one policy of a plugin: whatever the policy does wrong becomes a
// PolicyFault, which ends that policy's run and no other.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "plugins/heap_count.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// A shared library, kept loaded by whoever holds one of these.
using PluginCode = std::shared_ptr<const void>;

/// A policy's state may grow by this much in all of its answers together.
inline constexpr Bytes kMostPolicyState = Bytes{1} << 30;

/// A reason may be this long (bytes), a log of one answer have this many lines, a saved state this many
/// numbers or bytes of text.
inline constexpr std::size_t kLongestReason = 4096;
inline constexpr std::size_t kMostLogLines = 1000;
inline constexpr std::size_t kMostSavedNumbers = std::size_t{1} << 23;
inline constexpr std::size_t kLongestSavedText = std::size_t{1} << 26;

/// Calls into one policy. After a fault every call throws it again.
class Guard {
 public:
  /// `policy` is the policy's name, for reasons.
  Guard(std::string policy, PluginCode code) : code_(std::move(code)), policy_(std::move(policy)) {}

  /// Does `work`, which calls the policy. Throws PolicyFault if it throws, or has taken too much memory.
  template <class Work>
  auto call(const Work& work) {
    HeapCount count;
    if constexpr (std::is_void_v<decltype(work())>) {
      call_unwatched(work);
      count_growth(count.bytes());
    } else {
      auto result = ours(call_unwatched(work));
      count_growth(count.bytes());
      return result;
    }
  }

  /// The same where the policy reads its options or a saved state: an InputError passes, as what it says of
  /// those.
  template <class Work>
  auto read(const Work& work) -> decltype(work()) {
    using Result = decltype(work());
    std::optional<InputError> refusal;  // a copy of our own: the plugin may be gone when it is looked at
    const auto heard = [&]() -> Result {
      try {
        return work();
      } catch (const InputError& error) {
        if (error.problems().empty()) fail("refused without saying what");
        refusal.emplace(error.problems());
        return Result();
      }
    };
    if constexpr (std::is_void_v<Result>) {
      call(heard);
      if (refusal) throw InputError(refusal->problems());
    } else {
      Result result = call(heard);
      if (refusal) throw InputError(refusal->problems());
      return result;
    }
  }

  /// The same without a look at memory, for what is called too often for that.
  template <class Work>
  auto call_unwatched(const Work& work) -> decltype(work()) {
    if (fault_) throw PolicyFault(*fault_);
    try {
      return work();
    } catch (const PolicyFault& fault) {
      if (fault_) throw;  // one of our own, from `work`
      fail(std::string("failed: ") + fault.what());
    } catch (const std::bad_alloc&) {
      fail("ran out of the program's memory");
    } catch (const std::exception& error) {
      fail(std::string("failed: ") + error.what());
    } catch (...) {
      fail("failed, and threw what is not a std::exception");
    }
  }

  /// The same where nobody waits for a fault: it is kept for the next call, and `otherwise` is the result.
  template <class Result, class Work>
  Result call_or(Result otherwise, const Work& work) {
    try {
      return call(work);
    } catch (const std::exception& error) {
      if (!fault_) fault_ = error.what();
      return otherwise;
    }
  }

  /// Throws PolicyFault, now and at every later call: the policy `what`.
  [[noreturn]] void fail(const std::string& what);

  /// Throws PolicyFault where it `did` more than `most`: "saved a state of 9 bytes; 8 are the most".
  void require_at_most(std::size_t most, const char* did, std::size_t found, const char* unit);

  /// Throws PolicyFault for texts that no answer needs, and for one that is not UTF-8.
  void require_short(const std::string& reason, const std::vector<std::string>& log = {});

  [[nodiscard]] bool failed() const { return fault_.has_value(); }

 private:
  void count_growth(std::int64_t bytes);

  /// The same, not counted if it can be copied: an answer is not part of what the policy keeps.
  template <class Result>
  static Result ours(Result result) {
    if constexpr (std::is_copy_constructible_v<Result>) {
      const HeapCount not_counted;
      return Result(std::as_const(result));
    } else {
      return result;
    }
  }

  PluginCode code_;
  std::string policy_;
  Bytes grown_ = 0;  // what it has taken in its calls and not given back
  std::optional<std::string> fault_;
};

/// Adds `added`, the kinds of a plugin whose code is in `code`, to `known`: equal to the plugin's own, but
/// what they make is guarded, and their options are checked against their description before the plugin sees
/// them. A composer without an option `guardian` gets the guardian of batches and its options.
void add_guarded(PolicySet& known, const PolicySet& added, const PluginCode& code);

/// `given` with every value as its description's type has it. Throws InputError with every problem.
OptionMap checked_options(const std::string& policy, const std::vector<Field>& options,
                          const OptionMap& given);

}  // namespace vramlab
