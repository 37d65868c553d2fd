#include "lab/kinds/snapshot/spec.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/file.hpp"
#include "lab/whatif/view.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/open.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// A row as a file has it.
struct RowSection {
  std::string label;
  std::optional<std::string> conf;
  DeviceSection card;
};

/// A file of kind `snapshot`, as its keys are named.
struct SnapshotFile : SnapshotScenario {
  DeviceSection device;
  std::string conf;
  std::string snapshot;
  std::vector<RowSection> row_sections;
};

// A card that may be left out: then it is the recording's own, or one that is never full.
std::vector<Row<DeviceSection>> replayed_card_rows() {
  std::vector<Row<DeviceSection>> rows = card_rows();
  std::erase_if(rows, [](const Row<DeviceSection>& row) { return row.key == "profile"; });
  rows.front().help = "a card of `vramlab gpus` (or give `total`)";
  return rows;
}

const Record<DeviceSection>& device_table() {
  static const Record<DeviceSection> table{replayed_card_rows()};
  return table;
}

const Record<RowSection>& row_table() {
  using R = RowSection;
  std::vector<Row<R>> rows{
      {"label", &R::label, "", 0, 0, "what expectations call it", kRequired},
      {"conf", &R::conf, "", 0, 0, "the string of PYTORCH_CUDA_ALLOC_CONF (default: that of `allocator`)"}};
  for (const Row<DeviceSection>& row : replayed_card_rows()) {
    rows.push_back({row.key, within(&R::card, row.member), row.unit, row.low, row.high, row.help});
  }
  static const Record<R> table{rows};
  return table;
}

const Record<Expectation>& row_expectation_table() {
  using E = Expectation;
  static const Record<E> table{joined<E>(
      std::vector<Row<E>>{{"row", &E::policy, "", 0, 0, "the label of a row", kRequired},
                          {"metric", &E::name, "", 0, 0, "a figure of `vramlab metrics snapshot`", kRequired},
                          {"mark", &E::mark, "", 0, 0, "the mark at which (default: at the end)"}},
      bound_rows())};
  return table;
}

const Record<SnapshotFile>& allocator_table() {
  static const Record<SnapshotFile> table{
      {"conf", &SnapshotFile::conf, "", 0, 0, "the string of PYTORCH_CUDA_ALLOC_CONF (default: empty)"}};
  return table;
}

const Record<SnapshotFile>& workload_table() {
  static const Record<SnapshotFile> table{
      {"snapshot", &SnapshotFile::snapshot, "", 0, 0,
       "a memory snapshot (.pickle) or an allocation script (.csv), also .gz or .zst", kRequired}};
  return table;
}

const Record<SnapshotFile>& file_table() {
  using F = SnapshotFile;
  static const Record<F> table{joined<F>(
      head_rows("snapshot"),
      std::vector<Row<F>>{
          {"device", object_of(&F::device, device_table()), "", 0, 0,
           "the card of rows that name none (default: as recorded; for a script one that is never full)"},
          {"allocator", group_of(allocator_table()), "", 0, 0, "settings of the caching allocator"},
          {"workload", group_of(workload_table()), "", 0, 0, "what is replayed", kRequired},
          {"rows", list_of(&F::row_sections, row_table()), "", 0, 0,
           "the settings and cards it is replayed under", kRequired},
          {"expect", list_of(&Scenario::expectations, row_expectation_table()), "", 0, 0,
           "what `vramlab check` holds the rows against"}})};
  return table;
}

/// Turns a document whose fields passed their checks into a scenario.
class SnapshotReader {
 public:
  explicit SnapshotReader(const ScenarioDocument& document) : path_(document.file), problems_(path_) {
    read_file(document, file_table(), file_);
  }

  SnapshotScenario read() {
    problems_.guarded("/workload/snapshot", [&] { read_program(); });
    read_rows();
    require_expectations();
    problems_.throw_if_any();
    return std::move(file_);
  }

 private:
  void read_program() {
    const fs::path path = data_file(file_.snapshot, path_, "/workload/snapshot");
    file_.programs = read_client_programs(path.string());
    if (file_.programs.size() != 1) {
      throw InputError("/workload/snapshot",
                       "holds several devices; a scenario replays a file of one (`vramlab whatif` takes "
                       "them as ranks).");
    }
    for (const ClientAction& action : file_.programs.front().actions) {
      if (action.kind == ClientAction::Kind::mark) {
        marks_.push_back(file_.programs.front().texts[action.detail]);
      }
    }
  }

