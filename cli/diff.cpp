// vramlab diff: what grew between two snapshots or two models, or what changed between two results.
#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/diff/difference.hpp"
#include "lab/model/file.hpp"
#include "lab/model/prediction.hpp"
#include "lab/scenario/expectations.hpp"
#include "recordings/open.hpp"
#include "recordings/snapshot/peak_attribution.hpp"

namespace vramlab {
namespace {

void add_diff_options(Options& options) {
  options.add_options()("top", po::value<std::size_t>()->default_value(20)->value_name("N"),
                        "stack frames or laws to show; the others are one row (0 = all)")(
      "set", po::value<std::vector<std::string>>()->value_name("NAME=N"),
      "of two models: a parameter's value, batch=8; repeatable; default the middle of A's recorded range");
  add_grouping_options(options, "write stacks with their bytes in A and in B, for differential flame graphs");
  add_output_options(options);
}

std::string signed_size(std::int64_t bytes) {
  if (bytes == 0) return "0";
  return fmt::format("{}{}", bytes < 0 ? "-" : "+", format_bytes(static_cast<Bytes>(std::abs(bytes))));
}

// --- Snapshots and models ---

std::string growth_text(const GrowthRow& row) {
  return fmt::format("{} -> {} ({})", format_bytes(row.a), format_bytes(row.b), signed_size(row.growth()));
}

Table growth_table(const char* what, const std::string& counted) {
  return Table{{left(what), "A", "B", "growth", "bytes", counted + " A", counted + " B"}};
}

void add_row(Table& table, const GrowthRow& row, bool has_count = true) {
  table.add_row({row.name, format_bytes(row.a), format_bytes(row.b), signed_size(row.growth()),
                 fmt::format("{:+}", row.growth()), has_count ? fmt::format("{}", row.count_a) : "",
                 has_count ? fmt::format("{}", row.count_b) : ""});
}

// At most `top` rows, and one for the others; 0 = all.
void add_rows(Table& table, const std::vector<GrowthRow>& rows, std::size_t top) {
  const std::size_t shown = top == 0 ? rows.size() : std::min(top, rows.size());
  GrowthRow others{.name = fmt::format("({} others)", rows.size() - shown)};
  for (std::size_t i = 0; i < rows.size(); ++i) i < shown ? add_row(table, rows[i]) : others.add(rows[i]);
  if (shown < rows.size()) add_row(table, others);
}

Json row_json(const GrowthRow& row, const char* key, const std::string& counted) {
  return {{key, row.name},
          {"a_bytes", row.a},
          {"b_bytes", row.b},
          {"growth_bytes", row.growth()},
          {"a_" + counted, row.count_a},
          {"b_" + counted, row.count_b}};
}

Json rows_json(const std::vector<GrowthRow>& rows, const char* key, const std::string& counted) {
  Json json = Json::array();
  for (const GrowthRow& row : rows) json.push_back(row_json(row, key, counted));
  return json;
}

// Every byte of reserved memory is in exactly one row above the total.
Table shares_table(const char* what, const std::vector<GrowthRow>& shares, const PeakDifference& peaks,
                   std::size_t top) {
  Table table = growth_table(what, "blocks");
  add_rows(table, shares, top);
  add_row(table, {"(rounding, tails, cached)", peaks.a.rest, peaks.b.rest}, false);
  add_row(table, {"reserved", peaks.a.reserved, peaks.b.reserved}, false);
  return table;
}

std::string moment(const PeakAttribution& peak) {
  if (!peak.from_history) return "no history: as the snapshot found it";
  const std::string before =
      peak.before_recording == 0
          ? ""
          : fmt::format(", {} of it in use when recording began", format_bytes(peak.before_recording));
  return fmt::format("peak after entry {}{}", peak.entry, before);
}

bool has_stacks(const PeakDifference& peaks) {
  return std::any_of(peaks.by_group.begin(), peaks.by_group.end(),
                     [](const GrowthRow& row) { return row.name != kNoStack && row.name != kNoStackBefore; });
}

Json peaks_json(const PeakDifference& peaks, const std::string& by) {
  const auto pair = [](const GrowthRow& row) {
    return Json{{"a_bytes", row.a}, {"b_bytes", row.b}, {"growth_bytes", row.growth()}};
  };
  return {{"device", peaks.device},
          {"from_history", {{"a", peaks.a.from_history}, {"b", peaks.b.from_history}}},
          {"requested", pair({"", peaks.a.requested, peaks.b.requested})},
          {"rest", pair({"", peaks.a.rest, peaks.b.rest})},
          {"reserved", pair({"", peaks.a.reserved, peaks.b.reserved})},
          {"before_recording", pair({"", peaks.a.before_recording, peaks.b.before_recording})},
          {"by_" + by, rows_json(peaks.by_group, by.c_str(), "blocks")},
          {"by_size_class", rows_json(peaks.by_size_class, "size_class", "blocks")}};
}

/// How two snapshots are shown.
struct SnapshotView {
  Grouping grouping;
  std::string folded;  ///< file to write; may be empty
  std::size_t top = 0;
};

// A line a stack: frames, bytes in A, bytes in B. Of several devices each is a frame of its own at the
// bottom.
std::string folded_text(const std::vector<PeakDifference>& differences) {
  std::map<std::string, GrowthRow> rows;
  for (const PeakDifference& peaks : differences) {
    const std::string root = differences.size() > 1 ? fmt::format("device {};", peaks.device) : "";
    for (const auto& [stack, bytes] : peaks.a.folded) rows[root + stack].a = bytes;
    for (const auto& [stack, bytes] : peaks.b.folded) rows[root + stack].b = bytes;
  }
  std::string text;
  for (const auto& [stack, row] : rows) text += fmt::format("{} {} {}\n", stack, row.a, row.b);
  return text;
}

Json diff_snapshots(InputFile& file_a, InputFile& file_b, const SnapshotView& view, Output& output) {
  const std::string a = file_a.name();
  const std::string b = file_b.name();
  const TorchSnapshot snapshot_a = read_torch_snapshot(file_a);
  const TorchSnapshot snapshot_b = read_torch_snapshot(file_b);
  const auto differences = compare_peaks(snapshot_a, snapshot_b, view.grouping);
  for (const TorchSnapshot* snapshot : {&snapshot_a, &snapshot_b}) {
    for (const std::string& warning : snapshot->warnings) output.line("warning: " + warning);
  }
  const std::string by{kGroupNames[static_cast<std::size_t>(view.grouping.by)]};
  const std::string title = view.grouping.by == GroupBy::frame ? "stack frame" : by;
  Json devices = Json::array();
  for (const PeakDifference& peaks : differences) {
    output.line("Device {}: requested {}, reserved {}.", peaks.device,
                growth_text({"", peaks.a.requested, peaks.b.requested}),
                growth_text({"", peaks.a.reserved, peaks.b.reserved}));
    output.line("A = {} ({}), B = {} ({})", a, moment(peaks.a), b, moment(peaks.b));
    if (has_stacks(peaks)) output.next_table(shares_table(title.c_str(), peaks.by_group, peaks, view.top));
    output.next_table(shares_table("size class", peaks.by_size_class, peaks, 0));
    devices.push_back(peaks_json(peaks, by));
  }
  if (differences.empty()) output.line("Neither snapshot holds any memory.");
  if (!view.folded.empty()) output.write(view.folded, folded_text(differences));
  return {{"kind", "snapshots"}, {"a", a}, {"b", b}, {"devices", devices}};
}

// --- Results ---

std::string value_text(const std::optional<double>& value) { return value ? format_number(*value) : "-"; }

std::string change_text(const ValueDifference& value) {
  if (!value.a || !value.b) return "";
  if (*value.a == *value.b) return "0";
  const double change = *value.b - *value.a;
  const std::string text = fmt::format("{}{}", change > 0 ? "+" : "", format_number(change));
  if (*value.a == 0) return text;
  return fmt::format("{} ({:+.1f} %)", text, 100 * change / std::abs(*value.a));
}

void add_rows(Table& table, const std::string& label, const std::string& prefix,
              const std::vector<ValueDifference>& values) {
  for (const ValueDifference& value : values) {
    if (!value.differs()) continue;
    table.add_row({label, fmt::format("{}{}", prefix, value.name), value_text(value.a), value_text(value.b),
                   change_text(value)});
  }
}

Table result_table(const ResultDifference& result) {
  Table table{{left("policy"), left("figure"), "A", "B", "change"}};
  for (const PolicyDifference& policy : result.policies) {
    if (!policy.in_a || !policy.in_b) {
      table.add_row({policy.label, fmt::format("(only in {})", policy.in_a ? "A" : "B"), "", "", ""});
      continue;
    }
    add_rows(table, policy.label, "final ", policy.final_point);
    add_rows(table, policy.label, "", policy.metrics);
  }
  return table;
}

std::string adjustment_text(const Json& adjustment) {
  if (!adjustment.is_object()) return "none";
  return fmt::format("iteration {} {} -> {}", adjustment.value("iteration", Json()).dump(),
                     adjustment.value("from", Json()).dump(), adjustment.value("to", Json()).dump());
}

void print_adjustments(const PolicyDifference& policy, Output& output) {
  if (!policy.in_a || !policy.in_b || !policy.first_other_adjustment) return;
  output.line("{}: {} and {} changes, the first that differs is number {}: A {}, B {}", policy.label,
              policy.adjustments_a, policy.adjustments_b, *policy.first_other_adjustment + 1,
              adjustment_text(policy.adjustment_a), adjustment_text(policy.adjustment_b));
}

Json values_json(const std::vector<ValueDifference>& values) {
  Json json = Json::object();
  for (const ValueDifference& value : values) {
    json[value.name] = {{"a", value.a ? Json(*value.a) : Json()}, {"b", value.b ? Json(*value.b) : Json()}};
  }
  return json;
}

Json result_json(const ResultDifference& result) {
  Json policies = Json::array();
  for (const PolicyDifference& policy : result.policies) {
    Json first;  // null where all are equal
    if (policy.first_other_adjustment) {
      first = {{"number", *policy.first_other_adjustment + 1},
               {"a", policy.adjustment_a},
               {"b", policy.adjustment_b}};
    }
    policies.push_back(
        {{"label", policy.label},
         {"in_a", policy.in_a},
         {"in_b", policy.in_b},
         {"differs", policy.differs()},
         {"final", values_json(policy.final_point)},
         {"metrics", values_json(policy.metrics)},
         {"adjustments",
          {{"a", policy.adjustments_a}, {"b", policy.adjustments_b}, {"first_difference", first}}}});
  }
  return {{"scenario", result.scenario}, {"policies", policies}};
}

Json diff_results(InputFile& file_a, InputFile& file_b, Output& output) {
  const std::string a = file_a.name();
  const std::string b = file_b.name();
  const Json json_a = parse_json(file_a.rest(), a);
  const auto differences = compare_results(json_a, a, parse_json(file_b.rest(), b), b);
  Json scenarios = Json::array();
  for (const ResultDifference& result : differences) {
    const auto changed = std::count_if(result.policies.begin(), result.policies.end(),
                                       [](const PolicyDifference& policy) { return policy.differs(); });
    output.line("{}: {} of {} policies differ (A = {}, B = {}).", result.scenario, changed,
                result.policies.size(), a, b);
    if (changed > 0) output.next_table(result_table(result));
    for (const PolicyDifference& policy : result.policies) print_adjustments(policy, output);
    scenarios.push_back(result_json(result));
  }
  return {{"kind", "results"}, {"a", a}, {"b", b}, {"scenarios", scenarios}};
}

Table laws_table(const std::vector<GrowthRow>& rows, const GrowthRow& total, std::size_t top) {
  Table table = growth_table("law", "tensors");
  add_rows(table, rows, rows.size() == top + 1 ? 0 : top);  // a row for one other would say less
  add_row(table, total);
  return table;
}

bool has(const WorkloadModel& model, const std::string& name) {
  return model.parameters().find(name).has_value();
}

// B starts at A's values, so that equal names mean equal values.
void settle(PredictionQuestion& a, PredictionQuestion& b, const std::vector<std::string>& settings) {
  for (std::size_t p = 0; p < a.point.size(); ++p) {
    const std::string& name = a.model->parameters().parameters[p].name;
    if (has(*b.model, name)) b.set(fmt::format("{}={}", name, a.point[p]));
  }
  for (const std::string& setting : settings) {
    const std::string name = setting.substr(0, setting.find('='));
    const bool only_b = !has(*a.model, name) && has(*b.model, name);
    const bool only_a = has(*a.model, name) && !has(*b.model, name);
    if (!only_b) a.set(setting);
    if (!only_a) b.set(setting);
  }
}

std::string point_text(const PredictionQuestion& question) {
  std::string text;
  const Json point = point_json(question);
  for (const auto& [name, value] : point.items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.dump());
  }
  return text;
}

// What grew between two models at `settings` (batch=8; both models' parameters that have the name), at most
// `top` laws (0 = all). Parameters that nobody sets are in the middle of A's recorded range, in B too where
// it has them.
Json diff_models(const std::string& a, const std::string& b, const std::vector<std::string>& settings,
                 std::size_t top, Output& output) {
  const auto model_a = load_model_file(a);
  const auto model_b = load_model_file(b);
  PredictionQuestion at_a(*model_a);
  PredictionQuestion at_b(*model_b);
  settle(at_a, at_b, settings);
  const ModelDifference difference = compare_models(*model_a, at_a.point, *model_b, at_b.point);
  const GrowthRow& peak = difference.peak_total;
  output.line("A settled step holds {} at most in A and {} in B ({}, as requested).", format_bytes(peak.a),
              format_bytes(peak.b), signed_size(peak.growth()));
  output.line("A = {} at {}, B = {} at {}", a, point_text(at_a), b, point_text(at_b));
  output.line("\nat the peak of a step");
  output.table(laws_table(difference.peak, difference.peak_total, top));
  output.line("\nall that a step allocates");
  output.table(laws_table(difference.step, difference.step_total, top));
  return {{"kind", "models"},
          {"a", a},
          {"b", b},
          {"parameters", {{"a", point_json(at_a)}, {"b", point_json(at_b)}}},
          {"peak", row_json(difference.peak_total, "law", "tensors")},
          {"peak_by_law", rows_json(difference.peak, "law", "tensors")},
          {"step", row_json(difference.step_total, "law", "tensors")},
          {"step_by_law", rows_json(difference.step, "law", "tensors")}};
}

int run_diff(const Arguments& arguments, Output& output) {
  const auto files = operands(arguments);
  const SnapshotView view{.grouping = chosen_grouping(arguments),
                          .folded = text_of(arguments, "folded"),
                          .top = arguments["top"].as<std::size_t>()};
  require_output_names(files, {text_of(arguments, "json"), view.folded});
  const auto settings = texts_of(arguments, "set");
  require_names_once(settings, "--set");
  const std::vector<FileKind> kinds{FileKind::snapshot, FileKind::result, FileKind::model};
  InputFile a{files[0]};
  InputFile b{files[1]};
  const FileKind kind = require_kind(a, kinds);
  if (require_kind(b, kinds) != kind) {
    throw InputError(a.name() + ", " + b.name(),
                     "are of two kinds; give two snapshots (.pickle), or two models or two results (.json).");
  }
  if (kind != FileKind::model && !settings.empty()) {
    throw InputError("--set", "is for two models; " + a.name() + " and " + b.name() + " are " +
                                  (kind == FileKind::result ? "results." : "snapshots."));
  }
  for (const char* option : {"by", "depth", "folded"}) {
    if (kind == FileKind::snapshot || arguments.count(option) == 0 || arguments[option].defaulted()) continue;
    throw InputError(
        std::string("--") + option,
        "is for two snapshots; these are " + std::string(kind == FileKind::result ? "results." : "models."));
  }
  output.json(kind == FileKind::model    ? diff_models(files[0], files[1], settings, view.top, output)
              : kind == FileKind::result ? diff_results(a, b, output)
                                         : diff_snapshots(a, b, view, output));
  return kDone;
}

}  // namespace

Verb diff_verb() {
  return {.name = "diff",
          .summary = "what grew between two snapshots or models, or changed between two results",
          .operands = "A B",
          .count = {2, 2},
          .example = "vramlab diff tests/data/recorded/lstm.pickle.gz tests/data/recorded/bert.pickle.gz",
          .add_options = add_diff_options,
          .run = run_diff};
}

}  // namespace vramlab
