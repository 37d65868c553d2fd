#include "plugins/isolated_policies.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/answer_process.hpp"

namespace vramlab {
namespace {

/// A policy that is asked in the copy of the program; there `inner` is the policy, behind its guard.
template <class Family>
class Isolated : public Family {
 public:
  using Question = typename Family::Question;
  using Answer = typename Family::Answer;

  Isolated(RemoteCalls calls, std::unique_ptr<Family> inner)
      : calls_(std::move(calls)), inner_(std::move(inner)) {}

  Answer decide(const Question& question, const Observation& observation) override {
    return calls().template ask<Answer>('d', observation.time.count(),
                                        [&] { return inner().decide(question, observation); });
  }

  [[nodiscard]] std::vector<Statistic> statistics() const final {
    return calls().ask_or(std::vector<Statistic>{}, 's', [&] { return inner().statistics(); });
  }

 protected:
  [[nodiscard]] RemoteCalls& calls() const { return calls_; }
  [[nodiscard]] Family& inner() const { return *inner_; }

 private:
  mutable RemoteCalls calls_;
  std::unique_ptr<Family> inner_;
};

class IsolatedTuner final : public Isolated<Tuner> {
 public:
  using Isolated::Isolated;

  TunerAnswer note_phase(const PhaseReport& phase, const Observation& observation) override {
    return calls().ask<TunerAnswer>('p', observation.time.count(),
                                    [&] { return inner().note_phase(phase, observation); });
  }
  [[nodiscard]] std::string save() const override {
    return calls().ask<std::string>('k', 0, [&] { return inner().save(); });
  }
  void load(const std::string& text) override {
    calls().ask<Nothing>('l', 0, [&] {
      inner().load(text);
      return Nothing{};
    });
  }
};

/// How many samples wait once the order has been looked at as far as `position`.
std::size_t waiting_at(const ComposerQuestion& question, std::uint64_t position) {
  const std::size_t size = question.samples.size();
  if (position > size) throw PolicyFault("a composer of a plugin looked beyond the data set");
  return question.candidates.left() - (size - static_cast<std::size_t>(position));
}

class IsolatedComposer final : public Isolated<Composer> {
 public:
  using Isolated::Isolated;

  // What the composer looked at in the copy waits here, too.
  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override {
    ComposerAnswer answer = Isolated::decide(question, observation);
    const auto position = calls().ask<std::uint64_t>('w', observation.time.count(),
                                                     [&] { return question.candidates.stamp().position; });
    if (position > question.candidates.stamp().position) {
      question.candidates.look(waiting_at(question, position));
    }
    return answer;
  }

  AfterOom told(const BatchOutcome& outcome) override {
    return calls().ask<AfterOom>('t', 0, [&] { return inner().told(outcome); });
  }
  void epoch_ends() override {
    calls().ask<Nothing>('e', 0, [&] {
      inner().epoch_ends();
      return Nothing{};
    });
  }
  [[nodiscard]] bool obeys_budget() const override {
    return calls().ask_or(false, 'b', [&] { return inner().obeys_budget(); });
  }
  [[nodiscard]] AccumulationRule accumulation() const override {
    return calls().ask_or(AccumulationRule{}, 'a', [&] { return inner().accumulation(); });
  }
  [[nodiscard]] std::vector<double> save() const override {
    return calls().ask<std::vector<double>>('k', 0, [&] { return inner().save(); });
  }
  void restore(std::span<const double> state) override {
    calls().ask<Nothing>('l', 0, [&] {
      inner().restore(state);
      return Nothing{};
    });
  }
};

class IsolatedAdmitter final : public Isolated<Admitter> {
 public:
  using Isolated::Isolated;

  [[nodiscard]] QueueRules rules() const override {
    return calls().ask_or(QueueRules{}, 'r', [&] { return inner().rules(); });
  }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    return calls().ask_or(std::optional<Bytes>{}, 'v', [&] { return inner().available(card); });
  }
  [[nodiscard]] CardStatus status(const CardView& card) const override {
    return calls().ask_or(CardStatus::available, 'c', [&] { return inner().status(card); });
  }
  [[nodiscard]] std::string why_waiting(GroupId group, const ClusterView& cluster) const override {
    return calls().ask_or(std::string{}, 'y', [&] { return inner().why_waiting(group, cluster); });
  }
};

class IsolatedSearcher final : public Isolated<Searcher> {
 public:
  using Isolated::Isolated;

  [[nodiscard]] ProbeDepth depth() const override {
    return calls().ask<ProbeDepth>('n', 0, [&] { return inner().depth(); });
  }
};

/// Makes a policy in the copy. What ends the copy there ends the policy's run at its first question.
template <class IsolatedPolicy, class Made, class... Setting>
struct RemoteMaker {
  std::string name;
  std::shared_ptr<RunProcess> run;
  std::function<std::unique_ptr<Made>(const OptionMap&, Setting...)> make;

  std::unique_ptr<Made> operator()(const OptionMap& given, Setting... setting) const {
    RemoteCalls calls{name, run->join()};
    std::unique_ptr<Made> made;
    calls.ask_or(Nothing{}, 'm', [&] {
      made = make(given, setting...);
      return Nothing{};
    });
    return std::make_unique<IsolatedPolicy>(std::move(calls), std::move(made));
  }
};

template <class IsolatedPolicy, class Made, class... Setting>
void isolate_family(Registry<Made, Setting...>& known, const std::vector<std::string>& of_plugins,
                    const std::shared_ptr<RunProcess>& run) {
  for (PolicyKind<Made, Setting...>& kind : known.entries) {
    if (std::ranges::find(of_plugins, kind.name) == of_plugins.end()) continue;
    kind.make = RemoteMaker<IsolatedPolicy, Made, Setting...>{kind.name, run, std::move(kind.make)};
  }
}

}  // namespace

std::shared_ptr<const PolicySet> isolated_policies(const std::shared_ptr<const PolicySet>& known,
                                                   std::chrono::seconds limit) {
  auto all = std::make_shared<PolicySet>(*known);
  std::vector<std::string> of_plugins;
  for (const PolicyPlugin& plugin : all->plugins) {
    of_plugins.insert(of_plugins.end(), plugin.policies.begin(), plugin.policies.end());
  }
  const auto run = std::make_shared<RunProcess>(limit);
  isolate_family<IsolatedTuner>(all->tuners, of_plugins, run);
  isolate_family<IsolatedAdmitter>(all->admitters, of_plugins, run);
  isolate_family<IsolatedSearcher>(all->searchers, of_plugins, run);
  isolate_family<IsolatedComposer>(all->composers, of_plugins, run);
  return all;
}

}  // namespace vramlab
