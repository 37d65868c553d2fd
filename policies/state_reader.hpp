// Reads back what a policy saved as numbers, and trusts none of it: a state can come from a file.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/sample.hpp"
#include "sim/core/error.hpp"

namespace vramlab {

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

}  // namespace vramlab
