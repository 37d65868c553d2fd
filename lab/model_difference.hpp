// What grew between two models: the memory of a step by the laws of its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload_model.hpp"

namespace vramlab {

/// Everything of one law in both models. A law is the text of a form ("64 + 4*batch*seq"), or one of the
/// words in brackets for what has none of its own.
struct LawDifference {
  std::string law;
  Bytes a = 0;  ///< bytes as requested
  Bytes b = 0;
  std::uint64_t count_a = 0;  ///< allocations
  std::uint64_t count_b = 0;

  [[nodiscard]] std::int64_t growth() const {
    return static_cast<std::int64_t>(b) - static_cast<std::int64_t>(a);
  }
};

/// Two lists of which each adds up to its total; largest change first.
struct ModelDifference {
  std::vector<LawDifference> peak;  ///< what lives when a settled step holds most
  std::vector<LawDifference> step;  ///< everything that a settled step allocates
  LawDifference peak_total;
  LawDifference step_total;
};

/// Compares `a` at `at_a` with `b` at `at_b`. Throws InputError where a size leaves what 62 bits hold.
ModelDifference compare_models(const WorkloadModel& a, const Point& at_a, const WorkloadModel& b,
                               const Point& at_b);

}  // namespace vramlab
