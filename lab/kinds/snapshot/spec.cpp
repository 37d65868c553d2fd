#include "lab/kinds/snapshot/spec.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "lab/kinds/training/spec_fields.hpp"
#include "lab/scenario/file.hpp"
#include "lab/whatif/view.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

// A card that may be left out: then it is the recording's own, or one that is never full.
std::vector<Field> card_fields() {
  std::vector<Field> fields = shared_field("device").fields;
  std::erase_if(fields, [](const Field& field) { return field.key == "others"; });
  return fields;
}

std::vector<Field> row_fields() {
  std::vector<Field> fields{
      {.key = "label", .kind = Kind::text, .help = "what expectations call it", .required = true},
      {.key = "conf",
       .kind = Kind::text,
       .help = "the string of PYTORCH_CUDA_ALLOC_CONF (default: that of `allocator`)"}};
  for (Field& field : card_fields()) fields.push_back(std::move(field));
  return fields;
}

std::vector<Field> row_expectation_fields() {
  std::vector<Field> fields{
      {.key = "row", .kind = Kind::text, .help = "the label of a row", .required = true},
      {.key = "metric",
       .kind = Kind::text,
       .help = "a figure of `vramlab metrics snapshot`",
       .required = true},
      {.key = "mark", .kind = Kind::text, .help = "the mark at which (default: at the end)"}};
  for (Field& field : bound_fields()) fields.push_back(std::move(field));
  return fields;
}

}  // namespace

std::vector<Field> snapshot_fields() {
  Field device = shared_field("device");
  device.help = "the card of rows that name none (default: as recorded; for a script one that is never full)";
  device.required = false;
  device.fields = card_fields();
  Field allocator = shared_field("allocator");
  std::erase_if(allocator.fields, [](const Field& field) { return field.key != "conf"; });
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("snapshot"),
      shared_field("name"),
      shared_field("description"),
      device,
      allocator,
      {.key = "workload",
       .kind = Kind::object,
       .help = "what is replayed",
       .required = true,
       .fields = {{.key = "snapshot",
                   .kind = Kind::text,
                   .help = "a memory snapshot (.pickle) or an allocation script (.csv), also .gz or .zst",
                   .required = true}}},
      {.key = "rows",
       .kind = Kind::list,
       .help = "the settings and cards it is replayed under",
       .required = true,
       .fields = row_fields()},
      {.key = "expect",
       .kind = Kind::list,
       .help = "what `vramlab check` holds the rows against",
       .fields = row_expectation_fields()},
  };
}

Json snapshot_schema(const PolicySet& /*known*/) { return fields_schema(snapshot_fields(), /*open=*/false); }

namespace {

namespace fs = std::filesystem;

/// Turns a document whose fields passed their checks into a scenario.
class SnapshotReader {
 public:
  explicit SnapshotReader(const ScenarioDocument& document)
      : document_(document), json_(document.json), file_(document.file), problems_(file_) {}

  SnapshotScenario read() {
    read_base(document_, scenario_, problems_);
    problems_.guarded("/workload/snapshot", [&] { read_program(json_["workload"]["snapshot"]); });
    read_rows(json_["rows"]);
    if (json_.contains("expect")) read_expectations(json_["expect"]);
    problems_.throw_if_any();
    return std::move(scenario_);
  }

 private:
  void read_program(const Json& name) {
    const auto path = find_data_file(name.get<std::string>(), file_);
    if (!path) {
      throw InputError("/workload/snapshot", "there is no file " + name.dump() +
                                                 " beside the scenario, here or in the data folder.");
    }
    scenario_.programs = read_client_programs(path->string());
    if (scenario_.programs.size() != 1) {
      throw InputError("/workload/snapshot",
                       "holds several devices; a scenario replays a file of one (`vramlab whatif` takes "
                       "them as ranks).");
    }
    for (const ClientAction& action : scenario_.programs.front().actions) {
      if (action.kind == ClientAction::Kind::mark) {
        marks_.push_back(scenario_.programs.front().texts[action.detail]);
      }
    }
  }

