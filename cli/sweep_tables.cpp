#include "cli/sweep_tables.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "lab/expectations.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostDown = 40;  // values of an axis that a terminal shows
constexpr std::size_t kMostAcross = 12;

bool is_better(Better way, double a, double b) { return way == Better::less ? a < b : a > b; }

// The oracle is what the others are measured by, and some metrics rank nothing.
bool can_be_best(const std::string& policy, const MetricDescription& metric) {
  return policy != "oracle" && metric.better != Better::neither;
}

std::optional<double> figure(const LabelledFigures& result, const std::string& name) {
  const auto value = find_metric(result.metrics, name);
  return value && !std::isnan(*value) ? value : std::nullopt;
}

void count_best(const std::vector<LabelledFigures>& run, const MetricDescription& metric,
                std::vector<Spread>& spreads) {
  std::optional<double> best;
  for (const LabelledFigures& result : run) {
    const auto value = figure(result, metric.name);
    if (!can_be_best(result.label, metric) || !value) continue;
    if (!best || is_better(metric.better, *value, *best)) best = value;
  }
  for (const LabelledFigures& result : run) {
    if (!best || !can_be_best(result.label, metric) || figure(result, metric.name) != best) continue;
    for (Spread& spread : spreads) spread.best += spread.policy == result.label ? 1 : 0;
  }
}

// What running out of memory is called depends on the kind.
bool had_oom(const LabelledFigures& result) {
  constexpr std::array kNames{"ooms", "oom_kills", "probe_ooms", "epoch_ooms"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const char* name) { return find_metric(result.metrics, name).value_or(0) > 0; });
}

std::string text_of(double value, const MetricDescription& metric) {
  if (metric.unit == "share") return fmt::format("{:.1f} %", 100 * value);
  if (metric.unit == "bytes" && value >= 0) return format_bytes(static_cast<Bytes>(value));
  return format_number(value);
}

// Means over what is not shown: the first axis down, the second across.
Table matrix(const Sweep& sweep, const SweepResults& results, const std::string& policy,
             const MetricDescription& metric) {
  const bool two = sweep.axes.size() > 1;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<double, std::size_t>> sums;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    for (const LabelledFigures& result : *results[i]) {
      const auto value = figure(result, metric.name);
      if (result.label != policy || !value) continue;
      auto& [sum, count] = sums[{sweep.runs[i].at[0], two ? sweep.runs[i].at[1] : 0}];
      sum += *value;
      ++count;
    }
  }
  std::vector<Table::Column> columns{
      {two ? sweep.axes[0].name + " \\ " + sweep.axes[1].name : sweep.axes[0].name, Table::Align::left}};
  const std::size_t across = two ? sweep.axes[1].values.size() : 1;
  for (std::size_t c = 0; c < across; ++c)
    columns.push_back({two ? value_text(sweep.axes[1].values[c]) : metric.title});
  Table table{std::move(columns)};
  for (std::size_t r = 0; r < sweep.axes[0].values.size(); ++r) {
    std::vector<std::string> cells{value_text(sweep.axes[0].values[r])};
    for (std::size_t c = 0; c < across; ++c) {
      const auto sum = sums.find({r, c});
      cells.push_back(sum == sums.end()
                          ? "-"
                          : text_of(sum->second.first / static_cast<double>(sum->second.second), metric));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace

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
      place->with_oom += had_oom(result) ? 1 : 0;
      if (const auto value = figure(result, metric.name)) place->values.push_back(*value);
    }
    count_best(*run, metric, spreads);
  }
  return spreads;
}

Table spreads_table(const std::vector<Spread>& spreads, const MetricDescription& metric) {
  Table table{{{"policy", Table::Align::left},
               {"runs"},
               {"with OOM"},
               {"best in"},
               {"lowest " + metric.title},
               {"mean"},
               {"highest"}}};
  for (const Spread& spread : spreads) {
    std::vector<std::string> cells{spread.policy, fmt::format("{}", spread.runs),
                                   fmt::format("{}", spread.with_oom),
                                   can_be_best(spread.policy, metric) ? fmt::format("{}", spread.best) : "-"};
    if (spread.values.empty()) {
      cells.insert(cells.end(), {"-", "-", "-"});
    } else {
      const auto [low, high] = std::minmax_element(spread.values.begin(), spread.values.end());
      double sum = 0;
      for (const double value : spread.values) sum += value;
      cells.push_back(text_of(*low, metric));
      cells.push_back(text_of(sum / static_cast<double>(spread.values.size()), metric));
      cells.push_back(text_of(*high, metric));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

std::string sweep_verdict(const std::vector<Spread>& spreads, const MetricDescription& metric,
                          std::size_t done) {
  const auto best = std::max_element(spreads.begin(), spreads.end(),
                                     [](const Spread& a, const Spread& b) { return a.best < b.best; });
  if (best == spreads.end() || best->best == 0) return fmt::format("{} runs.", done);
  return fmt::format(
      "{} is best in {} of {} runs ({}), {}.", best->policy, best->best, done, metric.title,
      best->with_oom == 0 ? "and no OOM in any" : fmt::format("with OOMs in {}", best->with_oom));
}

// What is wider than a terminal is in the report and in the results.
void print_matrices(const Sweep& sweep, const SweepResults& results, const std::vector<Spread>& spreads,
                    const MetricDescription& metric, Output& output) {
  if (sweep.axes[0].values.size() > kMostDown ||
      (sweep.axes.size() > 1 && sweep.axes[1].values.size() > kMostAcross)) {
    output.line("\nThe axes are too long for a table here; --report shows a heat map.");
    return;
  }
  for (const Spread& spread : spreads) {
    if (spread.policy == "oracle" || spread.values.empty()) continue;
    output.line(fmt::format("\n{} of {}{}", metric.title, spread.policy,
                            sweep.axes.size() > 2 ? ", means over the other axes" : ""));
    output.table(matrix(sweep, results, spread.policy, metric));
  }
}

}  // namespace vramlab
