#include "policies/memory_aware_sampler.hpp"

namespace vramlab {
namespace {

std::vector<Option<SamplerOptions>> rows() {
  using O = SamplerOptions;
  std::vector<Option<O>> rows{
      {"predictor", choice_of<&O::predictor>({"table", "collapsing", "regression"}), "", 0, 0,
       "how a batch's memory is predicted: the published table, the original's form of it, or learnt"},
      {"safety_quantile", &O::safety_quantile, "of batches", 0.5, 0.9999,
       "with regression: the share of batches that the prediction held against the budget should cover"},
      {"batch_size", &O::batch_size, "samples", 1, 1e6, "samples of a batch at most"},
      {"max_memory_mb", &O::max_memory_mb, "MiB", 0, 1e7,
       "budget; 0 = what the card offers, less the safety margin"},
      {"task_diversity_weight", &O::task_diversity_weight, "", 0, 1,
       "w of (1 - w) · fit + w · diversity, the priority of a candidate"},
      {"padding_weight", &O::padding_weight, "", 0, 100,
       "times the batch's share of padding is taken from it"},
      {"window", &O::window, "samples", 1, 1e7, "the oldest so many waiting samples are candidates"},
      {"growth", &O::growth, "factor", 0, 100,
       "a batch has at most so many times the samples of the largest that ran; 0 = no such limit"},
      {"over_budget", choice_of<&O::over_budget>({"never", "minus-one"}), "", 0, 0,
       "a candidate over budget is never taken, or has priority -1 and may be, as in the original"},
      {"accumulation", choice_of<&O::accumulation>({"exact", "adaptive"}), "", 0, 0,
       "the effective batch is exactly the target, or drifts with memory use as in the original"},
  };
  for (auto& row : guardian_rows<O>()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

const OptionTable<SamplerOptions>& sampler_option_table() {
  static const OptionTable<SamplerOptions> table{.owner = "memory-aware-sampler", .options = rows()};
  return table;
}

std::vector<PolicyProfile> sampler_profiles() {
  const OptionMap published{{"predictor", "table", {}},
                            {"batch_size", std::int64_t{16}, {}},
                            {"task_diversity_weight", 0.5, {}},
                            {"padding_weight", 0.0, {}},
                            {"growth", 0.0, {}}};
  // predictions are so close that at the original's 0.10 idle memory between blocks decides who fails
  const OptionMap learnt{{"safety_margin", 0.15, {}}};
  return {
      {"faithful",
       "the original with its defects: predictions that collapse, candidates over budget taken, an effective "
       "batch that drifts",
       overlay(published, {{"predictor", "collapsing", {}},
                           {"max_memory_mb", std::int64_t{30000}, {}},
                           {"over_budget", "minus-one", {}},
                           {"accumulation", "adaptive", {}},
                           {"keep_limit", true, {}}})},
      {"table", "the original's table and constants, with a budget that binds", published},
      {"mixed", "learns what batches take, and mixes the tasks in every batch",
       overlay(learnt, {{"task_diversity_weight", 0.5, {}}, {"padding_weight", 0.0, {}}})},
      {"dense", "learns what batches take, and puts samples of similar length together", learnt},
  };
}

}  // namespace vramlab
