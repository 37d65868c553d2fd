// vramlab explain: what an out-of-memory message means, why it came, and what would have helped.
#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <sstream>

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
constexpr std::array kOutcomes{"holds", "explained", "broken", "open"};
constexpr std::array kHelps{"yes", "perhaps", "no"};

const char* name_of(FigureCheck::Outcome outcome) { return kOutcomes.at(static_cast<std::size_t>(outcome)); }
const char* name_of(OomAdvice::Helps helps) { return kHelps.at(static_cast<std::size_t>(helps)); }

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + '.';
}

/// What a text holds: its failures, or counters alone.
struct Explained {
  OomLog log;
  std::vector<OomDiagnosis> diagnoses;  ///< of each failure, or of each device's counters
};

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
  json["computed"] = Json::array();
  for (const ExplainedFigure& figure : diagnosis.figures) {
    json["figures"][figure.name] = figure.bytes;
    json["rounding"][figure.name] = {figure.low, figure.high};
    if (!figure.given) json["computed"].push_back(figure.name);
  }
  json["cause"] = name_of(diagnosis.cause);
  json["verdict"] = diagnosis.verdict;
  json["paging"] = diagnosis.paging;
  json["possible_causes"] = Json::array();
  for (const PossibleCause& one : diagnosis.possible_causes) {
    json["possible_causes"].push_back(
        {{"cause", one.cause}, {"speaks_for", one.speaks_for}, {"how_to_tell", one.how_to_tell}});
  }
  json["short_by_bytes"] = diagnosis.short_by ? Json(*diagnosis.short_by) : Json(nullptr);
  json["short_by_at_most_bytes"] =
      diagnosis.short_by_at_most ? Json(*diagnosis.short_by_at_most) : Json(nullptr);
  json["idle_bytes"] = diagnosis.idle ? Json(*diagnosis.idle) : Json(nullptr);
  json["others_bytes"] = diagnosis.others ? Json(*diagnosis.others) : Json(nullptr);
  json["own_process_listed_as"] = diagnosis.own_pid ? Json(*diagnosis.own_pid) : Json(nullptr);
  json["notes"] = diagnosis.notes;
  json["commands"] = diagnosis.commands;
  json["steps"] = diagnosis.steps;
  json["checks_next"] = diagnosis.checks_next;
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

// What stands beside the message that is explained.
Json log_json(const Explained& explained) {
  const OomLog& log = explained.log;
  Json json;
  json["messages"] = Json::array();
  for (std::size_t i = 0; i < log.failures.size(); ++i) {
    const LoggedOom& one = log.failures[i];
    json["messages"].push_back({{"writer", one.writer},
                                {"times", one.times},
                                {"device", one.message.device ? Json(*one.message.device) : Json(nullptr)},
                                {"cause", name_of(explained.diagnoses[i].cause)},
                                {"verdict", explained.diagnoses[i].verdict}});
  }
  json["counters"] = Json::array();
  for (const MemoryCounters& counters : log.counters) {
    Json values = Json::object();
    for (const auto& [key, value] : counters.values) values[key] = value.bytes;
    json["counters"].push_back({{"source", counters.from_summary ? "memory_summary" : "memory_stats"},
                                {"device", counters.device ? Json(*counters.device) : Json(nullptr)},
                                {"values", std::move(values)}});
  }
  json["nvidia_smi"] = Json::array();
  for (const SmiProcess& process : log.smi_processes) {
    json["nvidia_smi"].push_back({{"gpu", process.gpu},
                                  {"pid", process.pid},
                                  {"name", process.name},
                                  {"bytes", process.bytes ? Json(*process.bytes) : Json(nullptr)}});
  }
  json["settings"] = log.settings;
  json["torch_version"] = log.torch_version.empty() ? Json(nullptr) : Json(log.torch_version);
  json["platform"] = log.platform.empty() ? Json(nullptr) : Json(log.platform);
  return json;
}

// The page that is shown without --details: at most a screen.
class Page {
 public:
  static constexpr std::size_t kMostLines = 25;
  static constexpr std::size_t kWidth = 100;

