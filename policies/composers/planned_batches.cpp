// `planned-batches`: batches of a size that a user sets, in samples or in tokens, without any look at memory.
#include <algorithm>
#include <deque>
#include <limits>

#include "core/random.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/contract/saved_state.hpp"

namespace vramlab {
namespace {

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

std::vector<Row<PlannedOptions>> planned_rows() {
  using O = PlannedOptions;
  return {
      {"measure", one_of<&O::measure>({"samples", "tokens", "padded", "quadratic"}), "", 0, 0,
       "what of a batch max_tokens limits: nothing, the sum of its tokens, the longest times the number of "
       "samples, or that times the longest over 512"},
      {"order", one_of<&O::order>({"as-shuffled", "by-length", "longest-first"}), "", 0, 0,
       "batches are cut from the shuffled order, from stretches of it sorted by length, or from the whole "
       "epoch, longest first"},
      {"batch_size", &O::batch_size, "samples", 1, 1e6, "samples of a batch at most"},
      {"max_tokens", &O::max_tokens, "tokens", 1, 1e9, "of a batch at most, by `measure`"},
      {"stretch", &O::stretch, "samples", 1, 1e7, "by-length: this many are sorted at a time"},
      {"accumulation", one_of<&O::accumulation>({"exact", "adaptive"}), "", 0, 0,
       "the effective batch is exactly the target, or drifts with memory use as in the original sampler"},
  };
}

const OptionTable<PlannedOptions>& planned_table() {
  using O = PlannedOptions;
  static const OptionTable<O> result{.owner = "planned-batches",
                                     .options = Record<O>(joined<O>(planned_rows(), guardian_rows()))};
  return result;
}

std::vector<PolicyProfile> planned_profiles() {
  const OptionMap unguarded{{"guardian", false}, {"batch_size", 1000}};
  return {
      {"fixed", "always the same number of samples", {{"guardian", false}}},
      {"constant-token", "as many samples as have max_tokens together, padding not counted",
       overlay(unguarded, {{"measure", "tokens"}})},
      {"length-bucketed", "samples of similar length, max_tokens with the padding",
       overlay(unguarded, {{"measure", "padded"}, {"order", "by-length"}})},
      {"quadratic", "the same with a cost that grows with the square of the length",
       overlay(unguarded, {{"measure", "quadratic"}, {"order", "by-length"}})},
      {"longest-first", "length-bucketed, the longest batch of the epoch first: what fails, fails at once",
       overlay(unguarded, {{"measure", "padded"}, {"order", "longest-first"}})},
  };
}

constexpr std::int64_t kReference = 512;  // tokens at which `quadratic` and `padded` are equal

class PlannedBatches final : public Composer {
 public:
  explicit PlannedBatches(const PlannedOptions& options) : options_(options) {}

  ComposerAnswer decide(const ComposerQuestion& question, const Observation&) override {
    if (planned_.empty()) plan(question);
    std::vector<SampleId> batch = std::move(planned_.front());
    planned_.pop_front();
    if (static_cast<std::int64_t>(batch.size()) > question.most) {
      const auto cut = batch.begin() + static_cast<std::ptrdiff_t>(question.most);
      if (options_.order != BatchOrder::as_shuffled) planned_.emplace_front(cut, batch.end());
      batch.erase(cut, batch.end());
    }
    return {.batch = std::move(batch)};
  }

  AfterOom told(const BatchOutcome&) override { return AfterOom::skip; }
  void epoch_ends() override { planned_.clear(); }  // a program may leave an epoch before its end
  [[nodiscard]] AccumulationRule accumulation() const override {
    return {options_.accumulation, options_.batch_size};
  }

  [[nodiscard]] std::vector<double> save() const override {
    std::vector<double> state{static_cast<double>(planned_.size())};
    for (const auto& batch : planned_) {
      state.push_back(static_cast<double>(batch.size()));
      state.insert(state.end(), batch.begin(), batch.end());
    }
    return state;
  }

  void restore(std::span<const double> state) override {
    StateReader reader{state};
    planned_.assign(reader.size(), {});
    for (auto& batch : planned_) batch = reader.samples();
  }

 private:
  [[nodiscard]] bool within(const BatchShape& batch) const {
    if (batch.samples > options_.batch_size) return false;
    switch (options_.measure) {
      case BatchMeasure::samples:
        return true;
      case BatchMeasure::tokens:
        return batch.tokens <= options_.max_tokens;
      case BatchMeasure::padded:
        return batch.positions() <= options_.max_tokens;
      case BatchMeasure::quadratic:
        return batch.positions() * batch.longest <= options_.max_tokens * kReference;
    }
    return true;
  }

  // The longest batch that begins with the first of `order`; that one is taken whatever it costs.
  [[nodiscard]] std::vector<SampleId> cut(const ComposerQuestion& question,
                                          std::span<const SampleId> order) const {
    std::vector<SampleId> batch;
    BatchShape shape{.packs = question.packs};
    for (const SampleId id : order) {
      shape.add(question.samples[id]);
      if (!batch.empty() && !within(shape)) break;
      batch.push_back(id);
    }
    return batch;
  }

  void plan(const ComposerQuestion& question) {
    if (options_.order == BatchOrder::as_shuffled) {
      planned_.push_back(
          cut(question, question.candidates.look(static_cast<std::size_t>(options_.batch_size))));
      return;
    }
    const bool whole = options_.order == BatchOrder::longest_first;
    const auto waiting = question.candidates.look(whole ? std::numeric_limits<std::size_t>::max()
                                                        : static_cast<std::size_t>(options_.stretch));
    std::vector<SampleId> sorted(waiting.begin(), waiting.end());
    const auto tokens = [&](SampleId id) { return question.samples[id].tokens; };
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](SampleId a, SampleId b) { return tokens(a) > tokens(b); });
    for (std::span<const SampleId> rest{sorted}; !rest.empty(); rest = rest.subspan(planned_.back().size())) {
      planned_.push_back(cut(question, rest));
    }
    if (whole) return;
    std::vector<std::vector<SampleId>> batches(planned_.begin(), planned_.end());
    const EpochStamp stamp = question.candidates.stamp();
    Random{stamp.seed ^ (static_cast<std::uint64_t>(stamp.epoch) << 32) ^ stamp.position}.shuffle(
        std::span{batches});
    planned_.assign(batches.begin(), batches.end());
  }

  PlannedOptions options_;
  std::deque<std::vector<SampleId>> planned_;
};

std::unique_ptr<Composer> make_planned(const OptionMap& options, const std::vector<std::string>&) {
  const PlannedOptions parsed = planned_table().parse(options);
  return guarded(std::make_unique<PlannedBatches>(parsed), parsed);
}

}  // namespace

ComposerEntry planned_batches_entry() {
  return {.name = "planned-batches",
          .summary = "batches of a size that is set, in samples or tokens, without a look at memory",
          .options = planned_table().describe(),
          .profiles = planned_profiles(),
          .default_profile = "fixed",
          .make = make_planned};
}

}  // namespace vramlab
