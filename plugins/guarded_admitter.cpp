#include "plugins/guarded_policies.hpp"

namespace vramlab {
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

}  // namespace vramlab
