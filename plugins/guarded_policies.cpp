#include "plugins/guarded_policies.hpp"

#include <algorithm>
#include <cmath>

namespace vramlab {

OptionMap checked_options(const std::string& policy, const std::vector<OptionDescription>& options,
                          const OptionMap& given) {
  std::vector<Problem> problems;
  const std::string listing = options.empty() ? " (" + policy + " has no options)"
                                              : " (vramlab policies " + policy + " lists all keys)";
  const auto values = checked_values(given, options, listing, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  OptionMap checked;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (values[i]) checked.set(options[i].key, *values[i], given.find(options[i].key)->where);
  }
  return checked;
}

namespace {

// A change that no parameter can need. A NaN or an infinity made a whole number lies beyond it.
constexpr std::int64_t kLargestChange = std::int64_t{1} << 53;

class GuardedTuner final : public Tuner {
 public:
  GuardedTuner(Guard guard, std::unique_ptr<Tuner> inner)
      : guard_(std::move(guard)), inner_(std::move(inner)) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    TunerAnswer answer = guard_.call([&] { return inner_->decide(question, observation); });
    guard_.require_short(answer.reason, answer.log);
    for (const std::int64_t change : answer.delta) {
      if (change > -kLargestChange && change < kLargestChange) continue;
      guard_.fail("asked for a change of " + std::to_string(change) +
                  ", which no parameter can need (a NaN made a whole number is such a change)");
    }
    return answer;
  }

  [[nodiscard]] std::string save() const override {
    return guard_.call([&] {
      std::string text = inner_->save();
      if (text.size() > kLongestSavedText) {
        guard_.fail("saved a state of " + std::to_string(text.size()) + " bytes; " +
                    std::to_string(kLongestSavedText) + " are the most");
      }
      return text;
    });
  }

  void load(const std::string& text) override {
    guard_.read([&] { inner_->load(text); });
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override {
    return guard_.call_or(std::vector<Statistic>{}, [&] { return inner_->statistics(); });
  }

 private:
  mutable Guard guard_;  // first: it keeps the library loaded
  std::unique_ptr<Tuner> inner_;
};

}  // namespace

TunerEntry guarded(TunerEntry kind, const PluginCode& code) {
  return guarded_kind<GuardedTuner>(std::move(kind), code);
}

namespace {

constexpr std::int64_t kLargestBatch = 1'000'000'000;

class GuardedComposer final : public Composer {
 public:
  GuardedComposer(Guard guard, std::unique_ptr<Composer> inner)
      : guard_(std::move(guard)), inner_(std::move(inner)) {}

  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override {
    ComposerAnswer answer = guard_.call([&] { return inner_->decide(question, observation); });
    guard_.require_short(answer.reason);
    if (answer.action > ComposerAnswer::Action::give_up) {
      guard_.fail("answered with an action that there is not");
    }
    if (answer.predicted.likely > answer.predicted.at_most) {
      guard_.fail("predicted at most " + format_bytes(answer.predicted.at_most) + " and likely " +
                  format_bytes(answer.predicted.likely));
    }
    return answer;
  }

  AfterOom told(const BatchOutcome& outcome) override {
    return guard_.call([&] { return inner_->told(outcome); });
  }

  void epoch_ends() override {
    guard_.call([&] { inner_->epoch_ends(); });
  }

  [[nodiscard]] AccumulationRule accumulation() const override {
    const AccumulationRule rule = guard_.call_or(AccumulationRule{}, [&] { return inner_->accumulation(); });
    const bool good = rule.kind <= AccumulationRule::Kind::adaptive && rule.batch_size >= 1 &&
                      rule.batch_size <= kLargestBatch;
    if (good) return rule;
    return guard_.call_or(AccumulationRule{}, [&]() -> AccumulationRule {
      guard_.fail("wants micro-batches of " + std::to_string(rule.batch_size) + " samples");
    });
  }

  [[nodiscard]] std::vector<double> save() const override {
    return guard_.call([&] {
      auto state = inner_->save();
      if (state.size() > kMostSavedNumbers) {
        guard_.fail("saved a state of " + std::to_string(state.size()) + " numbers; " +
                    std::to_string(kMostSavedNumbers) + " are the most");
      }
      const bool numbers =
          std::all_of(state.begin(), state.end(), [](double one) { return std::isfinite(one); });
      if (!numbers) guard_.fail("saved a state with a NaN or an infinity in it");
      return state;
    });
  }

