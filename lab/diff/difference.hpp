// What changed between two of one kind: peaks of snapshots, results, models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "models/workload_model.hpp"
#include "recordings/snapshot/peak_attribution.hpp"

namespace vramlab {

/// What one frame, one size class or one law of sizes holds in both.
struct GrowthRow {
  std::string name;
  Bytes a = 0;  ///< bytes as requested
  Bytes b = 0;
  std::uint64_t count_a = 0;  ///< blocks, of models tensors
  std::uint64_t count_b = 0;

  [[nodiscard]] std::int64_t growth() const {
    return static_cast<std::int64_t>(b) - static_cast<std::int64_t>(a);
  }
  /// Adds what another row holds.
  void add(const GrowthRow& row);
};

/// Two snapshots at their peaks. The growths of a list, and that of `rest`, add up to that of `reserved`.
struct PeakDifference {
  int device = 0;
  PeakAttribution a;
  PeakAttribution b;
  std::vector<GrowthRow> by_group;       ///< by where it was allocated; largest change first
  std::vector<GrowthRow> by_size_class;  ///< smallest class first
};

/// Every device of either.
std::vector<PeakDifference> compare_peaks(const TorchSnapshot& a, const TorchSnapshot& b,
                                          const Grouping& grouping = {});

/// One number of a policy in both results; empty where one lacks it.
struct ValueDifference {
  std::string name;
  std::optional<double> a;
  std::optional<double> b;

  [[nodiscard]] bool differs() const { return a != b; }
};

struct PolicyDifference {
  std::string label;
  bool in_a = true;
  bool in_b = true;
  std::vector<ValueDifference> metrics;
  std::vector<ValueDifference> final_point;
  std::size_t adjustments_a = 0;
  std::size_t adjustments_b = 0;
  std::optional<std::size_t> first_other_adjustment;  ///< place of the first that differs, from 0
  Json adjustment_a;                                  ///< at that place; null = it has none there
  Json adjustment_b;

  [[nodiscard]] bool differs() const;
};

struct ResultDifference {
  std::string scenario;
  std::vector<PolicyDifference> policies;
};

/// Two files of `compare --json` or `run --json`, of one scenario or several; scenarios and policies are
/// matched by name. Throws InputError naming the file that is none, or both if they have no scenario in
/// common.
std::vector<ResultDifference> compare_results(const Json& a, const std::string& name_a, const Json& b,
                                              const std::string& name_b);

// What grew between two models: the memory of a step by the laws of its sizes. A law is the text of a form
// ("64 + 4*batch*seq"), or one of the words in brackets for what has none of its own.

/// Two lists of which each adds up to its total; largest change first.
struct ModelDifference {
  std::vector<GrowthRow> peak;  ///< what lives when a settled step holds most
  std::vector<GrowthRow> step;  ///< everything that a settled step allocates
  GrowthRow peak_total;
  GrowthRow step_total;
};

/// Compares `a` at `at_a` with `b` at `at_b`. Throws InputError where a size leaves what 62 bits hold.
ModelDifference compare_models(const WorkloadModel& a, const Point& at_a, const WorkloadModel& b,
                               const Point& at_b);

}  // namespace vramlab
