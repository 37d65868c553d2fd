#include <algorithm>
#include <array>
#include <memory>
#include <tuple>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/scenario/schema.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

// The card whose peak is the largest share of its total.
const ProbedCard& fullest(const Probe& probe) {
  return *std::max_element(probe.cards.begin(), probe.cards.end(),
                           [](const ProbedCard& a, const ProbedCard& b) {
                             return static_cast<double>(a.peak) * static_cast<double>(b.total) <
                                    static_cast<double>(b.peak) * static_cast<double>(a.total);
                           });
}

Json card_json(const ProbedCard& card, std::int64_t batch) {
  const auto grown = static_cast<double>(card.peak - std::min(card.peak, card.start));
  Json json;
  json["start_bytes"] = card.start;
  json["peak_bytes"] = card.peak;
  json["peak_reserved_bytes"] = card.peak_reserved;
  json["current_bytes"] = card.current;
  json["total_bytes"] = card.total;
  json["bytes_per_sample"] = batch > 0 ? number_json(grown / static_cast<double>(batch)) : Json(nullptr);
  return json;
}

Json trial_json(const SearchTrial& trial, const BatchSearchSetup& setup) {
  const Probe& probe = trial.probe;
  Json json = card_json(fullest(probe), probe.batch);
  json["batch"] = probe.batch;
  json["outcome"] = std::string{probe_outcome_name(probe.outcome)};
  json["phase"] = probe.phase;
  json["usage"] = number_json(probed_usage(probe, CardsRule::fullest));
  json["seconds"] = number_json(to_seconds(trial.duration));
  if (!probe.error.empty()) json["error"] = probe.error;
  json["phases"] = Json::array();
  for (std::size_t i = 0; i < trial.steps.size(); ++i) {
    json["phases"].push_back({{"name", setup.phases[i].name}, {"steps", trial.steps[i]}});
  }
  if (probe.cards.size() > 1) {
    json["cards"] = Json::array();
    for (const ProbedCard& card : probe.cards) json["cards"].push_back(card_json(card, probe.batch));
  }
  return json;
}

Json bucket_json(const SearchBucket& bucket, const BucketResult& result) {
  const SearcherAnswer& answer = result.run.answer;
  Json json;
  json["bucket"] = bucket.name;
  json["batch"] = result.found() ? Json(answer.batch) : Json(nullptr);
  json["found"] = result.found();
  json["trials"] = Json::array();
  for (const SearchTrial& trial : result.run.trials)
    json["trials"].push_back(trial_json(trial, bucket.setup));
  json["edge_batch"] = result.edge;
  json["headroom_bytes"] = nullptr;
  if (result.check && result.check->probe.outcome == ProbeOutcome::ok) {
    const ProbedCard& card = fullest(result.check->probe);
    json["headroom_bytes"] = card.total - std::min(card.total, card.peak);
  }
  json["extrapolated"] = answer.extrapolated;
  json["reason"] = answer.reason;
  json["probe_seconds"] = number_json(to_seconds(result.run.duration));
  json["ooms"] = result.run.ooms;
  return json;
}

Json epoch_json(const SearchEpochRun& epoch) {
  return {{"iterations", epoch.iterations},
          {"ooms", epoch.ooms},
          {"retries", epoch.retries},
          {"peak_ratio", number_json(epoch.peak_share)},
          {"reserved_ratio", number_json(epoch.reserved_share)},
          {"seconds", number_json(to_seconds(epoch.duration))}};
}

}  // namespace

Json find_batch_json(const SearchScenario& scenario, const SearchResult& result) {
  // The last bucket, that of the longest samples, speaks for all.
  Json json = bucket_json(scenario.buckets.back(), result.buckets.back());
  json.erase("bucket");
  json["scenario"] = scenario.name;
  json["policy"] = result.label;
  if (scenario.buckets.size() > 1) {
    json["buckets"] = Json::array();
    for (std::size_t i = 0; i < result.buckets.size(); ++i) {
      json["buckets"].push_back(bucket_json(scenario.buckets[i], result.buckets[i]));
    }
  }
  if (scenario.epoch.iterations > 0) json["epoch"] = epoch_json(result.epoch);
  json["metrics"] = figures_json(result.metrics);
  return json;
}

Json search_json(const SearchScenario& scenario, const std::vector<SearchResult>& results) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["policies"] = Json::array();
  for (const SearchResult& result : results) {
    Json entry = find_batch_json(scenario, result);
    entry.erase("scenario");
    entry["policy"] = result.policy;
    entry["profile"] = result.profile;
    entry["label"] = result.label;
    json["policies"].push_back(std::move(entry));
  }
  return json;
}

std::string_view probe_outcome_name(ProbeOutcome outcome) {
  constexpr std::array kNames{"ok", "oom", "held", "failed"};
  return kNames[static_cast<std::size_t>(outcome)];
}