  void read_rows(const Json& rows) {
    if (rows.empty()) problems_.add("/rows", "the list is empty; name at least one row.");
    const Json none = Json::object();
    const Json& device = json_.contains("device") ? json_["device"] : none;
    const std::string conf =
        json_.contains("allocator") ? json_["allocator"].value("conf", std::string{}) : std::string{};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string pointer = "/rows/" + std::to_string(i);
      SnapshotRow row;
      row.label = rows[i]["label"].get<std::string>();
      if (std::find(labels_.begin(), labels_.end(), row.label) != labels_.end()) {
        problems_.add(pointer, "the label \"" + row.label + "\" is taken. Give this row one of its own.");
      }
      labels_.push_back(row.label);
      const auto text = rows[i].value("conf", conf);
      row.question.confs = {text};
      problems_.guarded(pointer, [&] {
        try {
          parse_allocator_settings(text);
        } catch (const InputError& error) {
          throw InputError(pointer + "/conf", error.problems().front().what);
        }
        read_card(rows[i], device, pointer, row.question);
      });
      scenario_.rows.push_back(std::move(row));
    }
  }

  // A row with a card of its own takes nothing of the device's but the limit.
  static void read_card(const Json& row, const Json& device, const std::string& pointer,
                        WhatIfQuestion& question) {
    const bool own = row.contains("gpu") || row.contains("total");
    const Json& json = own ? row : device;
    const std::string where = own ? pointer : std::string{"/device"};
    if (json.contains("gpu") && json.contains("total")) {
      throw InputError(where, "give \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory), not both.");
    }
    WhatIfCard card;
    if (json.contains("gpu")) {
      const Gpu& gpu = find_gpu(json["gpu"].get<std::string>(), where + "/gpu");
      card.name = card.gpu = gpu.name;
      card.capacity = gpu.total;
      card.context = gpu.context;
      card.context_assumed = gpu.figures != GpuFigures::measured;
    } else if (json.contains("total")) {
      card.capacity = size_value(json["total"]);
      card.name = "a card of " + format_bytes(*card.capacity);
    }
    for (const Json* one : {&device, &row}) {
      if (one->contains("context") && (one == &row || !own)) {
        card.context = size_value((*one)["context"]);
        card.context_assumed = false;
      }
      if (one->contains("limit")) question.limits = {size_value((*one)["limit"])};
    }
    if (card.capacity && *card.capacity < card.context) {
      throw InputError(pointer, "the card of " + format_bytes(*card.capacity) +
                                    " does not even hold the context (" + format_bytes(card.context) + ").");
    }
    if (card.capacity) question.cards = {std::move(card)};
  }

  void read_expectations(const Json& expectations) {
    for (std::size_t i = 0; i < expectations.size(); ++i) {
      const Json& json = expectations[i];
      const std::string pointer = "/expect/" + std::to_string(i);
      Expectation expectation{.policy = json["row"].get<std::string>(),
                              .name = json["metric"].get<std::string>(),
                              .mark = json.value("mark", std::string{})};
      require_expected_labels(json, "row", pointer, labels_, problems_);
      const bool at_mark = !expectation.mark.empty();
      require_name(expectation.name, at_mark ? snapshot_mark_metric_names() : snapshot_metric_names(),
                   pointer + "/metric", "no metric");
      if (at_mark && !scenario_.programs.empty()) {
        require_name(expectation.mark, marks_, pointer + "/mark", "no mark of the program");
      }
      read_expected_bounds(json, pointer, expectation, problems_);
      const bool smallest = expectation.name.starts_with("smallest_");
      for (SnapshotRow& row : scenario_.rows) {
        if (smallest && (row.label == expectation.policy || row.label == expectation.relative_to)) {
          row.question.smallest = true;
        }
      }
      scenario_.expectations.push_back(std::move(expectation));
    }
  }

  void require_name(const std::string& name, const std::vector<std::string>& known,
                    const std::string& pointer, const std::string& what) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    problems_.add(pointer, "\"" + name + "\" is " + what + "." + suggest_name(name, known));
  }

  const ScenarioDocument& document_;
  const Json& json_;
  fs::path file_;
  SnapshotScenario scenario_;
  std::vector<std::string> labels_;
  std::vector<std::string> marks_;
  FileProblems problems_;
};

