#include <algorithm>

#include "plugins/guarded_policies.hpp"

namespace vramlab {
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

}  // namespace vramlab
