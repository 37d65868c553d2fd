// `memory-aware-sampler`: batches of mixed tasks, filled greedily under a memory budget (P2.2).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "policies/composers/candidate_window.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/contract/composer.hpp"
#include "policies/contract/options.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

enum class PredictorKind : std::uint8_t { table, collapsing, regression };
enum class OverBudget : std::uint8_t { never, minus_one };

struct SamplerOptions : GuardianOptions {
  PredictorKind predictor = PredictorKind::regression;
  double safety_quantile = 0.99;
  std::int64_t batch_size = 256;
  std::int64_t max_memory_mb = 0;
  double task_diversity_weight = 0;
  double padding_weight = 1;
  std::int64_t window = 512;
  double growth = 2;
  OverBudget over_budget = OverBudget::never;
  AccumulationRule::Kind accumulation = AccumulationRule::Kind::exact;
};

const OptionTable<SamplerOptions>& sampler_option_table();
std::vector<PolicyProfile> sampler_profiles();

class MemoryAwareSampler final : public Composer {
 public:
  MemoryAwareSampler(const SamplerOptions& options, const std::vector<std::string>& tasks);

  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override;
  AfterOom told(const BatchOutcome& outcome) override;
  [[nodiscard]] AccumulationRule accumulation() const override {
    return {options_.accumulation, options_.batch_size};
  }
  [[nodiscard]] std::vector<double> save() const override;
  void restore(std::span<const double> state) override;

 private:
  [[nodiscard]] double budget(const MemoryView& memory) const;
  [[nodiscard]] double priority(const BatchShape& batch, const BatchShape& larger, std::uint32_t task,
                                double needed, double budget) const;

  SamplerOptions options_;
  std::unique_ptr<MemoryPredictor> predictor_;
  CandidateWindow window_;
  std::int64_t largest_ = 0;  ///< samples of the largest batch that ran
};

}  // namespace vramlab
