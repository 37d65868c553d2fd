// vramlab explain: what an out-of-memory message means, why it came, and what would have helped.
#include <array>
#include <cctype>
#include <iostream>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/oom/diagnosis.hpp"
#include "recordings/open.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

// In the order of the enumerations.
constexpr std::array kOutcomes{"holds", "explained", "broken"};
constexpr std::array kHelps{"yes", "perhaps", "no"};

const char* name_of(FigureCheck::Outcome outcome) { return kOutcomes.at(static_cast<std::size_t>(outcome)); }
const char* name_of(OomAdvice::Helps helps) { return kHelps.at(static_cast<std::size_t>(helps)); }

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + '.';
}

Table figures_table(const OomDiagnosis& diagnosis) {
  Table table{{left("figure"), "size", "bytes", left(""), left("meaning")}};
  for (const ExplainedFigure& figure : diagnosis.figures) {
    const Bytes half = (figure.high - figure.low) / 2;
    table.add_row({figure.name, oom_size(figure.bytes), fmt::format("{}", figure.bytes),
                   half == 0 ? "" : fmt::format("±{}", half),
                   (figure.given ? "" : "(computed) ") + figure.meaning});
  }
  return table;
}

Table checks_table(const OomDiagnosis& diagnosis) {
  Table table{{left("check"), left(""), left("remark")}};
  for (const FigureCheck& check : diagnosis.checks) {
    table.add_row({check.what, name_of(check.outcome), check.remark});
  }
  return table;
}

Table advice_table(const OomDiagnosis& diagnosis) {
  Table table{{left("would it have helped?"), left(""), left("why")}};
  for (const OomAdvice& advice : diagnosis.advice) {
    table.add_row({advice.measure, name_of(advice.helps), advice.why});
  }
  return table;
}

Json diagnosis_json(const OomDiagnosis& diagnosis) {
  Json json;
  json["layout"] = diagnosis.layout;
  json["figures"] = Json::object();
  json["rounding"] = Json::object();
  for (const ExplainedFigure& figure : diagnosis.figures) {
    json["figures"][figure.name] = figure.bytes;
    json["rounding"][figure.name] = {figure.low, figure.high};
  }
  json["cause"] = name_of(diagnosis.cause);
  json["verdict"] = diagnosis.verdict;
  json["short_by_bytes"] = diagnosis.short_by ? Json(*diagnosis.short_by) : Json(nullptr);
  json["idle_bytes"] = diagnosis.idle ? Json(*diagnosis.idle) : Json(nullptr);
  json["others_bytes"] = diagnosis.others ? Json(*diagnosis.others) : Json(nullptr);
  json["checks"] = Json::array();
  for (const FigureCheck& check : diagnosis.checks) {
    json["checks"].push_back(
        {{"check", check.what}, {"outcome", name_of(check.outcome)}, {"remark", check.remark}});
  }
  json["advice"] = Json::array();
  for (const OomAdvice& advice : diagnosis.advice) {
    json["advice"].push_back(
        {{"measure", advice.measure}, {"helps", name_of(advice.helps)}, {"why", advice.why}});
  }
  return json;
}

struct Explained {
  OomDiagnosis diagnosis;
  std::size_t messages = 1;
};

Explained diagnose(InputFile& file) {
  const std::string name = file.name();
  if (file.whole().find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw InputError(name, "is empty.");
  const FileKind kind = require_kind(file, {FileKind::oom_message, FileKind::memory_stats});
  const std::string text = file.rest();
  if (kind == FileKind::memory_stats) return {diagnose_memory_stats(parse_json(text, name), name)};
  const OomMessage message = parse_oom_message(text);
  return {diagnose_oom(message, name), message.messages};
}

int run_explain(const Arguments& arguments, Output& output) {
  const auto files = operands(arguments);
  const bool from_input = files.empty() || files.front() == "-";
  if (!from_input) require_output_names(files, {text_of(arguments, "json")});
  InputFile file = from_input ? InputFile{std::cin, "standard input"} : InputFile{files.front()};
  const auto [diagnosis, messages] = diagnose(file);
  output.line("Cause: {}. {}", name_of(diagnosis.cause), sentence(diagnosis.verdict));
  if (messages > 1) output.line("The text holds {} messages; this is the first one.", messages);
  if (!diagnosis.figures.empty()) output.next_table(figures_table(diagnosis));
  if (!diagnosis.checks.empty()) output.next_table(checks_table(diagnosis));
  if (!diagnosis.advice.empty()) output.next_table(advice_table(diagnosis));
  output.json(diagnosis_json(diagnosis));
  return kDone;
}

}  // namespace

Verb explain_verb() {
  return {.name = "explain",
          .summary = "an out-of-memory message: its figures, its cause, what would have helped",
          .operands = "[FILE]",
          .count = {0, 1},
          .example = "vramlab explain docs/examples/oom-neighbour.txt",
          .add_options = add_output_options,
          .run = run_explain};
}

}  // namespace vramlab