  void read_rows() {
    if (file_.row_sections.empty()) problems_.add("/rows", "the list is empty; name at least one row.");
    for (std::size_t i = 0; i < file_.row_sections.size(); ++i) {
      const RowSection& section = file_.row_sections[i];
      const std::string pointer = "/rows/" + std::to_string(i);
      SnapshotRow row{.label = section.label, .question = {}};
      if (std::find(labels_.begin(), labels_.end(), row.label) != labels_.end()) {
        problems_.add(pointer, "the label \"" + row.label + "\" is taken. Give this row one of its own.");
      }
      labels_.push_back(row.label);
      const std::string conf = section.conf.value_or(file_.conf);
      row.question.confs = {conf};
      problems_.guarded(pointer, [&] {
        try {
          parse_allocator_settings(conf);
        } catch (const InputError& error) {
          throw InputError(pointer + "/conf", error.problems().front().what);
        }
        read_card(section.card, file_.device, pointer, row.question);
      });
      file_.rows.push_back(std::move(row));
    }
  }

  // A row with a card of its own takes nothing of the device's but the limit.
  static void read_card(const DeviceSection& row, const DeviceSection& device, const std::string& pointer,
                        WhatIfQuestion& question) {
    const bool own = row.gpu || row.total;
    const DeviceSection& section = own ? row : device;
    const std::string where = own ? pointer : std::string{"/device"};
    if (section.gpu && section.total) {
      throw InputError(where, "give \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory), not both.");
    }
    WhatIfCard card;
    if (section.gpu) {
      const Gpu& gpu = find_gpu(*section.gpu, where + "/gpu");
      card.name = card.gpu = gpu.name;
      card.capacity = gpu.total;
      card.context = gpu.context;
      card.context_assumed = gpu.figures != GpuFigures::measured;
    } else if (section.total) {
      card.capacity = section.total;
      card.name = "a card of " + format_bytes(*card.capacity);
    }
    for (const DeviceSection* one : {&device, &row}) {
      if (one->context && (one == &row || !own)) {
        card.context = *one->context;
        card.context_assumed = false;
      }
      if (one->limit) question.limits = {*one->limit};
    }
    if (card.capacity && *card.capacity < card.context) {
      throw InputError(pointer, "the card of " + format_bytes(*card.capacity) +
                                    " does not even hold the context (" + format_bytes(card.context) + ").");
    }
    if (card.capacity) question.cards = {std::move(card)};
  }

  void require_expectations() {
    for (std::size_t i = 0; i < file_.expectations.size(); ++i) {
      const Expectation& expectation = file_.expectations[i];
      const std::string pointer = "/expect/" + std::to_string(i);
      require_expected_labels(expectation, "row", pointer, labels_, problems_);
      const bool at_mark = !expectation.mark.empty();
      require_name(expectation.name, at_mark ? snapshot_mark_metric_names() : snapshot_metric_names(),
                   pointer + "/metric", "no metric");
      if (at_mark && !file_.programs.empty()) {
        require_name(expectation.mark, marks_, pointer + "/mark", "no mark of the program");
      }
      require_expected_bounds(expectation, pointer, problems_);
      const bool smallest = expectation.name.starts_with("smallest_");
      for (SnapshotRow& row : file_.rows) {
        if (smallest && (row.label == expectation.policy || row.label == expectation.relative_to)) {
          row.question.smallest = true;
        }
      }
    }
  }

  void require_name(const std::string& name, const std::vector<std::string>& known,
                    const std::string& pointer, const std::string& what) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    problems_.add(pointer, "\"" + name + "\" is " + what + "." + suggest_name(name, known));
  }

  fs::path path_;
  SnapshotFile file_;
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

const RecordBase& snapshot_table() { return file_table(); }

SnapshotScenario read_snapshot(const ScenarioDocument& document) { return SnapshotReader{document}.read(); }

std::vector<SnapshotResult> replay_rows(const SnapshotScenario& scenario, bool maps) {
  std::vector<SnapshotResult> results;
  for (const SnapshotRow& row : scenario.rows) {
    WhatIfQuestion question = row.question;
    question.maps = maps;
    WhatIfRow answer = answer_whatif(scenario.programs, question).rows.front();
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
