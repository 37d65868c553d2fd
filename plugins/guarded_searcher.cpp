#include "plugins/guarded_policies.hpp"

namespace vramlab {
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
