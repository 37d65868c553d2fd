// `planned-batches`: batches of a size that a user sets, in samples or in tokens, without any look at memory.
#pragma once

#include <deque>
#include <vector>

#include "policies/composers/oom_guardian.hpp"
#include "policies/contract/composer.hpp"
#include "policies/contract/options.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

enum class BatchMeasure : std::uint8_t {
  samples,   ///< their number alone
  tokens,    ///< the sum of their tokens: padding is not counted
  padded,    ///< the longest times their number
  quadratic  ///< the same times the longest over 512
};

enum class BatchOrder : std::uint8_t {
  as_shuffled,    ///< batches are cut from the epoch's order
  by_length,      ///< stretches of it are sorted by length and cut; the batches come in random order
  longest_first,  ///< the whole epoch, sorted by falling length
};

struct PlannedOptions : GuardianOptions {
  BatchMeasure measure = BatchMeasure::samples;
  BatchOrder order = BatchOrder::as_shuffled;
  std::int64_t batch_size = 16;
  std::int64_t max_tokens = 4096;
  std::int64_t stretch = 4096;
  AccumulationRule::Kind accumulation = AccumulationRule::Kind::exact;
};

const OptionTable<PlannedOptions>& planned_option_table();

class PlannedBatches final : public Composer {
 public:
  explicit PlannedBatches(const PlannedOptions& options) : options_(options) {}

  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override;
  AfterOom told(const BatchOutcome&) override { return AfterOom::skip; }
  [[nodiscard]] AccumulationRule accumulation() const override {
    return {options_.accumulation, options_.batch_size};
  }
  [[nodiscard]] std::vector<double> save() const override;
  void restore(std::span<const double> state) override;

 private:
  [[nodiscard]] bool within(const BatchShape& batch) const;
  [[nodiscard]] std::vector<SampleId> cut(const ComposerQuestion& question,
                                          std::span<const SampleId> order) const;
  void plan(const ComposerQuestion& question);

  PlannedOptions options_;
  std::deque<std::vector<SampleId>> planned_;
};

}  // namespace vramlab
