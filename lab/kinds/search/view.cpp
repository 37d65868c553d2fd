#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/scenario/faults.hpp"
#include "lab/scenario/schema.hpp"
#include "models/measured.hpp"
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

const MeasuredModel* measured_model(const BatchSearchSetup& setup, const SearchPhase& phase) {
  return dynamic_cast<const MeasuredModel*>(phase.model != nullptr ? phase.model : setup.model);
}

// The first phase's measured points, or those of the first phase that has any.
const MeasuredModel* measured_model(const BatchSearchSetup& setup) {
  for (const SearchPhase& phase : setup.phases) {
    if (const MeasuredModel* model = measured_model(setup, phase)) return model;
  }
  return nullptr;
}

Json trial_json(const SearchTrial& trial, const SearchBucket& bucket) {
  const BatchSearchSetup& setup = bucket.setup;
  const Probe& probe = trial.probe;
  Json json = card_json(fullest(probe), probe.batch);
  json["batch"] = probe.batch;
  json["outcome"] = std::string{probe_outcome_name(probe.outcome)};
  json["phase"] = probe.phase;
  json["usage"] = number_json(probed_usage(probe, CardsRule::fullest));
  json["seconds"] = number_json(to_seconds(trial.duration));
  if (!probe.error.empty()) json["error"] = probe.error;
  if (measured_model(setup) != nullptr) json["beyond_points"] = is_beyond_points(bucket, probe.batch);
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

/// The names of bounds: keys of the JSON, words of tables and sentences.
struct BoundName {
  const char* key;
  const char* title;
  const char* text;
};
const BoundName& name_of(BatchBound bound) {
  static constexpr std::array<BoundName, 6> kNames{
      {{"memory", "memory", "memory ends"},
       {"model_range", "model's range", "the model's range ends"},
       {"bounds", "bounds", "the scenario's bounds end"},
       {"max_batch", "max_batch", "max_batch is"},
       {"dataset", "data set", "the data set ends"},
       {"searcher", "its options", "the searcher's own options end"}}};
  static_assert(kNames.size() == static_cast<std::size_t>(BatchBound::searcher) + 1);
  return kNames[static_cast<std::size_t>(bound)];
}

Json bucket_json(const SearchScenario& scenario, const SearchBucket& bucket, const BucketResult& result) {
  const SearcherAnswer& answer = result.run.answer;
  Json json;
  json["ends_at"] = name_of(bound_of(scenario, bucket, result)).key;
  json["bucket"] = bucket.name;
  json["batch"] = result.found() ? Json(answer.batch) : Json(nullptr);
  json["found"] = result.found();
  json["trials"] = Json::array();
  for (const SearchTrial& trial : result.run.trials) json["trials"].push_back(trial_json(trial, bucket));
  json["edge_batch"] = result.is_given ? Json(nullptr) : Json(result.edge);
  if (result.is_given) json["given"] = true;
  if (const MeasuredModel* model = measured_model(bucket.setup)) {
    json["measured"] = model->basis();
    json["beyond_points"] = result.found() && is_beyond_points(bucket, answer.batch);
    json["edge_beyond_points"] = result.edge > 0 && is_beyond_points(bucket, result.edge);
  }
  json["headroom_bytes"] = nullptr;
  if (result.check && result.check->probe.outcome == ProbeOutcome::ok) {
    const ProbedCard& card = fullest(result.check->probe);
    json["headroom_bytes"] = card.total - std::min(card.total, card.peak);
  }
  json["extrapolated"] = answer.extrapolated;
  json["reason"] = answer.reason;
  json["probe_seconds"] =
      number_json(scenario.models.front()->timed() ? to_seconds(result.run.duration) : std::nan(""));
  json["ooms"] = result.run.ooms;
  return json;
}

Json epoch_json(const SearchEpochRun& epoch) {
  return {{"iterations", epoch.iterations},
          {"ooms", epoch.ooms},
          {"phase_ooms", epoch.phase_ooms},
          {"retries", epoch.retries},
          {"peak_ratio", number_json(epoch.peak_share)},
          {"reserved_ratio", number_json(epoch.reserved_share)},
          {"seconds", number_json(to_seconds(epoch.duration))}};
}

bool has_epoch(const SearchScenario& scenario) { return scenario.epoch.iterations > 0; }

// Steps of the epoch that did not come to their end, those never begun included.
double failed_steps(const SearchResult& result) {
  const auto done = result.epoch.iterations - std::min(result.epoch.ooms, result.epoch.iterations);
  return static_cast<double>(result.planned - std::min(result.planned, done));
}

std::string lost_by_search(const SearchResult& result) {
  const Figures figures{result.metrics};
  if (has_finished(result.metrics)) return "";
  if (figures["found"] == 0) return "found none";
  if (result.epoch.iterations > 0 && result.epoch.iterations < result.planned) {
    return fmt::format("its epoch died at step {} of {}", result.epoch.iterations, result.planned);
  }
  if (result.epoch.ooms > 0) {
    return fmt::format("{} OOMs in the {} steps of its epoch", result.epoch.ooms, result.planned);
  }
  return "its answer does not run again";
}

// Among those that finished: shown to fit, then the largest batch, then the fewest OOMs and probes.
Standing standing_of(const SearchResult& result) {
  const Figures figures{result.metrics};
  const double untried = result.planned > 0 ? 0 : figures["extrapolated"];  // an epoch shows it as well
  std::string remark =
      fmt::format(", batch {} of at most {} after {} probe{}", figures.count("batch"),
                  figures.count("edge_batch"), figures.count("probes"), figures["probes"] == 1 ? "" : "s");
  if (result.buckets.back().is_given) {
    remark = fmt::format(", batch {}{}", figures.count("batch"),
                         result.buckets.back().run.answer.extrapolated ? " (untried)" : "");
  }
  return {.label = result.label,
          .lost = lost_by_search(result),
          .rank = {-figures["found"], result.planned > 0 ? failed_steps(result) : 0, untried,
                   -figures["batch"], figures["probe_ooms"], figures["probes"]},
          .remark = std::move(remark)};
}

Table results_table(const SearchScenario& scenario, const std::vector<SearchResult>& results) {
  auto columns = figure_columns("searcher", {"batch", "edge", "ends at", "probes", "probing", "OOMs"});
  if (has_epoch(scenario)) {
    columns.insert(columns.end(), {{"epoch", Table::Align::left}, {"peak"}, {"retries"}, {"samples/s"}});
  }
  Table table{std::move(columns)};
  for (const SearchResult& result : results) {
    const Figures figures{result.metrics};
    std::vector<std::string> batches;
    std::vector<std::string> edges;
    std::vector<std::string> bounds;
    for (std::size_t i = 0; i < result.buckets.size(); ++i) {
      const BucketResult& bucket = result.buckets[i];
      const SearcherAnswer& answer = bucket.run.answer;
      const std::string bound = name_of(bound_of(scenario, scenario.buckets[i], bucket)).title;
      if (bounds.empty() || bounds.back() != bound) bounds.push_back(bound);
      batches.push_back(!bucket.found()
                            ? "none"
                            : fmt::format("{}{}", answer.batch, answer.extrapolated ? " (untried)" : ""));
      edges.push_back(bucket.is_given ? kNoFigure : std::to_string(bucket.edge));
    }
    std::vector<std::string> cells{result.label,
                                   fmt::format("{}", fmt::join(batches, ", ")),
                                   fmt::format("{}", fmt::join(edges, ", ")),
                                   fmt::format("{}", fmt::join(bounds, ", ")),
                                   figures.count("probes"),
                                   result.timed ? figures.fixed("probe_s", 1) + " s" : kNoFigure,
                                   figures.count("probe_ooms")};
    if (has_epoch(scenario)) {
      const auto& epoch = result.epoch;
      const std::string ending = epoch.iterations == 0 ? kNoFigure
                                 : epoch.ooms == 0     ? "survived"
                                 : epoch.iterations < result.planned
                                     ? fmt::format("died at {} of {}", epoch.iterations, result.planned)
                                     : figures.count("epoch_ooms") + " OOMs";
      cells.insert(cells.end(), {ending, figures.percent("epoch_peak_ratio"), figures.count("epoch_retries"),
                                 figures.fixed("epoch_samples_per_s", 1)});
    }
    table.add_row(std::move(cells));
  }
  return table;
}

// A line for each text that is not empty, with the searchers whose answers it is about.
template <class Text>
std::vector<std::string> texts_of_answers(const SearchScenario& scenario,
                                          const std::vector<SearchResult>& results, Text text_of) {
  std::vector<std::pair<std::string, std::string>> found;  // text, labels
  for (const SearchResult& result : results) {
    for (std::size_t i = 0; i < result.buckets.size(); ++i) {
      const std::string text = text_of(scenario.buckets[i], result.buckets[i]);
      if (text.empty()) continue;
      const auto known = std::ranges::find(found, text, &std::pair<std::string, std::string>::first);
      if (known == found.end()) {
        found.emplace_back(text, result.label);
      } else {
        known->second += ", " + result.label;
      }
    }
  }
  std::vector<std::string> lines;
  for (const auto& [text, labels] : found) lines.push_back(fmt::format("{}: {}.", text, labels));
  return lines;
}

// The probes of a search with what they came to, then its answer.
void add_search_decisions(const BucketResult& bucket, std::vector<std::string>& lines) {
  for (const SearchTrial& trial : bucket.run.trials) {
    lines.push_back(fmt::format("probe of {}: {} after {} steps", trial.probe.batch,
                                probe_outcome_name(trial.probe.outcome), fmt::join(trial.steps, " + ")));
  }
  lines.push_back(bucket.found() ? fmt::format("takes {}", bucket.run.answer.batch)
                                 : "found none: " + bucket.run.answer.reason);
  if (bucket.check) {
    lines.push_back(fmt::format("which runs once more: {}", probe_outcome_name(bucket.check->probe.outcome)));
  }
}

/// Searchers side by side on one workload.
class SearchExperiment : public ScenarioExperiment<SearchScenario, std::vector<SearchResult>> {
 public:
  using ScenarioExperiment::ScenarioExperiment;

  void run(const std::vector<std::string>& labels) override {
    results_ = compare_searchers(scenario_, labels);
  }

  [[nodiscard]] std::vector<Standing> standings() const override {
    std::vector<Standing> standings;
    for (const SearchResult& result : results_) standings.push_back(standing_of(result));
    return standings;
  }
  [[nodiscard]] BestRule best_rule() const override {
    const bool epoch = has_epoch(scenario_);
    return {
        std::string{"Best of those that found a batch which fits"} +
            (epoch ? " and whose epoch survived: the largest, then fewest OOMs and probes."
                   : ": an answer that was tried, then the largest, then fewest OOMs and probes."),
        epoch ? "No searcher found a batch that survives the epoch" : "No searcher found a batch that fits"};
  }
  // Nothing found is neither best nor least bad.
  [[nodiscard]] std::string verdict() const override {
    const bool any = std::ranges::any_of(
        results_, [](const SearchResult& result) { return Figures{result.metrics}["found"] > 0; });
    if (any) return ScenarioExperiment::verdict();
    const double edge = results_.empty() ? 0 : Figures{results_.front().metrics}["edge_batch"];
    return edge > 0
               ? fmt::format("No searcher found a batch within its margin; {:.0f} runs without one.", edge)
               : "No searcher found a batch that fits.";
  }
  [[nodiscard]] std::string head_line() const override {
    const BatchSearchSetup& setup = scenario_.buckets.front().setup;
    const auto& limit = setup.cards.front().allocator.limit;
    if (dynamic_cast<const LargestBatches*>(setup.model) != nullptr) {
      return fmt::format("{}: from largest batches that were given; nothing was probed", scenario_.name);
    }
    const MeasuredModel* measured = measured_model(setup);
    return fmt::format("{}: batch {} to {} on {}{}{}", scenario_.name, setup.low, setup.high,
                       card_text(scenario_, limit),
                       has_epoch(scenario_) ? fmt::format(", then {} steps", scenario_.epoch.iterations) : "",
                       measured != nullptr ? "; peaks from " + measured->basis() : "");
  }
  [[nodiscard]] std::vector<Table> tables() const override { return {results_table(scenario_, results_)}; }
  [[nodiscard]] std::vector<Unmet> unmet() const override {
    const BatchSearchSetup& setup = scenario_.buckets.front().setup;
    std::int64_t steps = 0;
    SimTime end{0};
    for (const SearchResult& result : results_) {
      std::int64_t of_policy = 0;
      SimTime time = setup.start + result.epoch.duration;
      for (const BucketResult& bucket : result.buckets) {
        time += bucket.run.duration;
        for (const SearchTrial& trial : bucket.run.trials) {
          of_policy += std::accumulate(trial.steps.begin(), trial.steps.end(), std::int64_t{0});
        }
      }
      steps = std::max(steps, of_policy);
      end = std::max(end, time);
    }
    if (steps == 0) return {};
    std::vector<Unmet> unmet = unmet_faults(setup.faults, steps);
    const SearchEpochSetup& epoch = scenario_.epoch;
    if (epoch.iterations > 0 && epoch.phases_every > epoch.iterations) {
      unmet.push_back(
          {"/then_epoch/phases_every", fmt::format("phases come after every {} steps, and the epoch has {}",
                                                   epoch.phases_every, epoch.iterations)});
    }
    if (setup.model->timed()) std::ranges::move(unmet_others(setup.others, end), std::back_inserter(unmet));
    return unmet;
  }
  [[nodiscard]] std::vector<std::string> endings() const override {
    std::vector<std::string> lines;
    for (const SearchResult& result : results_) {
      for (const BucketResult& bucket : result.buckets) {
        if (bucket.run.answer.action != SearcherAnswer::Action::give_up) continue;
        lines.push_back(fmt::format("{} gave up: {}.", result.label, bucket.run.answer.reason));
      }
    }
    const auto add = [&](const std::vector<std::string>& more) {
      lines.insert(lines.end(), more.begin(), more.end());
    };
    add(texts_of_answers(scenario_, results_, [&](const SearchBucket& bucket, const BucketResult& result) {
      return bound_text(scenario_, bucket, result);
    }));
    add(texts_of_answers(scenario_, results_, beyond_text));
    return lines;
  }
  [[nodiscard]] Json json() const override { return judged(search_json(scenario_, results_)); }
  [[nodiscard]] std::vector<Decisions> decisions() const override {
    std::vector<Decisions> all;
    for (const SearchResult& result : results_) {
      all.push_back({.label = result.label, .lines = {}});
      for (const BucketResult& bucket : result.buckets) add_search_decisions(bucket, all.back().lines);
      if (!has_epoch(scenario_)) continue;
      all.back().lines.push_back(
          fmt::format("epoch: {} steps, {} ran out of memory", result.epoch.iterations, result.epoch.ooms));
    }
    return all;
  }
  [[nodiscard]] std::vector<Json> sections() const override {
    return {starred(search_section(json(), {verdict(), head_line()}, scenario_.description), "results")};
  }
};

}  // namespace

