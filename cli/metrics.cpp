// vramlab metrics: what each figure of a result means.
#include <algorithm>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/metric.hpp"

namespace vramlab {
namespace {

Table metrics_table(const MetricFamily& family) {
  using Align = Table::Align;
  Table table{{{"metric", Align::left},
               {"unit", Align::left},
               {"better", Align::left},
               {"meaning", Align::left},
               {"formula", Align::left}}};
  for (const MetricDescription& metric : family.metrics) {
    const std::string better{better_name(metric.better)};
    table.add_row({"`" + metric.name + "`", metric.unit, better.empty() ? "-" : better, metric.about,
                   metric.formula.empty() ? "-" : metric.formula});
  }
  return table;
}

const MetricFamily& find_family(const std::string& kind) {
  std::vector<std::string> kinds;
  for (const MetricFamily& family : metric_families()) {
    if (family.kind == kind) return family;
    kinds.push_back(family.kind);
  }
  throw InputError("", "there are no metrics of kind \"" + kind + "\"." + suggest_name(kind, kinds));
}

// On a terminal a sentence is longer than a line: name and unit, and the meaning below.
void print_text(const MetricFamily& family, Output& output) {
  for (const MetricDescription& metric : family.metrics) {
    std::string line = metric.name + " (" + metric.unit;
    if (metric.better != Better::neither)
      line += ", " + std::string{better_name(metric.better)} + " is better";
    output.line(line + ")\n    " + metric.about +
                (metric.formula.empty() ? "" : "\n    = " + metric.formula));
  }
}

Json family_json(const MetricFamily& family) {
  Json list = Json::array();
  for (const MetricDescription& metric : family.metrics) {
    list.push_back({{"name", metric.name},
                    {"unit", metric.unit},
                    {"better", better_name(metric.better)},
                    {"meaning", metric.about},
                    {"formula", metric.formula}});
  }
  return list;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  Json json;
  const auto show = [&](const MetricFamily& family) {
    if (arguments["format"].as<std::string>() == "text") {
      print_text(family, output);
    } else {
      output.table(metrics_table(family));
    }
    json[family.kind] = family_json(family);
  };
  const auto kinds = operands(arguments);
  if (!kinds.empty()) {
    show(find_family(kinds.front()));
  } else {
    for (const MetricFamily& family : metric_families()) {
      output.line("Scenarios of kind " + family.kind + ":\n");
      show(family);
      output.line("");
    }
  }
  output.json(json);
  return kDone;
}

}  // namespace

Verb metrics_verb() {
  return {.name = "metrics",
          .summary = "what each figure of a result means, with its unit and formula",
          .operands = "[KIND]",
          .example = "vramlab metrics training",
          .least_operands = 0,
          .most_operands = 1,
          .add_options = add_output_options,
          .run = run};
}

}  // namespace vramlab
