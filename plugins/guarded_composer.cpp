#include <algorithm>
#include <cmath>

#include "plugins/guarded_policies.hpp"

namespace vramlab {
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

}  // namespace vramlab
