#include "cli/compare/spreads.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/units.hpp"
#include "lab/best.hpp"
#include "lab/experiment.hpp"
#include "lab/scenario/expectations.hpp"

namespace vramlab {
namespace {

// The oracle is what the others are measured by, and some metrics rank nothing.
bool can_be_best(const std::string& policy, const MetricDescription& metric) {
  return policy != "oracle" && metric.better != Better::neither;
}

void count_best(const std::vector<LabelledFigures>& run, const MetricDescription& metric,
                std::vector<Spread>& spreads) {
  for (const std::size_t i : best_in(run, metric)) {
    for (Spread& spread : spreads) spread.best += spread.policy == run[i].label ? 1 : 0;
  }
}

// What running out of memory is called depends on the kind.
bool had_oom(const LabelledFigures& result) {
  constexpr std::array kNames{"ooms", "oom_kills", "probe_ooms", "epoch_ooms"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* name) { return find_metric(result.metrics, name).value_or(0) > 0; });
}

}  // namespace

std::optional<double> figure(const LabelledFigures& result, const std::string& name) {
  const auto value = find_metric(result.metrics, name);
  return value && !std::isnan(*value) ? value : std::nullopt;
}

std::string figure_text(double value, const MetricDescription& metric) {
  if (metric.unit == "share") return percent_text(value);
  if (metric.unit == "bytes" && value >= 0) return format_bytes(static_cast<Bytes>(value));
  return format_number(value);
}

std::vector<Spread> spreads_of(const SweepResults& results, const MetricDescription& metric) {
  std::vector<Spread> spreads;
  for (const auto& run : results) {
    if (!run) continue;
    for (const LabelledFigures& result : *run) {
      auto place = std::find_if(spreads.begin(), spreads.end(),
                                [&](const Spread& spread) { return spread.policy == result.label; });
      if (place == spreads.end())
        place = spreads.insert(spreads.end(), Spread{.policy = result.label, .values = {}});
      ++place->runs;
      place->finished += has_finished(result.metrics) ? 1 : 0;
      place->with_oom += had_oom(result) ? 1 : 0;
      if (const auto value = figure(result, metric.name)) place->values.push_back(*value);
    }
    count_best(*run, metric, spreads);
  }
  return spreads;
}

Table spreads_table(const std::vector<Spread>& spreads, const MetricDescription& metric) {
  Table table{{left("policy"), "runs", "finished", "with OOM", "best in", "lowest " + metric.title, "mean",
               "highest"}};
  for (const Spread& spread : spreads) {
    std::vector<std::string> cells{
        spread.policy, fmt::format("{}", spread.runs), fmt::format("{}", spread.finished),
        fmt::format("{}", spread.with_oom),
        can_be_best(spread.policy, metric) ? fmt::format("{}", spread.best) : kNoFigure};
    if (spread.values.empty()) {
      cells.insert(cells.end(), {kNoFigure, kNoFigure, kNoFigure});
    } else {
      const auto [low, high] = std::minmax_element(spread.values.begin(), spread.values.end());
      double sum = 0;
      for (const double value : spread.values) sum += value;
      cells.push_back(figure_text(*low, metric));
      cells.push_back(figure_text(sum / static_cast<double>(spread.values.size()), metric));
      cells.push_back(figure_text(*high, metric));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

std::string sweep_verdict(const std::vector<Spread>& spreads, const MetricDescription& metric,
                          std::size_t done) {
  const auto best = std::max_element(spreads.begin(), spreads.end(),
                                     [](const Spread& a, const Spread& b) { return a.best < b.best; });
  if (best == spreads.end() || best->best == 0) {
    const bool any = std::ranges::any_of(
        spreads, [](const Spread& spread) { return spread.policy != "oracle" && spread.finished > 0; });
    return fmt::format("{} runs{}.", done, any ? "" : ", and no policy finished in any");
  }
  const std::string unfinished = best->finished == best->runs
                                     ? ""
                                     : fmt::format("; it did not finish in {}", best->runs - best->finished);
  return fmt::format(
      "{} has the {} {} in {} of {} runs, {}{}.", best->policy,
      metric.better == Better::less ? "lowest" : "highest", metric.title, best->best, done,
      best->with_oom == 0 ? "and no OOM in any" : fmt::format("with OOMs in {}", best->with_oom), unfinished);
}

std::string sweep_rule(const MetricDescription& metric) {
  if (metric.better == Better::neither) return "";
  return fmt::format("Best of a run: {} {}, of those that finished.",
                     metric.better == Better::less ? "least" : "most", metric.title);
}

const MetricDescription& shown_metric(const ScenarioDocument& scenario, const Arguments& arguments) {
  const Kind& kind = kind_of(scenario);
  if (kind.sweep_metric.empty()) {
    throw InputError(scenario.file + ": /sweep", "scenarios of kind " + kind.name + " have no sweep.");
  }
  const std::string asked = text_of(arguments, "metric");
  const std::string& name = asked.empty() ? kind.sweep_metric : asked;
  for (const MetricDescription& metric : kind.metrics()) {
    if (metric.name == name) return metric;
  }
  throw InputError("--metric", "\"" + name + "\" is not a metric of such a scenario." +
                                   suggest_name(name, names_of(kind.metrics())));
}

}  // namespace vramlab
