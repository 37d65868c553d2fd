#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "cli/compare/kinds.hpp"
#include "core/error.hpp"
#include "lab/kinds/snapshot/spec.hpp"
#include "lab/page/sections.hpp"
#include "lab/whatif/view.hpp"

namespace vramlab {
namespace {

void keep_rows(SnapshotScenario& scenario, const std::vector<std::string>& labels) {
  if (labels.empty()) return;
  std::vector<std::string> known;
  for (const SnapshotRow& row : scenario.rows) known.push_back(row.label);
  for (const std::string& label : labels) {
    if (std::find(known.begin(), known.end(), label) != known.end()) continue;
    throw InputError(scenario.file, "no row is labelled \"" + label + "\"." + suggest_name(label, known));
  }
  std::erase_if(scenario.rows, [&](const SnapshotRow& row) {
    return std::find(labels.begin(), labels.end(), row.label) == labels.end();
  });
}

std::string verdict(const std::vector<SnapshotResult>& results) {
  const auto fits = [](const SnapshotResult& result) { return result.row.outcome.fits(); };
  const auto fitting = std::count_if(results.begin(), results.end(), fits);
  if (fitting == 0) return fmt::format("None of the {} rows fits.", results.size());
  const SnapshotResult* least = nullptr;
  for (const SnapshotResult& result : results) {
    if (fits(result) &&
        (least == nullptr || result.row.outcome.highest_reserved < least->row.outcome.highest_reserved)) {
      least = &result;
    }
  }
  return fmt::format("{} of {} rows fit; {} reserves the least, {}.", fitting, results.size(), least->label,
                     format_bytes(least->row.outcome.highest_reserved));
}

Json compare_snapshot(const SnapshotScenario& scenario, Output& output) {
  const ClientProgram& program = scenario.programs.front();
  const auto results = replay_rows(scenario, output.report().wanted());
  output.line(verdict(results));
  output.line(fmt::format("{}: {} actions of {}\n", scenario.name, program.actions.size(), program.file));
  Table table{{{"row", Table::Align::left},
               {"alloc-conf", Table::Align::left},
               {"card", Table::Align::left},
               {"reserved"},
               {"allocated"},
               {"retries"},
               {"fits", Table::Align::left}}};
  Json json{{"scenario", scenario.name}, {"rows", Json::array()}};
  for (const SnapshotResult& result : results) {
    const ProgramOutcome& outcome = result.row.outcome;
    table.add_row({result.label, conf_name(result.row.conf), room_name(result.row),
                   format_bytes(outcome.highest_reserved), format_bytes(outcome.highest_allocated),
                   fmt::format("{}", outcome.stats.num_alloc_retries), fit_text(program, result.row)});
    Json row{{"label", result.label}};
    row.update(result.json);
    json["rows"].push_back(std::move(row));
  }
  output.table(table);
  if (output.report().wanted()) {
    for (const SnapshotResult& result : results) {
      const SectionHead head{fmt::format("Fits: {}.", fit_text(program, result.row)),
                             fmt::format("{} on {}", conf_name(result.row.conf), room_name(result.row))};
      output.report().add(segments_section(result.row.kept->map, scenario.name + ", " + result.label, head));
    }
  }
  return json;
}

}  // namespace

ReadyComparison ready_snapshot_comparison(const ScenarioDocument& document,
                                          const ComparisonQuestion& question) {
  SnapshotScenario scenario = read_snapshot(document);
  keep_rows(scenario, question.labels);
  const auto shared = std::make_shared<const SnapshotScenario>(std::move(scenario));
  return [shared](Output& output) { return compare_snapshot(*shared, output); };
}

}  // namespace vramlab
