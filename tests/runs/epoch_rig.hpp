// What the tests of epochs share: a card, samples of given lengths, a composer by profile and options, and a
// listener that keeps what was trained on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/linear.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/epoch_loop.hpp"

namespace vramlab {

/// Samples of one task whose rows have these lengths.
inline std::vector<Sample> samples_of(const std::vector<std::int64_t>& lengths) {
  std::vector<Sample> samples;
  for (const std::int64_t length : lengths) samples.push_back({.length = length, .tokens = length});
  return samples;
}

inline std::unique_ptr<Composer> composer_of(const std::string& use, const std::string& profile,
                                             const OptionMap& more = {}) {
  return builtin_policies()->composers.make({use, profile, more, "/policies/0"}, {"T1"});
}

/// A card of `total` bytes without a context, on which `model` trains on `samples`, in their order.
inline EpochSetup epochs_of(const BatchModel& model, std::vector<Sample> samples, Bytes total) {
  EpochSetup setup;
  setup.model = &model;
  setup.tasks = {"T1"};
  setup.samples = std::move(samples);
  setup.shuffle = false;
  setup.target_batch = 1;
  setup.process = {.card_total = total, .context_bytes = 0};
  setup.loss.weights = {1};
  return setup;
}

/// Keeps which samples each batch had, and how it ended.
class KeptBatches : public BatchListener {
 public:
  struct Batch {
    std::int64_t epoch = 0;
    std::vector<SampleId> samples;
    StepResult result = StepResult::ok;
    PredictedMemory predicted;
    bool oversize = false;
    std::int64_t effective = 0;
    bool checkpointing = false;
  };
  void batch_ends(const BatchRecord& batch) override {
    batches.push_back({batch.epoch,
                       {batch.samples.begin(), batch.samples.end()},
                       batch.result,
                       batch.predicted,
                       batch.oversize,
                       batch.effective,
                       batch.checkpointing});
  }
  void epoch_ends(std::int64_t, const EpochTotals& totals) override { epochs.push_back(totals); }

  [[nodiscard]] std::vector<std::size_t> sizes(StepResult result) const {
    std::vector<std::size_t> all;
    for (const Batch& batch : batches) {
      if (batch.result == result) all.push_back(batch.samples.size());
    }
    return all;
  }

  std::vector<Batch> batches;
  std::vector<EpochTotals> epochs;
};

}  // namespace vramlab
