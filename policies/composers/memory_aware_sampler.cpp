// `memory-aware-sampler`: batches of mixed tasks, filled greedily under a memory budget.
#include <algorithm>
#include <limits>
#include <optional>

#include "policies/composers/candidate_window.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/contract/policy_set.hpp"
#include "policies/contract/saved_state.hpp"
#include "policies/predictors/regression_predictor.hpp"
#include "policies/predictors/table_predictor.hpp"

namespace vramlab {
namespace {

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

std::vector<Row<SamplerOptions>> sampler_rows() {
  using O = SamplerOptions;
  return {
      {"predictor", one_of<&O::predictor>({"table", "collapsing", "regression"}), "", 0, 0,
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
      {"window", &O::window, "samples", 1, 1e7, "this many of the oldest waiting samples are candidates"},
      {"growth", &O::growth, "factor", 0, 100,
       "a batch has at most this many times the samples of the largest that ran; 0 = no such limit"},
      {"over_budget", one_of<&O::over_budget>({"never", "minus-one"}), "", 0, 0,
       "a candidate over budget is never taken, or has priority -1 and may be, as in the original"},
      {"accumulation", one_of<&O::accumulation>({"exact", "adaptive"}), "", 0, 0,
       "the effective batch is exactly the target, or drifts with memory use as in the original"},
  };
}

const OptionTable<SamplerOptions>& sampler_table() {
  using O = SamplerOptions;
  static const OptionTable<O> result{.owner = "memory-aware-sampler",
                                     .options = Record<O>(joined<O>(sampler_rows(), guardian_rows()))};
  return result;
}

std::vector<PolicyProfile> sampler_profiles() {
  const OptionMap published{{"predictor", "table"},
                            {"batch_size", 16},
                            {"task_diversity_weight", 0.5},
                            {"padding_weight", 0.0},
                            {"growth", 0.0}};
  // predictions are so close that at the original's 0.10 idle memory between blocks decides who fails
  const OptionMap learnt{{"safety_margin", 0.15}};
  return {
      {"faithful",
       "the original with its defects: predictions that collapse, candidates over budget taken, an effective "
       "batch that drifts",
       overlay(published, {{"predictor", "collapsing"},
                           {"max_memory_mb", 30000},
                           {"over_budget", "minus-one"},
                           {"accumulation", "adaptive"},
                           {"keep_limit", true}})},
      {"table", "the original's table and constants, with a budget that binds", published},
      {"mixed", "learns what batches take, and mixes the tasks in every batch",
       overlay(learnt, {{"task_diversity_weight", 0.5}, {"padding_weight", 0.0}})},
      {"dense", "learns what batches take, and puts samples of similar length together", learnt},
  };
}

std::unique_ptr<MemoryPredictor> make_predictor(const SamplerOptions& options,
                                                const std::vector<std::string>& tasks) {
  if (options.predictor == PredictorKind::regression) {
    return std::make_unique<RegressionPredictor>(normal_quantile(options.safety_quantile));
  }
  const bool collapsing = options.predictor == PredictorKind::collapsing;
  return std::make_unique<TablePredictor>(
      tasks, collapsing ? TablePredictor::Form::collapsing : TablePredictor::Form::sum);
}

class MemoryAwareSampler final : public Composer {
 public:
  MemoryAwareSampler(const SamplerOptions& options, const std::vector<std::string>& tasks)
      : options_(options), predictor_(make_predictor(options, tasks)) {}

  // The oldest sample opens the batch, so that none waits for ever; if it alone is over budget, it stays
  // alone.
  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override {
    const auto waiting = question.candidates.look(static_cast<std::size_t>(options_.window));
    const double budget = this->budget(question, observation.memory);
    std::int64_t most = std::min(options_.batch_size, question.most);
    if (options_.growth > 0) most = std::min(most, next_size(largest_, options_.growth));
    window_.reset(question.samples, waiting);

    ComposerAnswer answer;
    BatchShape batch{.packs = question.packs, .accumulates = question.accumulates};
    const auto add = [&](SampleId id, const PredictedMemory& predicted) {
      answer.batch.push_back(id);
      batch.add(question.samples[id]);
      answer.predicted = predicted;
    };
    const SampleId first = window_.take_oldest();
    BatchShape alone = batch;
    alone.add(question.samples[first]);
    add(first, predictor_->predict(alone));
    answer.oversize = static_cast<double>(answer.predicted.at_most) > budget;
    if (answer.oversize && options_.over_budget == OverBudget::never) {
      answer.reason = "one sample is predicted over budget; it runs alone";
      return answer;
    }
    while (batch.samples < most) {
      const auto chosen = choose(question, batch, budget);
      if (!chosen) break;
      window_.take(chosen->group);
      add(chosen->candidate.id, chosen->predicted);
    }
    return answer;
  }

  AfterOom told(const BatchOutcome& outcome) override {
    if (outcome.result == StepResult::ok) largest_ = std::max(largest_, outcome.shape.samples);
    if (outcome.typical && outcome.result == StepResult::ok) predictor_->learn(outcome.shape, outcome.rise);
    if (outcome.typical && outcome.result == StepResult::oom) {
      predictor_->learn_at_least(outcome.shape, outcome.rise);
    }
    return AfterOom::skip;
  }

  [[nodiscard]] bool obeys_budget() const override { return true; }

  [[nodiscard]] AccumulationRule accumulation() const override {
    return {options_.accumulation, options_.batch_size};
  }

  [[nodiscard]] std::vector<double> save() const override {
    std::vector<double> state{static_cast<double>(largest_)};
    const auto learnt = predictor_->save();
    state.insert(state.end(), learnt.begin(), learnt.end());
    return state;
  }

  void restore(std::span<const double> state) override {
    StateReader reader{state};
    largest_ = static_cast<std::int64_t>(reader.count());
    predictor_->restore(reader.rest());
  }

 private:
  struct Choice {
    std::size_t group = 0;  ///< of the window
    CandidateWindow::Candidate candidate;
    PredictedMemory predicted;  ///< of the batch with it
  };

  // What a batch may take above what is allocated already.
  [[nodiscard]] double budget(const ComposerQuestion& question, const MemoryView& memory) const {
    double whole = static_cast<double>(memory.total) * (1 - options_.safety_margin);
    if (question.budget) {
      whole = static_cast<double>(std::min(*question.budget, memory.total));
    } else if (options_.max_memory_mb > 0) {
      whole = std::min(whole, static_cast<double>(options_.max_memory_mb) * static_cast<double>(1_MiB));
    }
    return std::max(0.0, whole - static_cast<double>(memory.allocated));
  }

  // The candidate of highest priority to go on with; among equals the oldest. Empty if none may.
  std::optional<Choice> choose(const ComposerQuestion& question, const BatchShape& batch, double budget) {
    std::optional<Choice> best;
    double highest = -std::numeric_limits<double>::infinity();
    for (std::size_t group = 0; group < window_.groups(); ++group) {
      const auto candidate = window_.best(group, batch.longest);
      if (!candidate) continue;
      const Sample& sample = question.samples[candidate->id];
      BatchShape larger = batch;
      larger.add(sample);
      const PredictedMemory predicted = predictor_->predict(larger);
      const auto at_most = static_cast<double>(predicted.at_most);
      if (at_most > budget && options_.over_budget == OverBudget::never) continue;
      const double value = priority(batch, larger, sample.task, at_most, budget);
      if (value < highest || (value == highest && best && candidate->order > best->candidate.order)) continue;
      highest = value;
      best = {group, *candidate, predicted};
    }
    return best;
  }

  // The published priority, less the share of padding that the batch would have.
  [[nodiscard]] double priority(const BatchShape& batch, const BatchShape& larger, std::uint32_t task,
                                double needed, double budget) const {
    if (needed > budget) return -1;
    const double w = options_.task_diversity_weight;
    const std::int64_t most = *std::max_element(batch.task_samples.begin(), batch.task_samples.end());
    const double fit = budget > 0 ? (budget - needed) / budget : 0;
    const double diversity =
        most == 0 ? 1 : 1 - static_cast<double>(batch.task_samples[task]) / static_cast<double>(most);
    return (1 - w) * fit + w * diversity - options_.padding_weight * larger.padding();
  }

  SamplerOptions options_;
  std::unique_ptr<MemoryPredictor> predictor_;
  CandidateWindow window_;
  std::int64_t largest_ = 0;  ///< samples of the largest batch that ran
};

std::unique_ptr<Composer> make_sampler(const OptionMap& options, const std::vector<std::string>& tasks) {
  const SamplerOptions parsed = sampler_table().parse(options);
  return guarded(std::make_unique<MemoryAwareSampler>(parsed, tasks), parsed);
}

}  // namespace

ComposerEntry memory_aware_sampler_entry() {
  return {.name = "memory-aware-sampler",
          .summary = "fills each batch under a memory budget from what batches took so far",
          .options = sampler_table().describe(),
          .profiles = sampler_profiles(),
          .default_profile = "dense",
          .make = make_sampler};
}

}  // namespace vramlab
