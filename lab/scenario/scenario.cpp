#include "lab/scenario/scenario.hpp"

#include "lab/scenario/sweep.hpp"

namespace vramlab {

std::string card_text(const Scenario& scenario, const std::optional<Bytes>& limit) {
  return scenario.gpu + (scenario.context_assumed ? " (context assumed)" : "") +
         (limit ? " limited to " + format_bytes(*limit) : "");
}

std::string assumed_context_text(const Scenario& scenario) {
  if (!scenario.context_assumed) return {};
  return "Context assumed: 527 MiB on " + scenario.gpu + ", as measured on an H100 and an H200.";
}

std::vector<Row<Scenario>> head_rows(const std::string& kind) {
  using S = Scenario;
  return {
      {"$schema", unkept<S>(FieldKind::text), "", 0, 0, "for editors: where the schema of this file lies"},
      {"version", unkept<S>(FieldKind::integer), "", 1, 1, "version of this format, 1", kRequired},
      {"kind", unkept<S>(FieldKind::choice, {kind}), "", 0, 0,
       "what is simulated: training, jobs (docs/job-queue.md), epoch (docs/mixed-tasks.md), search "
       "(docs/batch-size-finder.md), snapshot, a recorded program, or regression, two of them "
       "(docs/regression.md)",
       kRequired},
      {"name", &S::name, "", 0, 0, "a short name", kRequired},
      {"description", &S::description, "", 0, 0, "what the scenario shows"},
  };
}

std::vector<Row<Scenario>> seed_rows() {
  return {{"seed", as(FieldKind::integer, &Scenario::seed), "", 0, 9007199254740991.0,
           "seed of everything random"}};
}

std::vector<Row<ScenarioSections>> plugins_rows() {
  return {{"plugins", &ScenarioSections::plugins, "", 0, 0,
           "shared libraries with further policies, looked up beside the scenario (docs/plugins.md)"}};
}

std::vector<Row<ScenarioSections>> policies_rows(const std::string& help, bool required) {
  return {
      {"policies", list_of(&ScenarioSections::policy_sections, policy_table()), "", 0, 0, help, required}};
}

std::vector<Row<Scenario>> expectations_rows(const Record<Expectation>& table) {
  return {{"expect", list_of(&Scenario::expectations, table), "", 0, 0,
           "what `vramlab check` holds the runs against"}};
}

std::vector<Row<Scenario>> sweep_rows() {
  return {{"sweep", unkept_list<Scenario>(sweep_table()), "", 0, 0,
           "keys to vary: `vramlab compare` runs every combination; `check` and `run` leave it aside"}};
}

}  // namespace vramlab
