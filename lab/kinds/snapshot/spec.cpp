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
  std::optional<std::string> backend;
  DeviceSection card;
};

/// A file of kind `snapshot`, as its keys are named.
struct SnapshotFile : SnapshotScenario {
  DeviceSection device;
  std::string conf;
  std::optional<std::string> torch_version;
  std::string snapshot;
  std::optional<std::int64_t> of_device;
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
      {"conf", &R::conf, "", 0, 0, "the string of PYTORCH_ALLOC_CONF (default: that of `allocator`)"},
      {"backend", &R::backend, "", 0, 0,
       "another allocator in its place, as `vramlab whatif --backend` names it: direct, bfc, bfc:0.9:grow"}};
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
      {"conf", &SnapshotFile::conf, "", 0, 0,
       "the string of PYTORCH_ALLOC_CONF, before 2.9 PYTORCH_CUDA_ALLOC_CONF (default: empty)"},
      {"torch_version", &SnapshotFile::torch_version, "", 0, 0,
       "the PyTorch that wrote the snapshot, 2.1 or newer (default: read off its keys and fields, else "
       "2.11)"}};
  return table;
}

const Record<SnapshotFile>& workload_table() {
  static const Record<SnapshotFile> table{
      {"snapshot", &SnapshotFile::snapshot, "", 0, 0,
       "a memory snapshot (.pickle) or an allocation script (.csv), also .gz or .zst", kRequired},
      {"device", &SnapshotFile::of_device, "", 0, 65535,
       "the device that is replayed, of a snapshot of several (default: the only one)"}};
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
    file_.programs = read_client_programs(path.string(), read_options());
    if (file_.programs.size() != 1) {
      std::string devices;
      for (const ClientProgram& program : file_.programs)
        devices += (devices.empty() ? "" : ", ") + std::to_string(program.device);
      throw InputError("/workload/snapshot",
                       "holds several devices (" + devices +
                           "); a scenario replays one: add \"device\" beside it (`vramlab whatif` takes them "
                           "as ranks).");
    }
    for (const ClientAction& action : file_.programs.front().actions) {
      if (action.kind == ClientAction::Kind::mark) {
        marks_.push_back(file_.programs.front().texts[action.detail]);
      }
    }
  }

  [[nodiscard]] ReadOptions read_options() const {
    ReadOptions options;
    if (file_.of_device) options.device = static_cast<int>(*file_.of_device);
    if (!file_.torch_version) return options;
    try {
      options.torch = parse_torch_version(*file_.torch_version);
    } catch (const InputError& error) {
      throw InputError("/allocator/torch_version", error.problems().front().what);
    }
    return options;
  }

  // Settings are read as the PyTorch of the recording reads them.
  [[nodiscard]] AllocatorSettings settings_before() const {
    AllocatorSettings settings;
    if (!file_.programs.empty()) settings.torch = file_.programs.front().settings.torch;
    return settings;
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
          parse_allocator_settings(conf, settings_before());
        } catch (const InputError& error) {
          throw InputError(pointer + "/conf", error.problems().front().what);
        }
        if (section.backend) row.question.backends = {read_backend(*section.backend, pointer + "/backend")};
        if (section.backend && section.conf) {
          throw InputError(pointer, "\"conf\" is of PyTorch's own allocator; leave it or \"backend\" out.");
        }
        read_card(section.card, file_.device, pointer, row.question);
      });
      for (const WhatIfCard& card : row.question.cards) file_.context_assumed |= card.context_assumed;
      file_.rows.push_back(std::move(row));
    }
  }

  static BackendChoice read_backend(const std::string& text, const std::string& pointer) {
    try {
      BackendChoice choice = parse_backend(text);
      if (!choice.is_native()) return choice;
    } catch (const InputError& error) {
      throw InputError(pointer, error.problems().front().what);
    }
    throw InputError(pointer, "native is what a row has without it; leave it out.");
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
      card.context_assumed = gpu.context_assumed();
    } else if (section.total) {
      card.capacity = section.total;
      card.name = "a card of " + format_bytes(*card.capacity);
    }
    for (const DeviceSection* one : {&device, &row}) {
      if (one->context && (one == &row || !own)) {
        card.context = *one->context;
        card.context_assumed = false;
        card.context_given = true;
      }
      if (one->limit) question.limits = {*one->limit};
    }
    if (card.capacity && !question.limits.empty()) {
      require_limit_on_card(*question.limits.front(), *card.capacity, pointer + "/limit");
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
                   pointer + "/metric", "not a metric");
      if (at_mark && !file_.programs.empty()) {
        require_name(expectation.mark, marks_, pointer + "/mark", "not a mark of the program");
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

}  // namespace

const RecordBase& snapshot_table() { return file_table(); }

SnapshotScenario read_snapshot(const ScenarioDocument& document) { return SnapshotReader{document}.read(); }

}  // namespace vramlab
