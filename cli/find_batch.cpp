// vramlab find-batch: the largest safe batch, how it was found, the distance to the edge.
#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/verb.hpp"
#include "lab/kinds/search/spec.hpp"
#include "lab/scenario/file.hpp"
#include "policies/searchers/probe_books.hpp"

namespace vramlab {
namespace {

void add_find_batch_options(Options& options) {
  options.add_options()("policy", text_value("LABEL"), "the searcher (default: the first of the scenario)");
  add_device_options(options);
  add_plugin_option(options);
  add_report_option(options);
  add_output_options(options);
}

/// A searcher that the user may stop before its next probe. What it has found out is kept.
class WatchedSearcher : public Searcher {
 public:
  WatchedSearcher(std::unique_ptr<Searcher> own, LongWork& work) : own_(std::move(own)), work_(work) {}

  [[nodiscard]] ProbeDepth depth() const override { return own_->depth(); }
  [[nodiscard]] std::vector<Statistic> statistics() const override { return own_->statistics(); }
  SearcherAnswer decide(const SearcherQuestion& question, const Observation& observation) override {
    if (work_.is_stopped()) throw PolicyFault("stopped by the user");
    if (has_begun_) work_.step();  // the first question comes before the first probe
    has_begun_ = true;
    return own_->decide(question, observation);
  }

 private:
  std::unique_ptr<Searcher> own_;
  LongWork& work_;
  bool has_begun_ = false;
};

std::shared_ptr<const PolicySet> watched(const PolicySet& known, LongWork& work) {
  auto set = std::make_shared<PolicySet>(known);
  for (SearcherEntry& entry : set->searchers.entries) {
    entry.make = [make = entry.make, &work](const OptionMap& options) {
      return std::make_unique<WatchedSearcher>(make(options), work);
    };
  }
  return set;
}

std::string answer_text(const SearchScenario& scenario, std::size_t number, const BucketResult& result) {
  const SearchBucket& bucket = scenario.buckets[number];
  const SearcherAnswer& answer = result.run.answer;
  const std::string where = bucket.name.empty() ? "" : bucket.name + ": ";
  if (!result.found()) return fmt::format("{}No batch was found: {}.", where, answer.reason);
  if (result.is_given) {
    return fmt::format("{}Batch {}{} ({}); nothing was probed.", where, answer.batch,
                       answer.extrapolated ? " (untried)" : "", answer.reason);
  }
  const bool edge_known = result.edge < bucket.setup.high;
  std::string text = fmt::format("{}Batch {}{} after {} probes; {} ({}).", where, answer.batch,
                                 answer.extrapolated ? " (untried)" : "", result.run.trials.size(),
                                 edge_known ? fmt::format("at most {} fits", result.edge)
                                            : fmt::format("{}, the largest allowed, runs", result.edge),
                                 answer.reason);
  if (result.check && result.check->probe.outcome != ProbeOutcome::ok) text += " It does not fit.";
  if (const std::string bound = bound_text(scenario, bucket, result); !bound.empty())
    text += " " + bound + ".";
  if (const std::string beyond = beyond_text(bucket, result); !beyond.empty()) text += " " + beyond + ".";
  return text;
}

Table trials_table(const SearchBucket& bucket, const BatchSearchRun& run) {
  const BatchSearchSetup& setup = bucket.setup;
  std::vector<Table::Column> columns{"batch", left("outcome"), left("phase")};
  for (std::size_t i = 0; i < setup.cards.size(); ++i) {
    columns.push_back({setup.cards.size() > 1 ? fmt::format("peak of card {}", i) : "peak"});
  }
  columns.insert(columns.end(), {"usage", "a sample", "time"});
  Table table{std::move(columns)};
  for (const SearchTrial& trial : run.trials) {
    const Probe& probe = trial.probe;
    const char* beyond = is_beyond_points(bucket, probe.batch) ? ", extrapolated" : "";
    std::vector<std::string> cells{std::to_string(probe.batch),
                                   std::string{probe_outcome_name(probe.outcome)} + beyond, probe.phase};
    Bytes grown = 0;
    for (const ProbedCard& card : probe.cards) {
      cells.push_back(format_bytes(card.peak));
      grown += card.peak - std::min(card.start, card.peak);
    }
    cells.push_back(fmt::format("{:.1f} %", 100 * probed_usage(probe, CardsRule::fullest)));
    cells.push_back(format_bytes(grown / static_cast<Bytes>(std::max<std::int64_t>(probe.batch, 1))));
    cells.push_back(setup.model->timed() ? fmt::format("{:.2f} s", to_seconds(trial.duration)) : kNoFigure);
    table.add_row(std::move(cells));
  }
  return table;
}

int run_find_batch(const Arguments& arguments, Output& output) {
  require_output_names(operands(arguments), {text_of(arguments, "json"), output.report_file()});
  const DeviceMakers device = chosen_device(arguments);
  LongWork work{0, "probes", arguments, output};
  SearchScenario scenario =
      read_search(output.scenario(operands(arguments).front(), chosen_policies(arguments, output)));
  perform_on({.make_performer = device.performer, .device_cards = device.cards}, scenario);
  auto label = text_of(arguments, "policy");
  if (label.empty()) label = scenario.policies.front().label;
  scenario.known = watched(*scenario.known, work);
  const SearchResult result = compare_searchers(scenario, {label}).front();
  bool found = true;
  for (std::size_t i = 0; i < scenario.buckets.size(); ++i) {
    output.line(answer_text(scenario, i, result.buckets[i]));
    found = found && result.buckets[i].found();
  }
  if (result.epoch.iterations > 0) {
    output.line("Of {} steps at it {} ran out of memory; their peak is {:.1f} % of the memory.",
                result.epoch.iterations, result.epoch.ooms, 100 * result.epoch.peak_share);
  }
  if (device.performer) output.line(kOnCard);
  if (scenario.context_assumed) output.line(assumed_context_text(scenario));
  for (std::size_t i = 0; i < scenario.buckets.size(); ++i) {
    if (result.buckets[i].is_given) continue;
    output.line("");
    if (!scenario.buckets[i].name.empty()) output.line(scenario.buckets[i].name);
    output.table(trials_table(scenario.buckets[i], result.buckets[i].run));
  }
  if (output.wants_report()) {
    output.add_section(
        search_section(search_json(scenario, {result}),
                       {answer_text(scenario, scenario.buckets.size() - 1, result.buckets.back()), ""},
                       scenario.description));
  }
  output.write_report();
  output.json(find_batch_json(scenario, result));
  if (work.was_stopped()) return kStoppedByUser;
  return found ? kDone : kExpectationFailed;
}

}  // namespace

Verb find_batch_verb() {
  return {.name = "find-batch",
          .summary = "the largest batch that fits, how it was found, the distance to the edge",
          .operands = "SCENARIO",
          .count = {1, 1},
          .example = "vramlab find-batch scenarios/find-gpt2.json --policy model",
          .add_options = add_find_batch_options,
          .run = run_find_batch};
}

}  // namespace vramlab
