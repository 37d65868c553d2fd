// `guardian`: looks at a batch before it runs, and cuts it to pieces when memory ran out.
#pragma once

#include <deque>
#include <limits>
#include <memory>

#include "policies/contract/composer.hpp"
#include "policies/contract/options.hpp"

namespace vramlab {

struct GuardianOptions {
  bool guardian = true;
  double safety_margin = 0.10;  ///< share of the memory kept free
  std::int64_t halvings = 3;
  bool keep_limit = false;
  bool reset_at_epoch_end = true;
  bool checkpointing = false;
};

/// The rows of these options, for the table of a composer whose options are derived from them.
template <class Options>
std::vector<Row<Options>> guardian_rows() {
  using O = Options;
  return {
      {"guardian", &O::guardian, "", 0, 0, "look at each batch before it runs, and split one that fails"},
      {"safety_margin", &O::safety_margin, "of the memory", 0, 0.9,
       "kept free: allocated + predicted must not exceed the rest"},
      {"halvings", &O::halvings, "", 0, 20, "so often a failing batch is halved before the run ends"},
      {"keep_limit", &O::keep_limit, "", 0, 0, "after an OOM no batch is larger than the half of that one"},
      {"reset_at_epoch_end", &O::reset_at_epoch_end, "", 0, 0, "that limit ends with the epoch"},
      {"checkpointing", &O::checkpointing, "", 0, 0,
       "a piece that still fails is run with activation checkpointing, where the workload has it"},
  };
}

/// A decorator of any composer.
///
/// Before a batch runs: allocated + predicted ≤ total · (1 − margin), else the cache is emptied, it is looked
/// at again, and then it is split. After an OOM the batch is halved, each half that fails again too, up to
/// `halvings` times; then with checkpointing, if that is allowed; then the run ends.
class OomGuardian final : public Composer {
 public:
  OomGuardian(std::unique_ptr<Composer> inner, const GuardianOptions& options)
      : inner_(std::move(inner)), options_(options) {}

  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override;
  AfterOom told(const BatchOutcome& outcome) override;
  void epoch_ends() override;
  [[nodiscard]] AccumulationRule accumulation() const override { return inner_->accumulation(); }
  [[nodiscard]] std::vector<double> save() const override;
  void restore(std::span<const double> state) override;
  [[nodiscard]] std::vector<Statistic> statistics() const override;

 private:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  struct Piece {
    std::vector<SampleId> samples;
    PredictedMemory predicted;
    std::int64_t halved = 0;  ///< how often, since the batch or since checkpointing began
    bool checkpointing = false;
  };
  [[nodiscard]] bool fits(const PredictedMemory& predicted, const MemoryView& memory) const;
  ComposerAnswer serve(const ComposerQuestion& question, const Observation& observation);
  void halve(const Piece& piece);

  std::unique_ptr<Composer> inner_;
  GuardianOptions options_;
  std::deque<Piece> pieces_;  ///< to be run before anything else
  Piece running_;
  bool cleaned_ = false;           ///< for the piece in front
  std::int64_t limit_ = kNoLimit;  ///< samples of a batch
  std::string gave_up_;
  double splits_ = 0;
  double clean_ups_ = 0;
};

/// `inner` as it is, or with the guardian around it.
std::unique_ptr<Composer> guarded(std::unique_ptr<Composer> inner, const GuardianOptions& options);

/// The largest n of 1 … 256 for which `fits(n)` holds, found by bisection; 0 if not even 1 does.
template <class Fits>
std::int64_t safe_batch_size(const Fits& fits) {
  std::int64_t good = 0;
  for (std::int64_t bad = 257; bad - good > 1;) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace vramlab
