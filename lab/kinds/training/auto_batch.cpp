#include "lab/kinds/training/auto_batch.hpp"

#include <set>

#include <fmt/format.h>

#include "core/error.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/batch_search_loop.hpp"

namespace vramlab {
namespace {

TunerChoice searcher_choice(const Json& workload, FileProblems& problems) {
  TunerChoice choice{.use = "model", .profile = {}, .options = {}, .where = "/workload/searcher"};
  if (!workload.contains("searcher")) return choice;
  const Json& json = workload["searcher"];
  choice.use = json["use"].get<std::string>();
  choice.profile = json.value("profile", std::string{});
  static const std::set<std::string> kOwnKeys{"use", "profile"};
  choice.options = policy_options(json, kOwnKeys, choice.where, problems);
  return choice;
}

// A phase that sets a batch of its own keeps it.
bool follows(const Json& workload, std::size_t phase) {
  return !workload["phases"][phase].value("set", Json::object()).contains("batch");
}

}  // namespace

void find_batch_size(TrainingScenario& scenario, const Json& workload, FileProblems& problems) {
  TrainingSetup& setup = scenario.setup;
  const std::size_t batch = setup.bounds.find("batch").value();
  const Parameter& range = setup.bounds.parameters[batch];
  BatchSearchSetup search{.model = setup.model,
                          .parameter = batch,
                          .low = std::max<std::int64_t>(range.low, 1),
                          .high = range.high,
                          .phases = {{.name = "training", .point = setup.start}},
                          .cards = cards_of(setup)};
  for (std::size_t i = 0; i < setup.phases.size(); ++i) {
    if (follows(workload, i)) search.phases.push_back({setup.phases[i].name, setup.phases[i].point});
  }
  const TunerChoice choice = searcher_choice(workload, problems);
  const auto searcher = make_searcher(choice, scenario.known->searchers);
  const BatchSearchRun run = run_batch_search(search, *searcher);
  if (run.answer.action != SearcherAnswer::Action::found) throw InputError("", run.answer.reason + ".");
  setup.start[batch] = run.answer.batch;
  for (std::size_t i = 0; i < setup.phases.size(); ++i) {
    if (follows(workload, i)) setup.phases[i].point[batch] = run.answer.batch;
  }
  scenario.batch_note =
      fmt::format("auto_batch_size: {} by {}, {} probes in {:.1f} s, {} OOMs ({}).", run.answer.batch,
                  choice.use, run.trials.size(), to_seconds(run.duration), run.ooms, run.answer.reason);
}

}  // namespace vramlab