namespace {

// What the ladder shows of one search.
Json ladder_json(const Json& search, const std::string& label) {
  Json json;
  json["label"] = label;
  for (const char* key :
       {"batch", "found", "edge_batch", "headroom_bytes", "extrapolated", "reason", "trials"}) {
    json[key] = search.value(key, Json(nullptr));
  }
  return json;
}

}  // namespace

Json search_section(const Json& result, const SectionHead& head, const std::string& description) {
  Json json =
      begun_section("search", result.value("scenario", result.value("name", std::string{"search"})), head);
  json["description"] = description;
  json["limit"] = nullptr;
  json["metrics"] = metrics_json(search_metric_table());
  json["results"] = Json::array();
  json["policies"] = Json::array();
  for (const Json& policy : result["policies"]) {
    const auto label = policy["label"].get<std::string>();
    json["results"].push_back({{"label", label}, {"metrics", policy["metrics"]}});
    if (!policy.contains("buckets")) {
      json["policies"].push_back(ladder_json(policy, label));
    } else {
      for (const Json& bucket : policy["buckets"]) {
        json["policies"].push_back(ladder_json(bucket, label + ", " + bucket["bucket"].get<std::string>()));
      }
    }
    const Json& trials = json["policies"].back()["trials"];
    if (!trials.empty()) json["limit"] = trials.front().value("total_bytes", Json(nullptr));
  }
  return json;
}

namespace {

bool has_epoch(const SearchScenario& scenario) { return scenario.epoch.iterations > 0; }

// Found and safe, then the largest batch, then the fewest OOMs and probes.
std::string verdict_on(const SearchScenario& scenario, const std::vector<SearchResult>& results) {
  if (results.empty()) return "No policy was run.";
  const auto rank = [&](const SearchResult& result) {
    const Figures figures{result.metrics};
    const bool fits = figures["batch"] <= figures["edge_batch"];
    const double safe =
        has_epoch(scenario) ? figures["epoch_survived"] : (fits ? 1 - figures["extrapolated"] : -1);
    return std::tuple{-figures["found"], -safe, -figures["batch"], figures["probe_ooms"], figures["probes"]};
  };
  const auto best =
      std::min_element(results.begin(), results.end(),
                       [&](const SearchResult& a, const SearchResult& b) { return rank(a) < rank(b); });
  const Figures figures{best->metrics};
  if (figures["found"] == 0) return "No searcher found a batch that fits.";
  return fmt::format("Best: {}, batch {} of at most {} after {} probes.", best->label, figures.count("batch"),
                     figures.count("edge_batch"), figures.count("probes"));
}

std::string head_of(const SearchScenario& scenario) {
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
    const Figures figures{result.metrics};
    std::vector<std::string> cells{result.label,
                                   batches(result),
                                   edges(result),
                                   figures.count("probes"),
                                   figures.fixed("probe_s", 1) + " s",
                                   figures.count("probe_ooms")};
    if (has_epoch(scenario)) {
      cells.push_back(result.epoch.iterations == 0 ? kNoFigure
                      : result.epoch.ooms == 0     ? "survived"
                                                   : figures.count("epoch_ooms") + " OOMs");
      cells.push_back(figures.percent("epoch_peak_ratio"));
      cells.push_back(figures.count("epoch_retries"));
      cells.push_back(figures.fixed("epoch_samples_per_s", 1));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

/// Searchers side by side on one workload.
class SearchExperiment : public PolicyExperiment<SearchScenario, std::vector<SearchResult>> {
 public:
  using PolicyExperiment::PolicyExperiment;

  void run(const std::vector<std::string>& labels) override {
    results_ = compare_searchers(scenario_, labels);
  }

  [[nodiscard]] std::string verdict() const override { return verdict_on(scenario_, results_); }
  [[nodiscard]] std::vector<std::string> head() const override { return {head_of(scenario_)}; }
  [[nodiscard]] std::vector<Table> tables() const override { return {results_table(scenario_, results_)}; }
  [[nodiscard]] std::vector<std::string> endings() const override {
    std::vector<std::string> lines;
    for (const SearchResult& result : results_) {
      for (const BucketResult& bucket : result.buckets) {
        if (bucket.run.answer.action != SearcherAnswer::Action::give_up) continue;
        lines.push_back(fmt::format("{} gave up: {}.", result.label, bucket.run.answer.reason));
      }
    }
    return lines;
  }
  [[nodiscard]] Json json() const override { return search_json(scenario_, results_); }
  [[nodiscard]] std::vector<Json> sections() const override {
    return {search_section(json(), {verdict(), head_of(scenario_)}, scenario_.description)};
  }
};

}  // namespace

Kind search_kind() {
  return {
      .name = "search",
      .table = search_table,
      .schema = [](const PolicySet& known) { return kind_schema(search_table(), known.searchers); },
      .metrics = search_metric_table,
      .read = [](const ScenarioDocument& document, const Question& question) -> std::unique_ptr<Experiment> {
        return std::make_unique<SearchExperiment>(read_search(document), question);
      },
      .sweep_metric = "batch"};
}

}  // namespace vramlab