void perform_on(const Question& question, SearchScenario& scenario) {
  for (SearchBucket& bucket : scenario.buckets) {
    require_cards(question, scenario, bucket.setup.cards.size(), "/more_devices");
    bucket.setup.make_performer = question.make_performer;
  }
}

Json find_batch_json(const SearchScenario& scenario, const SearchResult& result) {
  // The last bucket, that of the longest samples, speaks for all.
  Json json = bucket_json(scenario, scenario.buckets.back(), result.buckets.back());
  json.erase("bucket");
  json["scenario"] = scenario.name;
  json["context_assumed"] = scenario.context_assumed;
  json["policy"] = result.label;
  if (scenario.buckets.size() > 1) {
    json["buckets"] = Json::array();
    for (std::size_t i = 0; i < result.buckets.size(); ++i) {
      json["buckets"].push_back(bucket_json(scenario, scenario.buckets[i], result.buckets[i]));
    }
  }
  if (has_epoch(scenario)) json["epoch"] = epoch_json(result.epoch);
  json["metrics"] = figures_json(result.metrics);
  return json;
}

Json search_json(const SearchScenario& scenario, const std::vector<SearchResult>& results) {
  Json json;
  json["scenario"] = scenario.name;
  json["seed"] = scenario.seed;
  json["context_assumed"] = scenario.context_assumed;
  json["policies"] = Json::array();
  for (const SearchResult& result : results) {
    Json entry = find_batch_json(scenario, result);
    entry.erase("scenario");
    entry.erase("context_assumed");
    entry["policy"] = result.policy;
    entry["profile"] = result.profile;
    entry["label"] = result.label;
    json["policies"].push_back(std::move(entry));
  }
  return json;
}

