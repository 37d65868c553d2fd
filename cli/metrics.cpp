// vramlab metrics: what each figure of a result means.
#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"

namespace vramlab {
namespace {

Table metrics_table(const Kind& kind) {
  Table table{{left("metric"), left("unit"), left("better"), left("meaning"), left("formula")}};
  for (const MetricDescription& metric : kind.metrics()) {
    const std::string better{better_name(metric.better)};
    table.add_row({"`" + metric.name + "`", metric.unit, better.empty() ? "-" : better, metric.about,
                   metric.formula.empty() ? "-" : metric.formula});
  }
  return table;
}

const Kind& asked_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw InputError("", "there are no metrics of kind \"" + name + "\"." + suggest_name(name, names));
}

// On a terminal a sentence is longer than a line: name and unit, and the meaning below.
void print_text(const Kind& kind, Output& output) {
  for (const MetricDescription& metric : kind.metrics()) {
    const std::string better =
        metric.better == Better::neither ? "" : fmt::format(", {} is better", better_name(metric.better));
    output.line("{} ({}{})\n    {}{}{}", metric.name, metric.unit, better, metric.about,
                metric.formula.empty() ? "" : "\n    = ", metric.formula);
  }
}

Json metrics_json(const Kind& kind) {
  Json list = Json::array();
  for (const MetricDescription& metric : kind.metrics()) {
    list.push_back({{"name", metric.name},
                    {"unit", metric.unit},
                    {"better", better_name(metric.better)},
                    {"meaning", metric.about},
                    {"formula", metric.formula}});
  }
  return list;
}

int run_metrics(const Arguments& arguments, Output& output) {
  Json json;
  const auto show = [&](const Kind& kind) {
    if (text_of(arguments, "format") == "text") {
      print_text(kind, output);
    } else {
      output.table(metrics_table(kind));
    }
    json[kind.name] = metrics_json(kind);
  };
  const auto names = operands(arguments);
  if (!names.empty()) {
    show(asked_kind(names.front()));
  } else {
    for (const Kind& kind : kinds()) {
      output.line("Scenarios of kind " + kind.name + ":\n");
      show(kind);
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
          .count = {0, 1},
          .example = "vramlab metrics training",
          .add_options = add_output_options,
          .run = run_metrics};
}

}  // namespace vramlab
