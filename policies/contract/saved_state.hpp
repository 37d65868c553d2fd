// What a policy saves and goes on from, exactly: as text (tuners) or as numbers (composers).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "models/sample.hpp"

namespace vramlab {

/// Visits `part`: what has a `visit` of its own by that, anything else as a value of `state`.
template <class State, class Part>
void visit_part(State& state, Part& part) {
  if constexpr (requires { part.visit(state); }) {
    part.visit(state);
  } else {
    state.value(part);
  }
}

/// Writes what it visits.
class StateTextWriter {
 public:
  explicit StateTextWriter(std::string_view head) : text_(head) {}

  template <class... Parts>
  void operator()(Parts&... parts) {
    (visit_part(*this, parts), ...);
  }
  void value(double number);
  void value(std::int64_t number) { text_ += ' ' + std::to_string(number); }
  void value(std::uint64_t number) { text_ += ' ' + std::to_string(number); }
  void value(bool flag) { value(std::int64_t{flag}); }
  void count(std::size_t number, std::size_t /*most*/) { value(std::uint64_t{number}); }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Reads what it visits from a text that a StateTextWriter wrote. Every call throws InputError where the text
/// does not have what is wanted: it is damaged, or that of another kind of tuner.
class StateTextReader {
 public:
  StateTextReader(std::string_view head, std::string_view text);

  template <class... Parts>
  void operator()(Parts&... parts) {
    (visit_part(*this, parts), ...);
  }
  void value(double& number);  ///< finite
  void value(std::int64_t& number);
  void value(std::uint64_t& number);
  void value(bool& flag);
  void count(std::size_t& number, std::size_t most);

  /// Call when everything was visited: throws InputError if text is left.
  void finish() const;

 private:
  std::string_view word();

  std::string_view rest_;
};

// Reads back what a policy saved as numbers, and trusts none of it: a state can come from a file.

/// Takes numbers from the front. Every call throws InputError where the state does not hold what is asked.
class StateReader {
 public:
  explicit StateReader(std::span<const double> state) : state_(state) {}

  double number() {
    if (state_.empty()) refuse();
    const double value = state_.front();
    state_ = state_.subspan(1);
    return value;
  }

  /// A whole number from 0 to 2^53.
  std::uint64_t count() {
    const double value = number();
    if (!(value >= 0 && value <= 9007199254740992.0) || value != std::floor(value)) refuse();
    return static_cast<std::uint64_t>(value);
  }

  /// A count of things of which each takes at least one number.
  std::size_t size() {
    const std::uint64_t value = count();
    if (value > state_.size()) refuse();
    return static_cast<std::size_t>(value);
  }

  std::vector<SampleId> samples() {
    std::vector<SampleId> samples(size());
    for (SampleId& sample : samples) {
      const std::uint64_t value = count();
      if (value > UINT32_MAX) refuse();
      sample = static_cast<SampleId>(value);
    }
    return samples;
  }

  [[nodiscard]] std::span<const double> rest() const { return state_; }

 private:
  [[noreturn]] static void refuse() {
    throw InputError("", "the state to go on from is not one of this policy with these options.");
  }

  std::span<const double> state_;
};

/// Throws InputError unless `state` has `expected` numbers.
void require_state(std::span<const double> state, std::size_t expected);

}  // namespace vramlab