bool is_beyond_points(const SearchBucket& bucket, std::int64_t batch) {
  const BatchSearchSetup& setup = bucket.setup;
  for (const SearchPhase& phase : setup.phases) {
    const MeasuredModel* model = measured_model(setup, phase);
    if (model == nullptr) continue;
    Point point = phase.point;
    point[setup.parameter] = batch;
    if (model->extrapolates(point)) return true;
    if (&phase != &setup.phases.front()) continue;
    for (const StepDraw& draw : bucket.draws) {
      for (const std::int64_t end : {draw.low, draw.high}) {
        Point drawn = point;
        drawn[draw.parameter] = end;
        if (model->extrapolates(drawn)) return true;
      }
    }
  }
  return false;
}

std::string beyond_text(const SearchBucket& bucket, const BucketResult& result) {
  const std::int64_t batch = result.run.answer.batch;
  const bool answered = result.found() && !result.is_given && is_beyond_points(bucket, batch);
  if (!answered && (result.edge == 0 || !is_beyond_points(bucket, result.edge))) return {};
  return fmt::format("{}{} lies beyond the {}: its peak is extrapolated",
                     bucket.name.empty() ? "" : bucket.name + ": ",
                     answered ? std::to_string(batch) : fmt::format("the edge, {},", result.edge),
                     measured_model(bucket.setup)->basis());
}

