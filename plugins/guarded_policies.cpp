#include <algorithm>
#include <cmath>
#include <utility>

#include "plugins/guard.hpp"
#include "policies/composers/oom_guardian.hpp"

namespace vramlab {
namespace {

// A change that no parameter can need. A NaN or an infinity made a whole number lies beyond it.
constexpr std::int64_t kLargestChange = std::int64_t{1} << 53;
constexpr Bytes kLargestPromise = Bytes{1} << 60;
constexpr std::int64_t kLargestBatch = 1'000'000'000;
constexpr std::int64_t kMostProbeSteps = 1'000'000;

/// What every family's guarded policy does: the question goes to the policy behind the guard, and its answer
/// is looked at before the host sees it.
template <class Family>
class Guarded : public Family {
 public:
  using Question = typename Family::Question;
  using Answer = typename Family::Answer;

  Guarded(Guard guard, std::unique_ptr<Family> inner) : guard_(std::move(guard)), inner_(std::move(inner)) {}

  Answer decide(const Question& question, const Observation& observation) final {
    Answer answer = guard_.call([&] { return inner_->decide(question, observation); });
    guard_.require_short(answer.reason);
    check(question, answer);
    return answer;
  }

  [[nodiscard]] std::vector<Statistic> statistics() const final {
    return guard_.call_or(std::vector<Statistic>{}, [&] { return inner_->statistics(); });
  }

 protected:
  /// Fails for an answer that no question can have.
  virtual void check(const Question& question, const Answer& answer) = 0;

  [[nodiscard]] Guard& guard() const { return guard_; }
  [[nodiscard]] Family& inner() const { return *inner_; }

 private:
  mutable Guard guard_;  // first: it keeps the library loaded
  std::unique_ptr<Family> inner_;
};

class GuardedTuner final : public Guarded<Tuner> {
 public:
  using Guarded::Guarded;

  TunerAnswer note_phase(const PhaseReport& phase, const Observation& observation) override {
    TunerAnswer answer = guard().call([&] { return inner().note_phase(phase, observation); });
    check_answer(answer);
    return answer;
  }

  [[nodiscard]] std::string save() const override {
    return guard().call([&] {
      std::string text = inner().save();
      guard().require_at_most(kLongestSavedText, "saved a state of", text.size(), "bytes");
      return text;
    });
  }

  void load(const std::string& text) override {
    guard().read([&] { inner().load(text); });
  }

 private:
  void check(const TunerQuestion&, const TunerAnswer& answer) override { check_answer(answer); }

  void check_answer(const TunerAnswer& answer) const {
    guard().require_short(answer.reason, answer.log);
    for (const std::int64_t change : answer.delta) {
      if (change > -kLargestChange && change < kLargestChange) continue;
      guard().fail("asked for a change of " + std::to_string(change) +
                   ", which no parameter can need (a NaN made a whole number is such a change)");
    }
  }
};

class GuardedComposer final : public Guarded<Composer> {
 public:
  using Guarded::Guarded;

  AfterOom told(const BatchOutcome& outcome) override {
    return guard().call([&] { return inner().told(outcome); });
  }

  void epoch_ends() override {
    guard().call([&] { inner().epoch_ends(); });
  }

  [[nodiscard]] bool obeys_budget() const override {
    return guard().call_or(false, [&] { return inner().obeys_budget(); });
  }

  [[nodiscard]] AccumulationRule accumulation() const override {
    return guard().call_or(AccumulationRule{}, [&] {
      const AccumulationRule rule = inner().accumulation();
      const bool good = rule.kind <= AccumulationRule::Kind::adaptive && rule.batch_size >= 1 &&
                        rule.batch_size <= kLargestBatch;
      if (!good) guard().fail("wants micro-batches of " + std::to_string(rule.batch_size) + " samples");
      return rule;
    });
  }

  [[nodiscard]] std::vector<double> save() const override {
    return guard().call([&] {
      auto state = inner().save();
      guard().require_at_most(kMostSavedNumbers, "saved a state of", state.size(), "numbers");
      const bool numbers =
          std::all_of(state.begin(), state.end(), [](double one) { return std::isfinite(one); });
      if (!numbers) guard().fail("saved a state with a NaN or an infinity in it");
      return state;
    });
  }

  void restore(std::span<const double> state) override {
    guard().read([&] { inner().restore(state); });
  }