  // As many possible causes and further messages as fit.
  static std::vector<std::string> of(const Explained& explained) {
    std::vector<std::string> lines;
    for (std::size_t most = 5; most > 0; --most) {
      lines = Page{explained, most}.lines();
      if (lines.size() <= kMostLines) return lines;
    }
    lines.resize(kMostLines - 1);
    lines.emplace_back("…; --details shows all.");
    return lines;
  }

 private:
  Page(const Explained& explained, std::size_t most)
      : explained_(explained), diagnosis_(explained.diagnoses.front()), most_(most) {}

  std::vector<std::string> lines() {
    add("", fmt::format("Cause: {}. {}", name_of(diagnosis_.cause), sentence(diagnosis_.verdict)));
    part("", diagnosis_.key_figures);
    beside();
    for (const std::string& note : diagnosis_.notes) add("", note);
    further_messages();
    what_to_do();
    possible_causes();
    part("What to check", diagnosis_.checks_next);
    lines_.emplace_back();
    add("", "--details shows every figure, what was checked, and what each measure would have done.");
    return std::move(lines_);
  }

  // Wrapped between words; lines after the first are as far in as the text of the first.
  void add(std::string_view begin, std::string_view text) {
    std::string line{begin};
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      if (line.size() > begin.size() && line.size() + 1 + end > kWidth) {
        lines_.push_back(std::move(line));
        line = std::string(begin.size(), ' ');
      }
      if (line.size() > begin.size()) line += ' ';
      line.append(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    lines_.push_back(std::move(line));
  }

  void part(const char* title, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    lines_.emplace_back();
    if (*title != '\0') lines_.emplace_back(title);
    for (const std::string& text : texts) add(*title == '\0' ? "" : "  - ", text);
  }

  void what_to_do() {
    if (diagnosis_.commands.empty() && diagnosis_.steps.empty()) return;
    lines_.emplace_back();
    lines_.emplace_back("What to do");
    for (const std::string& command : diagnosis_.commands)
      lines_.push_back("  " + command);  // one line, to be copied
    for (const std::string& step : diagnosis_.steps) add("  - ", step);
  }

  void possible_causes() {
    const auto& causes = diagnosis_.possible_causes;
    if (causes.empty()) return;
    lines_.emplace_back();
    lines_.emplace_back("Possible causes, the likeliest first, and how to tell");
    for (std::size_t i = 0; i < std::min(causes.size(), most_); ++i) {
      add(fmt::format("  {}. ", i + 1),
          fmt::format("{}: {}. To tell: {}.", causes[i].cause, causes[i].speaks_for, causes[i].how_to_tell));
    }
  }

  // Counters and nvidia-smi's table that stand beside a message.
  void beside() {
    const OomLog& log = explained_.log;
    if (!log.failures.empty()) {
      for (std::size_t i = 0; i < std::min(log.counters.size(), most_); ++i) {
        const OomDiagnosis counters = diagnose_counters(log.counters[i]);
        std::string line = counters.layout + " beside it";
        for (const std::string& figures : counters.key_figures)
          line += (&figures == &counters.key_figures[0] ? ": " : "; ") + figures;
        add("", line);
      }
    }
    if (log.smi_processes.empty()) return;
    std::string line = "nvidia-smi beside it (of another moment):";
    for (std::size_t i = 0; i < std::min(log.smi_processes.size(), most_); ++i) {
      const SmiProcess& one = log.smi_processes[i];
      line += fmt::format("{} GPU {} process {} ({}) {}", i == 0 ? "" : ",", one.gpu, one.pid, one.name,
                          one.bytes ? oom_size(*one.bytes) : "of unknown size");
    }
    if (log.smi_processes.size() > most_)
      line += fmt::format(" and {} more", log.smi_processes.size() - most_);
    add("", line + ".");
  }

  static std::string described(const LoggedOom& failure, const OomDiagnosis& diagnosis) {
    std::string text = failure.writer.empty() ? "a message" : failure.writer;
    if (failure.message.tried) text += fmt::format(", {} asked", failure.message.tried->text);
    if (failure.message.device) text += fmt::format(" on device {}", *failure.message.device);
    if (failure.times > 1) text += fmt::format(" ({} times)", failure.times);
    return text + ": " + name_of(diagnosis.cause);
  }

  void further_messages() {
    const auto& failures = explained_.log.failures;
    if (failures.empty()) {
      if (explained_.diagnoses.size() > 1)
        add("", fmt::format("The text holds the counters of {} devices; these are the first ones.",
                            explained_.diagnoses.size()));
      return;
    }
    if (failures.size() == 1) {
      if (failures.front().times > 1)
        add("", fmt::format("The text holds this message {} times.", failures.front().times));
      return;
    }
    const std::string& first = failures.front().writer;
    lines_.emplace_back();
    add("", fmt::format("The text holds {} messages; {}, and is explained here.", failures.size(),
                        first.empty() ? "this one is the first" : first + " is the first in it"));
    for (std::size_t i = 0; i < std::min(failures.size(), most_); ++i) {
      add(fmt::format("  {}. ", i + 1), described(failures[i], explained_.diagnoses[i]));
    }
    if (failures.size() > most_) add("  ", fmt::format("and {} more", failures.size() - most_));
  }

  const Explained& explained_;
  const OomDiagnosis& diagnosis_;
  std::size_t most_;
  std::vector<std::string> lines_;
};

Explained diagnose(InputFile& file) {
  const std::string name = file.name();
  if (file.whole().find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw InputError(name, "is empty.");
  const FileKind kind = require_kind(file, {FileKind::oom_message, FileKind::memory_stats});
  const std::string text = file.rest();
  Explained explained{.log = read_oom_log(text), .diagnoses = {}};
  const OomLog& log = explained.log;
  const bool looks_like_json = text.find_first_of("\"'") == text.find('"');
  const bool one_result =
      log.failures.empty() && (log.counters.size() == 1 ? looks_like_json : log.counters.empty());
  if (kind == FileKind::memory_stats && one_result) {
    explained.diagnoses = {diagnose_memory_stats(parse_json(text, name), name)};
    return explained;
  }
  for (const LoggedOom& failure : log.failures)
    explained.diagnoses.push_back(diagnose_oom(failure.message, name, log));
  if (log.failures.empty()) {
    for (const MemoryCounters& counters : log.counters)
      explained.diagnoses.push_back(diagnose_counters(counters));
  }
  if (explained.diagnoses.empty()) explained.diagnoses = {diagnose_oom({}, name)};  // says what is wanted
  return explained;
}

void add_explain_options(Options& options) {
  options.add_options()("details", po::bool_switch(),
                        "every figure, what was checked, and what each measure would have done");
  add_output_options(options);
}

int run_explain(const Arguments& arguments, Output& output) {
  const auto files = operands(arguments);
  const bool from_input = files.empty() || files.front() == "-";
  if (!from_input) require_output_names(files, {text_of(arguments, "json")});
  std::istringstream given;
  if (const std::string* text = output.given_text("-")) given.str(*text);
  const bool ours = output.call() == nullptr;
  std::istream& input = ours ? std::cin : given;
  InputFile file =
      from_input ? InputFile{input, ours ? "standard input" : "the text"} : InputFile{files.front()};
  const Explained explained = diagnose(file);
  const bool details = arguments["details"].as<bool>();
  for (const std::string& line : Page::of(explained)) output.line(line);
  for (const OomDiagnosis& diagnosis : explained.diagnoses) {
    if (!details) break;
    if (explained.diagnoses.size() > 1)
      output.line("\n{}. {}", name_of(diagnosis.cause), sentence(diagnosis.verdict));
    if (!diagnosis.figures.empty()) output.next_table(figures_table(diagnosis));
    if (!diagnosis.checks.empty()) output.next_table(checks_table(diagnosis));
    if (!diagnosis.advice.empty()) output.next_table(advice_table(diagnosis));
  }
  Json json = diagnosis_json(explained.diagnoses.front());
  json.update(log_json(explained));
  output.json(json);
  return kDone;
}

}  // namespace

Verb explain_verb() {
  return {.name = "explain",
          .summary = "an out-of-memory message: its cause, the figures that decide, what would have helped",
          .operands = "[FILE]",
          .count = {0, 1},
          .example = "vramlab explain docs/examples/oom-neighbour.txt",
          .add_options = add_explain_options,
          .run = run_explain};
}

}  // namespace vramlab