BatchBound bound_of(const SearchScenario& scenario, const SearchBucket& bucket, const BucketResult& result) {
  const SearcherAnswer& answer = result.run.answer;
  if (!result.found()) return BatchBound::memory;
  if (std::max(answer.batch, answer.largest_good) >= bucket.setup.high) return scenario.high_bound;
  return answer.by_option ? BatchBound::searcher : BatchBound::memory;
}

std::string bound_text(const SearchScenario& scenario, const SearchBucket& bucket,
                       const BucketResult& result) {
  const BatchBound bound = bound_of(scenario, bucket, result);
  if (bound == BatchBound::memory) return {};
  const std::int64_t end = bound == BatchBound::searcher
                               ? std::max(result.run.answer.batch, result.run.answer.largest_good)
                               : bucket.setup.high;
  std::string text = fmt::format("{}{} is where {}", bucket.name.empty() ? "" : bucket.name + ": ", end,
                                 name_of(bound).text);
  if (result.check && result.check->probe.outcome == ProbeOutcome::ok) {
    text +=
        fmt::format(" ({:.0f} % of the card{})", 100 * probed_usage(result.check->probe, CardsRule::fullest),
                    result.run.answer.batch == end ? "" : fmt::format(" at {}", result.run.answer.batch));
  }
  return text;
}