 private:
  void check(const ComposerQuestion&, const ComposerAnswer& answer) override {
    if (answer.action > ComposerAnswer::Action::give_up) {
      guard().fail("answered with an action that there is not");
    }
    if (answer.predicted.likely > answer.predicted.at_most) {
      guard().fail("predicted at most " + format_bytes(answer.predicted.at_most) + " and likely " +
                   format_bytes(answer.predicted.likely));
    }
  }
};

class GuardedAdmitter final : public Guarded<Admitter> {
 public:
  using Guarded::Guarded;

  [[nodiscard]] QueueRules rules() const override {
    return guard().call_or(QueueRules{}, [&] {
      const QueueRules rules = inner().rules();
      constexpr SimTime kZero{0};
      const bool good = rules.wait_timeout >= kZero && rules.poll >= kZero && rules.job_timeout >= kZero &&
                        rules.lease >= kZero && rules.placement <= FitRule::fragments;
      if (!good) guard().fail("has rules with negative times");
      return rules;
    });
  }

  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    try {
      return guard().call_unwatched([&] { return inner().available(card); });
    } catch (const PolicyFault&) {
      return std::nullopt;  // the next question ends the run
    }
  }

  [[nodiscard]] CardStatus status(const CardView& card) const override {
    try {
      return std::min(guard().call_unwatched([&] { return inner().status(card); }),
                      CardStatus::out_of_memory);
    } catch (const PolicyFault&) {
      return CardStatus::available;
    }
  }

  [[nodiscard]] std::string why_waiting(GroupId group, const ClusterView& cluster) const override {
    return guard().call_or(std::string{}, [&] {
      std::string why = inner().why_waiting(group, cluster);
      guard().require_short(why, {});
      return why;
    });
  }

 private:
  void check(const AdmitterQuestion& question, const AdmitterAnswer& answer) override {
    using Action = AdmitterAnswer::Action;
    if (answer.action > Action::to_back) guard().fail("answered with an action that there is not");
    if (answer.action == Action::start && answer.need > kLargestPromise) {
      guard().fail("promised " + std::to_string(answer.need) + " bytes");
    }
    if (answer.action == Action::start && (answer.split.batch < 1 || answer.split.accumulation < 1)) {
      guard().fail("started a job with " + std::to_string(answer.split.accumulation) + " batches of " +
                   std::to_string(answer.split.batch));
    }
    if (answer.action == Action::requeue &&
        (answer.demand.batch < 1 || answer.demand.cards < 1 || answer.demand.share_milli > 1000)) {
      guard().fail("let a job wait again with a demand that no job can have");
    }
    require_an_end(question, answer);
  }

  // Every answer but `wait` is followed by another question of the same moment.
  void require_an_end(const AdmitterQuestion& question, const AdmitterAnswer& answer) {
    if (question.event != QueueEvent::examine) return;
    if (question.pass != pass_ || answer.action == AdmitterAnswer::Action::wait) answers_ = 0;
    pass_ = question.pass;
    if (++answers_ > 10'000 + 16 * question.cluster.waiting.size()) {
      guard().fail("gave " + std::to_string(answers_) + " answers at one moment without an end");
    }
  }

  std::uint64_t pass_ = 0;
  std::uint64_t answers_ = 0;
};

class GuardedSearcher final : public Guarded<Searcher> {
 public:
  using Guarded::Guarded;

  [[nodiscard]] ProbeDepth depth() const override {
    const ProbeDepth depth = guard().call([&] { return inner().depth(); });
    if (depth.steps < 1 || depth.steps > kMostProbeSteps) {
      guard().fail("wants probes of " + std::to_string(depth.steps) + " steps; allowed are 1 to " +
                   std::to_string(kMostProbeSteps));
    }
    if (depth.varied_steps < 0 || depth.varied_steps > kMostProbeSteps) {
      guard().fail("wants " + std::to_string(depth.varied_steps) + " varied steps; allowed are 0 to " +
                   std::to_string(kMostProbeSteps));
    }
    if (!(depth.share > 0 && depth.share <= 1)) guard().fail("wants a share of the memory outside (0, 1]");
    return depth;
  }

