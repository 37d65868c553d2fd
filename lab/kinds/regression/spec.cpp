#include "lab/kinds/regression/spec.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "lab/scenario/cards.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/open.hpp"

namespace vramlab {
namespace {

/// An allowance as a file has it.
struct AllowanceSection {
  std::string figure;
  std::optional<std::int64_t> step;
  Bytes bytes = 0;
  double share = 0;
};

/// A file of kind `regression`, as its keys are named.
struct RegressionFile : RegressionScenario {
  std::string golden_file;
  std::string new_file;
  std::vector<AllowanceSection> allow;
  std::vector<DeviceSection> card_sections;
};

const Record<AllowanceSection>& allowance_table() {
  using A = AllowanceSection;
  static const Record<A> table{
      {"figure", &A::figure, "", 0, 0, "allocated or reserved (default: both)"},
      {"step", &A::step, "", 1, 1e9, "the step, counted from 1 (default: every step, and the whole)"},
      {"bytes", &A::bytes, "bytes", 0, kLargestCard, "by how much it may grow"},
      {"share", &A::share, "", 0, 1, "the same as a share of the golden figure; the larger one counts"}};
  return table;
}

const Record<DeviceSection>& judged_card_table() {
  std::vector<Row<DeviceSection>> rows = card_rows();
  std::erase_if(rows,
                [](const Row<DeviceSection>& row) { return row.key == "profile" || row.key == "limit"; });
  rows.front().help = "a card of `vramlab gpus` (or give `total`)";
  static const Record<DeviceSection> table{rows};
  return table;
}

const Record<RegressionFile>& recordings_table() {
  static const Record<RegressionFile> table{
      {"golden", &RegressionFile::golden_file, "", 0, 0, "the recording that is held against", kRequired},
      {"new", &RegressionFile::new_file, "", 0, 0, "the recording that is judged", kRequired}};
  return table;
}

const Record<Expectation>& judged_expectation_table() {
  using E = Expectation;
  static const Record<E> table{
      joined<E>(std::vector<Row<E>>{{"metric", &E::name, "", 0, 0, "a figure of `vramlab metrics regression`",
                                     kRequired}},
                bound_rows())};
  return table;
}

const Record<RegressionFile>& regression_file_table() {
  using F = RegressionFile;
  static const Record<F> table{joined<F>(
      head_rows("regression"),
      std::vector<Row<F>>{
          {"workload", group_of(recordings_table()), "", 0, 0,
           "snapshots (.pickle) or allocation scripts (.csv), also .gz or .zst", kRequired},
          {"allow", list_of(&F::allow, allowance_table()), "", 0, 0, "what may grow (default: nothing)"},
          {"cards", list_of(&F::card_sections, judged_card_table()), "", 0, 0,
           "cards that must still hold the program where they held the golden one"},
          {"expect", list_of(&Scenario::expectations, judged_expectation_table()), "", 0, 0,
           "what `vramlab check` holds the judgement against"}})};
  return table;
}

class RegressionReader {
 public:
  explicit RegressionReader(const ScenarioDocument& document) : path_(document.file), problems_(path_) {
    read_file(document, regression_file_table(), file_);
  }

  RegressionScenario read() {
    problems_.guarded("/workload/golden",
                      [&] { file_.golden = programs(file_.golden_file, "golden", file_.files.golden); });
    problems_.guarded("/workload/new", [&] { file_.now = programs(file_.new_file, "new", file_.files.now); });
    for (std::size_t i = 0; i < file_.allow.size(); ++i)
      read_allowance(file_.allow[i], "/allow/" + std::to_string(i));
    for (std::size_t i = 0; i < file_.card_sections.size(); ++i) {
      const std::string pointer = "/cards/" + std::to_string(i);
      problems_.guarded(pointer, [&] { read_judged_card(file_.card_sections[i], pointer); });
    }
    for (std::size_t i = 0; i < file_.expectations.size(); ++i) {
      Expectation& one = file_.expectations[i];
      const std::string pointer = "/expect/" + std::to_string(i);
      one.policy = kRegressionLabel;
      if (!one.relative_to.empty())
        problems_.add(pointer + "/relative_to", "there is one judgement; leave it out.");
      const auto names = names_of(regression_metric_table());
      if (std::ranges::find(names, one.name) == names.end())
        problems_.add(pointer + "/metric",
                      "\"" + one.name + "\" is not a metric." + suggest_name(one.name, names));
      require_expected_bounds(one, pointer, problems_);
    }
    problems_.throw_if_any();
    return std::move(file_);
  }

 private:
  std::vector<ClientProgram> programs(const std::string& name, const std::string& key,
                                      std::string& found) const {
    found = data_file(name, path_, "/workload/" + key).string();
    return read_client_programs(found);
  }

  void read_allowance(const AllowanceSection& section, const std::string& pointer) {
    Allowance allowance{.bytes = section.bytes, .share = section.share};
    if (section.step) allowance.step = static_cast<std::size_t>(*section.step);
    const auto figure = std::ranges::find(kJudgedFigureNames, section.figure);
    if (figure != kJudgedFigureNames.end()) {
      allowance.figure = static_cast<JudgedFigure>(figure - kJudgedFigureNames.begin());
    } else if (!section.figure.empty()) {
      problems_.add(pointer + "/figure",
                    "\"" + section.figure + "\" is not a figure that may grow: allocated or reserved.");
    }
    file_.question.allowed.push_back(allowance);
  }

  void read_judged_card(const DeviceSection& section, const std::string& pointer) {
    if (section.gpu.has_value() == section.total.has_value())
      throw InputError(pointer, "give \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory).");
    WhatIfCard card;
    if (section.gpu) {
      const Gpu& gpu = find_gpu(*section.gpu, pointer + "/gpu");
      card.name = card.gpu = gpu.id;
      card.capacity = gpu.total;
      card.context = gpu.context;
      card.context_assumed = gpu.context_assumed();
    } else {
      card.capacity = section.total;
      card.name = "a card of " + format_bytes(*card.capacity);
    }
    if (section.context) {
      card.context = *section.context;
      card.context_given = true;
    }
    if (*card.capacity <= card.context)
      throw InputError(pointer, "the card of " + format_bytes(*card.capacity) +
                                    " does not even hold the context (" + format_bytes(card.context) + ").");
    file_.context_assumed |= card.context_assumed && !card.context_given;
    file_.question.cards.push_back(std::move(card));
  }

  std::filesystem::path path_;
  RegressionFile file_;
  FileProblems problems_;
};

}  // namespace

const RecordBase& regression_table() { return regression_file_table(); }

RegressionScenario read_regression(const ScenarioDocument& document) {
  return RegressionReader{document}.read();
}

}  // namespace vramlab
