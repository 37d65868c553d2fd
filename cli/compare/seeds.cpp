#include "cli/compare/seeds.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cli/compare/spreads.hpp"
#include "cli/output/tasks.hpp"
#include "lab/scenario/result_keys.hpp"
#include "lab/tasks.hpp"

namespace vramlab {
namespace {

std::vector<Task> seed_tasks(const std::vector<ScenarioDocument>& documents,
                             const std::vector<std::string>& labels, const Question& question) {
  std::vector<std::string> asked = labels;
  asked.emplace_back("seeds");
  ResultKeys keys{VRAMLAB_VERSION};
  std::vector<Task> tasks;
  Question of_one = question;
  of_one.seeds = 1;
  for (const ScenarioDocument& document : documents) {
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(question.seeds); ++i) {
      const ScenarioDocument drawn = at_seed(document, i);
      tasks.push_back(
          {.name = fmt::format("{}, seed {}", document.file, drawn.json.value("seed", std::uint64_t{1})),
           .key = keys.of(drawn, asked),
           .length = length_of(drawn),
           .perform = [&document, &labels, of_one, i] {
             const auto experiment = read_experiment(at_seed(document, i), of_one);
             experiment->leave_out_oracle();
             experiment->run(labels);
             return labelled_json(experiment->figures());
           }});
    }
  }
  return tasks;
}

// The metric's mean over the seeds, and how far it lies apart.
Table means_table(const SeededFigures& figures, const std::vector<Spread>& spreads,
                  const MetricDescription& metric) {
  Table table{{left("policy"), "mean " + metric.title, "±"}};
  for (std::size_t i = 0; i < spreads.size(); ++i) {
    const auto cell = [&](const std::vector<LabelledFigures>& of) {
      const auto value = figure(of[i], metric.name);
      return value ? figure_text(*value, metric) : std::string{kNoFigure};
    };
    table.add_row({figures.means[i].label, cell(figures.means), cell(figures.spreads)});
  }
  return table;
}

// A scenario of which nothing is drawn is the same run with every seed.
bool are_alike(const SeedRuns& runs) {
  return std::ranges::all_of(
      runs, [&](const auto& run) { return labelled_json(run) == labelled_json(runs.front()); });
}

}  // namespace

std::vector<SeedRuns> run_seeds(const std::vector<ScenarioDocument>& documents,
                                const std::vector<std::string>& labels, const Question& question,
                                const Arguments& arguments, Output& output) {
  const std::vector<Task> tasks = seed_tasks(documents, labels, question);
  const bool on_card = question.make_performer != nullptr;  // there is one, and it takes one run at a time
  const std::vector<Json> results =
      on_card ? perform_all(tasks, 1) : perform_tasks(tasks, "runs", arguments, output).all();
  std::vector<SeedRuns> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (i % static_cast<std::size_t>(question.seeds) == 0) all.emplace_back();
    all.back().push_back(labelled_from(results[i]));
  }
  return all;
}

Json show_seeds(const ScenarioDocument& document, const Experiment& experiment, const SeedRuns& runs,
                const Arguments& arguments, Output& output) {
  const MetricDescription& metric = shown_metric(document, arguments);
  const auto spreads = spreads_of({runs.begin(), runs.end()}, metric);
  const SeededFigures figures = over_seeds(runs);
  const Scenario& scenario = experiment.scenario();
  output.line(sweep_verdict(spreads, metric, runs.size()));
  output.line("{}: seeds {} to {} of {} policies{}", scenario.name, scenario.seed,
              scenario.seed + runs.size() - 1, spreads.size(),
              scenario.context_assumed ? " (context assumed)" : "");
  if (are_alike(runs)) output.line("Nothing of it is drawn: every seed gives the same run.");
  if (const std::string rule = sweep_rule(metric); !rule.empty()) output.line(rule);
  output.next_table(spreads_table(spreads, metric));
  output.next_table(means_table(figures, spreads, metric));
  Json json{{"scenario", scenario.name},
            {"context_assumed", scenario.context_assumed},
            {"seeds", runs.size()},
            {"policies", Json::array()}};
  for (std::size_t i = 0; i < figures.means.size(); ++i) {
    json["policies"].push_back({{"label", figures.means[i].label},
                                {"metrics", figures_json(figures.means[i].metrics)},
                                {"spread", figures_json(figures.spreads[i].metrics)}});
  }
  return json;
}

}  // namespace vramlab