// Figures are numbers, or true or false, or null where there is none.
double json_figure(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !(found->is_number() || found->is_boolean())) return std::nan("");
  return bound_value(*found);
}

class SnapshotFigures : public RunFigures {
 public:
  explicit SnapshotFigures(std::shared_ptr<const SnapshotScenario> scenario)
      : scenario_(std::move(scenario)), results_(replay_rows(*scenario_)) {}

  [[nodiscard]] double value(const Expectation& expectation, const std::string& label) const override {
    const SnapshotResult& result = find(label);
    if (expectation.mark.empty()) return json_figure(result.json, expectation.name);
    for (const Json& mark : result.json["marks"]) {  // one that several have: the first
      if (mark["text"] == expectation.mark) return json_figure(mark, expectation.name);
    }
    return std::nan("");  // the program ended before it
  }

  [[nodiscard]] std::vector<std::string> around(const Expectation& expectation) const override {
    const ProgramOutcome& outcome = find(expectation.policy).row.outcome;
    std::vector<std::string> lines;
    if (outcome.first_oom) {
      const std::size_t action = outcome.first_oom->action;
      const ClientProgram& program = scenario_->programs.front();
      const std::string mark = mark_after(program, action);
      lines.push_back("  first OOM at action " + std::to_string(action + 1) + " (" + program.file + ":" +
                      std::to_string(program.actions[action].source) + ")" +
                      (mark.empty() ? "" : " before mark " + mark));
      lines.push_back("  " + oom_message(outcome.first_oom->oom));
      for (const std::string& line : oom_details(outcome.first_oom->oom)) lines.push_back("  " + line);
    }
    if (outcome.fault) lines.push_back("  ended by: " + *outcome.fault);
    for (const MarkFigures& mark : outcome.marks) {
      if (mark.text != expectation.mark) continue;
      lines.push_back("  at " + mark.text + ": allocated " +
                      std::to_string(mark.stats.allocated_bytes.all().current) + ", reserved " +
                      std::to_string(mark.stats.reserved_bytes.all().current));
    }
    lines.push_back("  highest allocated " + std::to_string(outcome.highest_allocated) + " after action " +
                    std::to_string(outcome.highest_allocated_at + 1) + ", highest reserved " +
                    std::to_string(outcome.highest_reserved));
    return lines;
  }

 private:
  [[nodiscard]] const SnapshotResult& find(const std::string& label) const {
    return *std::find_if(results_.begin(), results_.end(),
                         [&](const SnapshotResult& result) { return result.label == label; });
  }

  std::shared_ptr<const SnapshotScenario> scenario_;
  std::vector<SnapshotResult> results_;
};

}  // namespace

SnapshotScenario read_snapshot(const ScenarioDocument& document) {
  require_fields(document, snapshot_fields());
  return SnapshotReader{document}.read();
}

std::vector<SnapshotResult> replay_rows(const SnapshotScenario& scenario) {
  std::vector<SnapshotResult> results;
  for (const SnapshotRow& row : scenario.rows) {
    WhatIfRow answer = answer_whatif(scenario.programs, row.question).rows.front();
    Json json = whatif_row_json(scenario.programs.front(), answer);
    results.push_back({row.label, std::move(answer), std::move(json)});
  }
  return results;
}

std::vector<std::string> snapshot_metric_names() {
  const Json row = whatif_row_json({}, {});
  std::vector<std::string> names;
  for (const auto& [key, value] : row.items()) {
    if (value.is_number() || value.is_boolean() || key.starts_with("smallest_")) names.push_back(key);
  }
  return names;
}

std::vector<std::string> snapshot_mark_metric_names() {
  const Json mark = whatif_mark_json({});
  std::vector<std::string> names;
  for (const auto& [key, value] : mark.items()) {
    if (value.is_number()) names.push_back(key);
  }
  return names;
}

ReadyScenario ready_snapshot(const ScenarioDocument& document) {
  auto scenario = std::make_shared<const SnapshotScenario>(read_snapshot(document));
  return {scenario->expectations, [scenario] { return std::make_unique<SnapshotFigures>(scenario); }};
}

}  // namespace vramlab
