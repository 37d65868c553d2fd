#include <algorithm>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "cli/compare/kinds.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/page/sections.hpp"

namespace vramlab {
namespace {

double metric(const SearchResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(0);
}

bool has_epoch(const SearchScenario& scenario) { return scenario.epoch.iterations > 0; }

// Found and safe, then the largest batch, then the fewest OOMs and probes.
std::string verdict(const SearchScenario& scenario, const std::vector<SearchResult>& results) {
  const auto rank = [&](const SearchResult& result) {
    const bool fits = metric(result, "batch") <= metric(result, "edge_batch");
    const double safe = has_epoch(scenario) ? metric(result, "epoch_survived")
                                            : (fits ? 1 - metric(result, "extrapolated") : -1);
    return std::tuple{-metric(result, "found"), -safe, -metric(result, "batch"), metric(result, "probe_ooms"),
                      metric(result, "probes")};
  };
  const auto best =
      std::min_element(results.begin(), results.end(),
                       [&](const SearchResult& a, const SearchResult& b) { return rank(a) < rank(b); });
  if (metric(*best, "found") == 0) return "No searcher found a batch that fits.";
  return fmt::format("Best: {}, batch {:.0f} of at most {:.0f} after {:.0f} probes.", best->label,
                     metric(*best, "batch"), metric(*best, "edge_batch"), metric(*best, "probes"));
}

std::string head(const SearchScenario& scenario) {
  const BatchSearchSetup& setup = scenario.buckets.front().setup;
  const auto& limit = setup.cards.front().allocator.limit;
  std::string text = fmt::format("{}: batch {} to {} on {}{}", scenario.name, setup.low, setup.high,
                                 scenario.gpu, limit ? " limited to " + format_bytes(*limit) : "");
  if (has_epoch(scenario)) text += fmt::format(", then {} steps", scenario.epoch.iterations);
  return text;
}

std::string batches(const SearchResult& result) {
  std::vector<std::string> texts;
  for (const BucketResult& bucket : result.buckets) {
    texts.push_back(bucket.found() ? std::to_string(bucket.run.answer.batch) +
                                         (bucket.run.answer.extrapolated ? " (untried)" : "")
                                   : "none");
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string edges(const SearchResult& result) {
  std::vector<std::int64_t> numbers;
  for (const BucketResult& bucket : result.buckets) numbers.push_back(bucket.edge);
  return fmt::format("{}", fmt::join(numbers, ", "));
}

Table results_table(const SearchScenario& scenario, const std::vector<SearchResult>& results) {
  std::vector<Table::Column> columns{
      {"searcher", Table::Align::left}, {"batch"}, {"edge"}, {"probes"}, {"probing"}, {"OOMs"}};
  if (has_epoch(scenario)) {
    columns.push_back({"epoch", Table::Align::left});
    columns.push_back({"peak"});
    columns.push_back({"retries"});
    columns.push_back({"samples/s"});
  }
  Table table{std::move(columns)};
  for (const SearchResult& result : results) {
    const auto count = [&](const char* name) { return fmt::format("{:.0f}", metric(result, name)); };
    std::vector<std::string> cells{result.label,
                                   batches(result),
                                   edges(result),
                                   count("probes"),
                                   fmt::format("{:.1f} s", metric(result, "probe_s")),
                                   count("probe_ooms")};
    if (has_epoch(scenario)) {
      const double ooms = metric(result, "epoch_ooms");
      cells.push_back(result.epoch.iterations == 0 ? "-"
                      : ooms == 0                  ? "survived"
                                                   : fmt::format("{:.0f} OOMs", ooms));
      cells.push_back(fmt::format("{:.1f} %", 100 * metric(result, "epoch_peak_ratio")));
      cells.push_back(count("epoch_retries"));
      cells.push_back(fmt::format("{:.1f}", metric(result, "epoch_samples_per_s")));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

Json compare_search(const SearchScenario& scenario, const std::vector<std::string>& labels, Output& output) {
  const auto results = compare_searchers(scenario, labels);
  output.line(verdict(scenario, results));
  output.line(head(scenario));
  output.line("");
  output.table(results_table(scenario, results));
  for (const SearchResult& result : results) {
    for (const BucketResult& bucket : result.buckets) {
      if (bucket.run.answer.action != SearcherAnswer::Action::give_up) continue;
      output.line(fmt::format("{} gave up: {}.", result.label, bucket.run.answer.reason));
    }
  }
  Json json = search_json(scenario, results);
  if (output.report().wanted()) {
    output.report().add(
        search_section(json, {verdict(scenario, results), head(scenario)}, scenario.description));
  }
  return json;
}

}  // namespace

ReadyComparison ready_search_comparison(const ScenarioDocument& document,
                                        const ComparisonQuestion& question) {
  const auto scenario = std::make_shared<const SearchScenario>(read_search(document));
  return [=](Output& output) { return compare_search(*scenario, question.labels, output); };
}

}  // namespace vramlab