std::string_view probe_outcome_name(ProbeOutcome outcome) {
  constexpr std::array kNames{"ok", "oom", "held", "failed"};
  static_assert(kNames.size() == static_cast<std::size_t>(ProbeOutcome::failed) + 1);
  return kNames[static_cast<std::size_t>(outcome)];
}

Json search_section(const Json& result, const SectionHead& head, const std::string& description) {
  Json json = begun_section("search", result.at("scenario").get<std::string>(), head);
  json["description"] = description;
  json["limit"] = nullptr;
  json["metrics"] = metrics_json(search_metric_table());
  json["results"] = Json::array();
  json["policies"] = Json::array();
  for (const Json& policy : result.at("policies")) {
    const auto label = policy["label"].get<std::string>();
    json["results"].push_back({{"label", label}, {"metrics", policy["metrics"]}});
    for (const Json& search : policy.value("buckets", Json::array({policy}))) {
      const std::string bucket = search.value("bucket", std::string{});
      Json ladder{{"label", bucket.empty() ? label : label + ", " + bucket}};
      for (const char* key :
           {"batch", "found", "edge_batch", "headroom_bytes", "extrapolated", "reason", "trials"}) {
        ladder[key] = search.at(key);
      }
      json["policies"].push_back(std::move(ladder));
    }
    const Json& trials = json["policies"].back()["trials"];
    if (!trials.empty()) json["limit"] = trials.front().at("total_bytes");
  }
  return json;
}

Kind search_kind() {
  return {
      .name = "search",
      .table = search_table,
      .schema = [](const PolicySet& known) { return kind_schema(search_table(), known.searchers); },
      .metrics = search_metric_table,
      .read = [](const ScenarioDocument& document, const Question& question) -> std::unique_ptr<Experiment> {
        SearchScenario scenario = read_search(document);
        perform_on(question, scenario);
        return std::make_unique<SearchExperiment>(std::move(scenario), question);
      },
      .sweep_metric = "batch",
      .has_steps = true};
}

}  // namespace vramlab
