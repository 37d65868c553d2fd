#include "lab/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace vramlab {
namespace {

enum class Safety : std::uint8_t { ended_early, out_of_memory, above_target, inside_target };

double metric(const PolicyResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(0);
}

// When a policy should have settled.
bool stays_inside(const Scenario& scenario, const std::vector<IterationRecord>& steps) {
  const auto quarter = static_cast<std::ptrdiff_t>((steps.size() + 3) / 4);
  return std::all_of(steps.end() - quarter, steps.end(), [&](const IterationRecord& step) {
    return within_target(scenario.target, step.step_peak_allocated, step.memory.total);
  });
}

Safety safety_of(const Scenario& scenario, const PolicyResult& result) {
  if (!result.run.ended_early.empty()) return Safety::ended_early;
  if (metric(result, "ooms") > 0) return Safety::out_of_memory;
  return stays_inside(scenario, result.run.iterations) ? Safety::inside_target : Safety::above_target;
}

const PolicyResult& best_policy(const Scenario& scenario, const Comparison& comparison) {
  const auto rank = [&](const PolicyResult& result) {
    return std::pair{safety_of(scenario, result), metric(result, "objective")};
  };
  const PolicyResult* best = nullptr;
  for (const PolicyResult& result : comparison.policies) {
    if (result.policy != "oracle" && (best == nullptr || rank(result) > rank(*best))) best = &result;
  }
  return *best;
}

std::string reservation(Safety safety, const PolicyResult& best) {
  switch (safety) {
    case Safety::inside_target:
      return "";
    case Safety::above_target:
      return ", though it stays above the target (no policy without OOM stays inside)";
    case Safety::out_of_memory:
      return fmt::format(", though {:.0f} of its steps ran out of memory (none ran without)",
                         metric(best, "ooms"));
    case Safety::ended_early:
      return ", though its run ended early (so did all others)";
  }
  return "";
}

}  // namespace

std::string verdict(const Scenario& scenario, const Comparison& comparison) {
  const PolicyResult& best = best_policy(scenario, comparison);
  const std::string text =
      fmt::format("Best: {}{}", best.label, reservation(safety_of(scenario, best), best));
  const PolicyResult* oracle = comparison.find("oracle");
  if (oracle == nullptr) return text + ". No safe fixed choice was found, so there is no regret.";
  const double regret = metric(best, "regret");
  return text + fmt::format(", {:.1f} % {} the best safe fixed choice ({}).", 100 * std::abs(regret),
                            regret < 0 ? "above" : "short of", fmt::join(oracle->run.final_point, ", "));
}

}  // namespace vramlab