 private:
  void check(const SearcherQuestion& question, const SearcherAnswer& answer) override {
    using Action = SearcherAnswer::Action;
    if (answer.action > Action::give_up) guard().fail("answered with an action that there is not");
    // A probe above the range is cut to it, as a built-in searcher's is; nothing lies below it.
    const bool named = answer.action == Action::probe || answer.action == Action::found;
    if (named && answer.batch < question.low) {
      guard().fail("named batch " + std::to_string(answer.batch) + "; allowed are " +
                   std::to_string(question.low) + " to " + std::to_string(question.high));
    }
  }
};

/// Makes the policies of a plugin, each behind a guard. `make` is the plugin's own code: it must go before
/// the library does.
template <class GuardedPolicy, class Made, class... Setting>
struct Maker {
  PluginCode code;
  std::string name;
  std::vector<Field> options;
  std::function<std::unique_ptr<Made>(const OptionMap&, Setting...)> make;

  std::unique_ptr<Made> operator()(const OptionMap& given, Setting... setting) const {
    const OptionMap checked = checked_options(name, options, given);
    Guard guard{name, code};
    std::unique_ptr<Made> made;
    try {
      made = guard.read([&] { return make(checked, setting...); });
      if (made == nullptr) guard.fail("was not made: the plugin gave none");
    } catch (const PolicyFault&) {
      // The guard has the fault: the policy's run ends at its first question.
    }
    return std::make_unique<GuardedPolicy>(std::move(guard), std::move(made));
  }
};

template <class GuardedPolicy, class Made, class... Setting>
void add_family(Registry<Made, Setting...>& known, const Registry<Made, Setting...>& added,
                const PluginCode& code) {
  for (PolicyKind<Made, Setting...> kind : added) {
    kind.make = Maker<GuardedPolicy, Made, Setting...>{code, kind.name, kind.options, std::move(kind.make)};
    known.add(std::move(kind));
  }
}

/// The guardian of batches as an option of a composer that has none: off unless a user asks for it.
struct AskedGuardian : GuardianOptions {
  AskedGuardian() { guardian = false; }
};

const OptionTable<AskedGuardian>& asked_table() {
  static const OptionTable<AskedGuardian> table{
      .owner = {}, .options = Record<AskedGuardian>(joined<AskedGuardian>(guardian_rows()))};
  return table;
}

/// Makes a plugin's composer, with the guardian around it where it is asked for. An option that both have is
/// for both.
struct GuardianMaker {
  std::string name;
  std::vector<Field> own;  ///< options of the composer
  std::vector<Field> all;  ///< and the guardian's
  decltype(ComposerEntry::make) make;

  std::unique_ptr<Composer> operator()(const OptionMap& given, const std::vector<std::string>& tasks) const {
    const OptionMap checked = checked_options(name, all, given);
    return guarded(make(only(checked, own), tasks),
                   asked_table().parse(only(checked, asked_table().describe())));
  }

  static OptionMap only(const OptionMap& options, const std::vector<Field>& fields) {
    OptionMap some;
    for (const OptionEntry& option : options.entries()) {
      if (std::ranges::find(fields, option.key, &Field::key) == fields.end()) continue;
      some.set(option.key, option.value, option.where);
    }
    return some;
  }
};

void add_guardian(ComposerEntry& kind) {
  const auto knows = [&](const std::string& key) {
    return std::ranges::find(kind.options, key, &Field::key) != kind.options.end();
  };
  if (knows("guardian")) return;
  const std::vector<Field> own = kind.options;
  for (const Field& option : asked_table().describe()) {
    if (!knows(option.key)) kind.options.push_back(option);
  }
  kind.make = GuardianMaker{kind.name, own, kind.options, std::move(kind.make)};
}

}  // namespace

void add_guarded(PolicySet& known, const PolicySet& added, const PluginCode& code) {
  add_family<GuardedTuner>(known.tuners, added.tuners, code);
  add_family<GuardedAdmitter>(known.admitters, added.admitters, code);
  add_family<GuardedSearcher>(known.searchers, added.searchers, code);
  const std::size_t composers = known.composers.entries.size();
  add_family<GuardedComposer>(known.composers, added.composers, code);
  for (std::size_t i = composers; i < known.composers.entries.size(); ++i) {
    add_guardian(known.composers.entries[i]);
  }
}

OptionMap checked_options(const std::string& policy, const std::vector<Field>& options,
                          const OptionMap& given) {
  const auto values = checked_values(given, options, policy);
  OptionMap checked;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (values[i]) checked.set(options[i].key, *values[i], given.find(options[i].key)->where);
  }
  return checked;
}

}  // namespace vramlab