  void restore(std::span<const double> state) override {
    guard_.read([&] { inner_->restore(state); });
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override {
    return guard_.call_or(std::vector<Statistic>{}, [&] { return inner_->statistics(); });
  }

 private:
  mutable Guard guard_;  // first: it keeps the library loaded
  std::unique_ptr<Composer> inner_;
};

}  // namespace

ComposerEntry guarded(ComposerEntry kind, const PluginCode& code) {
  return guarded_kind<GuardedComposer>(std::move(kind), code);
}

namespace {

constexpr Bytes kLargestPromise = Bytes{1} << 60;

class GuardedAdmitter final : public Admitter {
 public:
  GuardedAdmitter(Guard guard, std::unique_ptr<Admitter> inner)
      : guard_(std::move(guard)), inner_(std::move(inner)) {}

  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& observation) override {
    AdmitterAnswer answer = guard_.call([&] { return inner_->decide(question, observation); });
    guard_.require_short(answer.reason);
    using Action = AdmitterAnswer::Action;
    if (answer.action > Action::to_back) guard_.fail("answered with an action that there is not");
    if (answer.action == Action::start && answer.need > kLargestPromise) {
      guard_.fail("promised " + std::to_string(answer.need) + " bytes");
    }
    if (answer.action == Action::start && (answer.split.batch < 1 || answer.split.accumulation < 1)) {
      guard_.fail("started a job with " + std::to_string(answer.split.accumulation) + " batches of " +
                  std::to_string(answer.split.batch));
    }
    if (answer.action == Action::requeue &&
        (answer.demand.batch < 1 || answer.demand.cards < 1 || answer.demand.share_milli > 1000)) {
      guard_.fail("let a job wait again with a demand that no job can have");
    }
    require_an_end(question, answer);
    return answer;
  }

  [[nodiscard]] QueueRules rules() const override {
    const QueueRules rules = guard_.call_or(QueueRules{}, [&] { return inner_->rules(); });
    constexpr SimTime kZero{0};
    const bool good = rules.wait_timeout >= kZero && rules.poll >= kZero && rules.job_timeout >= kZero &&
                      rules.lease >= kZero && rules.placement <= FitRule::fragments;
    if (good) return rules;
    return guard_.call_or(QueueRules{},
                          [&]() -> QueueRules { guard_.fail("has rules with negative times"); });
  }

  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    try {
      return guard_.call_unwatched([&] { return inner_->available(card); });
    } catch (const PolicyFault&) {
      return std::nullopt;  // the next question ends the run
    }
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override {
    return guard_.call_or(std::vector<Statistic>{}, [&] { return inner_->statistics(); });
  }

 private:
  // Every answer but `wait` is followed by another question of the same moment.
  void require_an_end(const AdmitterQuestion& question, const AdmitterAnswer& answer) {
    if (question.event != QueueEvent::examine) return;
    if (question.pass != pass_ || answer.action == AdmitterAnswer::Action::wait) answers_ = 0;
    pass_ = question.pass;
    if (++answers_ > 10'000 + 16 * question.cluster.waiting.size()) {
      guard_.fail("gave " + std::to_string(answers_) + " answers at one moment without an end");
    }
  }

  mutable Guard guard_;  // first: it keeps the library loaded
  std::unique_ptr<Admitter> inner_;
  std::uint64_t pass_ = 0;
  std::uint64_t answers_ = 0;
};

}  // namespace

AdmitterEntry guarded(AdmitterEntry kind, const PluginCode& code) {
  return guarded_kind<GuardedAdmitter>(std::move(kind), code);
}

namespace {

constexpr std::int64_t kMostProbeSteps = 1'000'000;

class GuardedSearcher final : public Searcher {
 public:
  GuardedSearcher(Guard guard, std::unique_ptr<Searcher> inner)
      : guard_(std::move(guard)), inner_(std::move(inner)) {}

  SearcherAnswer decide(const SearcherQuestion& question, const Observation& observation) override {
    using Action = SearcherAnswer::Action;
    SearcherAnswer answer = guard_.call([&] { return inner_->decide(question, observation); });
    guard_.require_short(answer.reason);
    if (answer.action > Action::give_up) guard_.fail("answered with an action that there is not");
    // A probe above the range is cut to it, as a built-in searcher's is; nothing lies below it.
    const bool named = answer.action == Action::probe || answer.action == Action::found;
    if (named && answer.batch < question.low) {
      guard_.fail("named batch " + std::to_string(answer.batch) + "; allowed are " +
                  std::to_string(question.low) + " to " + std::to_string(question.high));
    }
    return answer;
  }

  [[nodiscard]] ProbeDepth depth() const override {
    const ProbeDepth depth = guard_.call([&] { return inner_->depth(); });
    if (depth.steps < 1 || depth.steps > kMostProbeSteps) {
      guard_.fail("wants probes of " + std::to_string(depth.steps) + " steps; allowed are 1 to " +
                  std::to_string(kMostProbeSteps));
    }
    return depth;
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override {
    return guard_.call_or(std::vector<Statistic>{}, [&] { return inner_->statistics(); });
  }

 private:
  mutable Guard guard_;  // first: it keeps the library loaded
  std::unique_ptr<Searcher> inner_;
};

}  // namespace

SearcherEntry guarded(SearcherEntry kind, const PluginCode& code) {
  return guarded_kind<GuardedSearcher>(std::move(kind), code);
}

}  // namespace vramlab
