// vramlab fit: a workload model from recorded steps.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "core/statistics.hpp"
#include "fit/fit_model.hpp"
#include "fit/parameters.hpp"
#include "fit/step_time_fit.hpp"
#include "lab/model/measured_grid.hpp"
#include "lab/model/ranks.hpp"
#include "lab/model/recorded.hpp"
#include "models/recorded_model.hpp"
#include "models/recorded_program.hpp"
#include "recordings/input_file.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

using Texts = std::vector<std::string>;

constexpr const char* kUnknown = "recorded";  // the parameter of steps whose parameters nobody gives

void add_fit_options(Options& options) {
  add_output_options(options);
  options.add_options()
      // clang-format off
      ("marks", po::value<Texts>()->composing(), "marks file of the snapshot in the same place; repeatable")
      ("param", po::value<Texts>()->composing(), "without marks: the parameters of all steps, batch=8; repeatable")
      ("rank", po::value<Texts>()->composing(), "which process the snapshot in the same place is, 1/2 = rank 1 of 2; default as its files say")
      ("steps", po::value<Texts>()->composing(), "without marks: a parameter's value in each step, batch=8,8,16,16; repeatable")
      ("output,o", po::value<std::string>()->required(), "the model file to write")
      ("name", po::value<std::string>(), "name of the model; default that of the output file")
      ("times", po::value<Texts>()->composing(), "grid of timed points; every other one gives the step-time law; repeatable")
      ("about", po::value<std::string>(), "a sentence on what was recorded, kept in the model");
  // clang-format on
}

std::string percent(Bytes part, Bytes whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

/// How the size of an allocation is known, by SizeKnowledge: for tables, and as keys of the JSON.
struct KnowledgeName {
  const char* text;
  const char* key;
};
constexpr std::array<KnowledgeName, kKnowledges> kKnowledgeNames{
    {{"exact at every recorded shape", "exact"},
     {"seen once, with the form of another", "borrowed"},
     {"a form for each algorithm, by shape", "by_algorithm"},
     {"no form: interpolated", "interpolated"},
     {"no form and seen once", "single"}}};

Table residual_table(const FitResiduals& residuals) {
  Table table{{left("sizes of allocations"), "allocations", "share of bytes"}};
  for (std::size_t k = 0; k < kKnowledges; ++k) {
    const FitResiduals::Count& count = residuals.by_knowledge[k];
    table.add_row({kKnowledgeNames[k].text, fmt::format("{}", count.tensors),
                   percent(count.bytes, residuals.all.bytes)});
  }
  return table;
}

std::string family_text(const InexactFamily& family, const std::vector<std::string>& labels) {
  std::string text = fmt::format("{} x", family.tensors);
  constexpr std::size_t kLongest = 24;
  for (std::size_t shape = 0; shape < labels.size(); ++shape) {
    const std::string& full = labels[shape];
    const std::string label = full.size() > kLongest ? full.substr(0, kLongest - 3) + "..." : full;
    if (family.sizes[shape] > 0) text += fmt::format(" {} at {};", family.sizes[shape], label);
  }
  text.pop_back();
  return text;
}

Json residuals_json(const FittedModel& fitted) {
  const FitResiduals& r = fitted.residuals;
  Json json;
  json["allocations"] = r.all.tensors;
  for (std::size_t k = 0; k < kKnowledges; ++k) {
    json[kKnowledgeNames[k].key] = r.by_knowledge[k].tensors;
  }
  json["bytes"] = r.all.bytes;
  for (std::size_t k = 0; k < kKnowledges; ++k) {
    json[std::string(kKnowledgeNames[k].key) + "_bytes"] = r.by_knowledge[k].bytes;
  }
  json["inexact"] = Json::array();
  for (const InexactFamily& family : fitted.inexact) {
    json["inexact"].push_back({{"allocations", family.tensors}, {"sizes", family.sizes}});
  }
  return json;
}

// The errors against the first grid that also gave the times, as the model's card keeps them: in %, four
// digits.
Json accuracy_json(const RecordedSpec& spec, const MeasuredGrid& grid) {
  const GridErrors errors = grid_errors(grid, replay_grid(grid, RecordedModel(spec)));
  Json json;
  json["measured_on"] = grid.device;
  json["points"] = errors.rows[0].allocated.size();
  const auto add = [&](const char* key, const std::vector<double>& values) {
    if (values.empty()) return;
    const ErrorSummary s = summarise(values);
    json[key] = fmt::format("{:.3f} / {:.2f} / {:.2f} %", 100 * s.median, 100 * s.p95, 100 * s.largest);
  };
  add("peak_allocated", errors.rows[0].allocated);
  add("peak_reserved", errors.rows[0].reserved);
  add("step_time", errors.times);
  json["figures"] =
      "median / 95th percentile / largest of |predicted - measured| / measured; step time over the "
      "points that did not give the law";
  return json;
}

std::string refusals_text(const FittedModel& fitted) {
  return fitted.refusal_chains == 0
             ? "assumed: no recorded step was short of memory"
             : fmt::format("the mean of {} chains of refused requests", fitted.refusal_chains);
}

Json card_json(const FittedModel& fitted, const Texts& files, const Texts& times) {
  Json card;
  card["recordings"] = Json::array();
  for (const std::string& file : files)
    card["recordings"].push_back(std::filesystem::path(file).filename().string());
  card["shapes"] = fitted.shape_labels;
  card["exact_share_of_bytes"] =
      fitted.residuals.all.bytes == 0
          ? 0.0
          : std::round(1e4 * static_cast<double>(fitted.residuals.bytes_with_form()) /
                       static_cast<double>(fitted.residuals.all.bytes)) /
                1e4;
  if (!times.empty()) {
    Texts names;
    for (const std::string& grid : times) names.push_back(std::filesystem::path(grid).filename().string());
    card["times"] = fmt::format("{}, every other point from the first", fmt::join(names, " and "));
  }
  card["workspace_refusals"] = refusals_text(fitted);
  card["warnings"] = fitted.warnings;
  return card;
}

StepParameters given_parameters(const Texts& settings, const char* option = "--param") {
  require_names_once(settings, option);
  StepParameters parameters;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    std::int64_t value = 0;
    const char* end = setting.data() + setting.size();
    const char* begin = equals == std::string::npos ? end : setting.data() + equals + 1;
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || rest != end || value < 1) {
      throw InputError(option,
                       '"' + setting + "\" is not a parameter. Write a name and a whole number: batch=8.");
    }
    parameters.scalars[setting.substr(0, equals)] = value;
  }
  return parameters;
}

// One parameter after the other, each with a value a step.
std::vector<StepParameters> given_steps(const Texts& settings) {
  require_names_once(settings, "--steps");
  std::vector<StepParameters> steps;
  for (const std::string& setting : settings) {
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const std::string name = setting.substr(0, equals);
    std::size_t step = 0;
    for (std::size_t from = equals; from < setting.size(); ++step) {
      const std::size_t to = std::min(setting.find(',', from + 1), setting.size());
      const auto one = given_parameters({name + '=' + setting.substr(from + 1, to - from - 1)}, "--steps");
      if (&setting == &settings.front()) steps.emplace_back();
      if (step < steps.size()) steps[step].scalars.insert(one.scalars.begin(), one.scalars.end());
      from = to;
    }
    if (step == 0 || step != steps.size() || name.empty()) {
      throw InputError("--steps",
                       fmt::format("\"{}\" has {} values and the first parameter {}. Write each with a "
                                   "value a step: batch=8,8,16,16.",
                                   setting, step, steps.size()));
    }
  }
  return steps;
}

void require_marks_or_parameters(const Texts& snapshots, const Texts& marks, const Texts& parameters,
                                 const Texts& steps) {
  if (!marks.empty() && marks.size() != snapshots.size()) {
    throw InputError("", fmt::format("{} snapshots and {} marks files are given. Give --marks once for every "
                                     "snapshot, or not at all.",
                                     snapshots.size(), marks.size()));
  }
  if (!marks.empty() + !parameters.empty() + !steps.empty() > 1) {
    throw InputError("",
                     "give one of these: the marks of the steps (--marks M.json), the parameters of each "
                     "(--steps batch=8,8,16,16), or those that all of them had (--param batch=8).");
  }
}

// Adds what the files' readers left out to `warnings`. Empty if the user stopped it.
std::vector<RecordedRun> read_runs(const Texts& marks, const Arguments& arguments, const Output& output,
                                   Texts& warnings) {
  const Texts snapshots = operands(arguments);
  const Texts parameters = texts_of(arguments, "param");
  const Texts steps = texts_of(arguments, "steps");
  require_marks_or_parameters(snapshots, marks, parameters, steps);
  // nobody says what the steps had: the model holds for them alone
  const StepParameters alike =
      parameters.empty() ? StepParameters{{{kUnknown, 1}}, {}, {}} : given_parameters(parameters);
  std::vector<RecordedRun> runs;
  LongWork work{snapshots.size(), "snapshots", arguments, output};
  const bool all_read = work.for_each(snapshots, [&](const std::string& file) {
    const TorchSnapshot snapshot = read_torch_snapshot(file, {.stacks = false});
    warnings.insert(warnings.end(), snapshot.warnings.begin(), snapshot.warnings.end());
    runs.push_back(!marks.empty()  ? cut_at_marks(snapshot, read_marks_file(marks[runs.size()]), file)
                   : steps.empty() ? cut_at_repeats(snapshot, alike, file)
                                   : cut_at_optimizers(snapshot, given_steps(steps), file));
  });
  if (!all_read) runs.clear();
  return runs;
}

// ---- several ranks

RankPlaceInWorld given_rank(const std::string& text) {
  const std::size_t slash = text.find('/');
  const char* end = text.data() + text.size();
  RankPlaceInWorld place;
  const auto read = [&](const char* from, const char* to, std::uint32_t& value) {
    const auto [rest, error] = std::from_chars(from, to, value);
    return error == std::errc{} && rest == to && from != to;
  };
  if (slash == std::string::npos || !read(text.data(), text.data() + slash, place.rank) ||
      !read(text.data() + slash + 1, end, place.world) || place.rank >= place.world ||
      place.world > kMostRanks) {
    throw InputError("--rank",
                     '"' + text + "\" is not a rank. Write its number and how many there are: 0/2.");
  }
  return place;
}

std::optional<RankPlaceInWorld> rank_in_files(const std::string& snapshot, const std::string& marks) {
  const auto truth = find_truth_file(snapshot);
  std::optional<RecordedRank> found = marks.empty() ? std::nullopt : read_recorded_rank(marks);
  if (!found && truth) found = read_recorded_rank(*truth);
  return found ? std::optional(RankPlaceInWorld{found->world, found->rank}) : std::nullopt;
}

bool same_recording(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  return std::filesystem::file_size(a, ignored) == std::filesystem::file_size(b, ignored) &&
         read_input_file(a) == read_input_file(b);
}

void require_other_recordings(const Texts& snapshots, const std::vector<RankPlaceInWorld>& places) {
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (places[i] == places[j] || !same_recording(snapshots[i], snapshots[j])) continue;
      throw InputError(
          snapshots[i],
          fmt::format("is the same recording as {}, and is given as rank {} of {} and "
                      "{} of {}. Give each rank its own.",
                      snapshots[j], places[j].rank, places[j].world, places[i].rank, places[i].world));
    }
  }
}

/// Which process each snapshot is; empty where all are one and the same, or nothing says so. Warns where the
/// files say something else than what is given.
std::vector<RankPlaceInWorld> rank_places(const Texts& snapshots, const Texts& marks, const Texts& given,
                                          Texts& warnings) {
  if (!given.empty() && given.size() != snapshots.size()) {
    throw InputError("--rank",
                     fmt::format("{} snapshots and {} ranks are given. Give --rank once for every snapshot, "
                                 "or not at all.",
                                 snapshots.size(), given.size()));
  }
  std::vector<RankPlaceInWorld> places;
  std::string unknown;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const auto noted = rank_in_files(snapshots[i], marks.empty() ? "" : marks[i]);
    const auto place = given.empty() ? noted : given_rank(given[i]);
    if (place && noted && !(*place == *noted)) {
      warnings.push_back(fmt::format("{} is taken for rank {} of {} (--rank); its files say rank {} of {}.",
                                     snapshots[i], place->rank, place->world, noted->rank, noted->world));
    }
    if (place) places.push_back(*place);
    if (!place) unknown = snapshots[i];
  }
  const bool one = std::adjacent_find(places.begin(), places.end(), std::not_equal_to<>()) == places.end();
  if (one) return {};
  if (!unknown.empty()) {
    throw InputError(
        unknown, "nothing says which rank it is, as its neighbours do. Give --rank 0/1 for every snapshot.");
  }
  require_other_recordings(snapshots, places);
  return places;
}

int fit_ranks(const std::vector<RecordedRun>& runs, const std::vector<RankPlaceInWorld>& places,
              const std::string& name, Texts warnings, const Arguments& arguments, Output& output) {
  if (arguments.contains("times")) {
    throw InputError("--times", "does not go with several ranks: a law of their step time is not known yet.");
  }
  std::map<RankPlaceInWorld, std::vector<RecordedRun>> by_place;
  for (std::size_t i = 0; i < runs.size(); ++i) by_place[places[i]].push_back(runs[i]);
  std::vector<RankModel> models;
  Table table{{left("rank"), "shapes", "allocations", "exact bytes"}};
  Json ranks = Json::array();
  for (const auto& [place, of_place] : by_place) {
    const std::string place_name = fmt::format("{} of {}", place.rank, place.world);
    FittedModel fitted;
    try {
      fitted = fit_model(of_place, name);
    } catch (const InputError& error) {
      Texts files;
      for (std::size_t i = 0; i < runs.size(); ++i)
        if (places[i] == place) files.push_back(operands(arguments)[i]);
      throw InputError(fmt::format("rank {} ({})", place_name, fmt::join(files, ", ")),
                       error.problems().front().what);
    }
    table.add_row({place_name, fmt::format("{}", fitted.spec.shapes.size()),
                   fmt::format("{}", fitted.residuals.all.tensors),
                   percent(fitted.residuals.bytes_with_form(), fitted.residuals.all.bytes)});
    ranks.push_back({{"world", place.world}, {"rank", place.rank}, {"residuals", residuals_json(fitted)}});
    for (const std::string& warning : fitted.warnings) {
      if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
    }
    models.push_back({.place = place, .spec = std::move(fitted.spec)});
  }
  const RankModels joined = join_ranks(std::move(models), warnings);
  const auto file = text_of(arguments, "output");
  Json json = rank_models_json(joined, name);
  if (arguments.contains("about")) json["about"] = text_of(arguments, "about");
  for (const std::string& snapshot : operands(arguments))
    json["card"]["recordings"].push_back(std::filesystem::path(snapshot).filename().string());
  json["card"]["warnings"] = warnings;
  write_file(file, model_file_text(json));
  const RecordedSpec& last = joined.all().back().spec;
  output.line("{} ranks of {} give a model with the number of ranks as a parameter ({}).",
              joined.all().size(), ranges_text(last.recorded), fmt::join(joined.worlds(), " and "));
  output.next_table(table);
  for (const std::string& warning : warnings) output.line("warning: " + warning);
  output.wrote(file);
  output.json({{"model", file},
               {"ranks", std::move(ranks)},
               {"range", ranges_json(last.recorded)},
               {"warnings", warnings}});
  return kDone;
}

// Fits the step-time law of `fitted` to every other point of each grid (lab/model/measured_grid.hpp).
void fit_times(FittedModel& fitted, const std::vector<MeasuredGrid>& grids) {
  RecordedSpec& spec = fitted.spec;
  const std::uint32_t rounds = rounds_product(spec);
  const RecordedModel model(spec);
  std::vector<TimedPoint> points;
  for (const MeasuredGrid& grid : grids) {
    for (std::size_t row = 0; row < grid.rows.size(); ++row) {
      if (!gives_time_law(row) || grid.rows[row].step_ms.empty()) continue;
      const RecordedConditions conditions = grid_conditions(model, grid.rows[row].parameters);
      const RecordedValues values(spec, conditions);
      points.push_back(
          {{values.monomials().begin(), values.monomials().end()}, middle_of(grid.rows[row].step_ms) * 1e-3});
    }
  }
  spec.time = fit_step_time(points, work_product(spec), rounds);
  if (spec.time.slopes.empty()) {
    fitted.warnings.push_back(fmt::format(
        "{} timed points give the step time, and no slope: every step takes the same. Time a dozen shapes.",
        points.size()));
  }
}

std::string shapes_text(const RecordedSpec& spec) {
  if (spec.shapes.size() > 1)
    return fmt::format("{} shapes of {} give", spec.shapes.size(), ranges_text(spec.recorded));
  const Parameter& only = spec.recorded.front();
  return only.name == kUnknown ? "One shape, its parameters unknown, gives"
                               : fmt::format("One shape, {} {}, gives", only.name, only.low);
}

int run_fit(const Arguments& arguments, Output& output) {
  const auto file = text_of(arguments, "output");
  const Texts marks = texts_of(arguments, "marks");
  const Texts times = texts_of(arguments, "times");
  Texts inputs = operands(arguments);
  inputs.insert(inputs.end(), marks.begin(), marks.end());
  inputs.insert(inputs.end(), times.begin(), times.end());
  require_output_names(inputs, {file, text_of(arguments, "json")});
  const std::string name =
      arguments.contains("name") ? text_of(arguments, "name") : std::filesystem::path(file).stem().string();
  Texts left_out;
  const auto runs = read_runs(marks, arguments, output, left_out);
  if (runs.empty()) return kStoppedByUser;  // no model is made of a part
  const auto places = rank_places(operands(arguments), marks, texts_of(arguments, "rank"), left_out);
  if (!places.empty()) return fit_ranks(runs, places, name, left_out, arguments, output);
  std::vector<MeasuredGrid> grids;
  for (const std::string& grid : times) grids.push_back(read_grid_file(grid));
  FittedModel fitted = fit_model(runs, name, grids.empty() ? 0 : grids.front().total_memory);
  fitted.warnings.insert(fitted.warnings.begin(), left_out.begin(), left_out.end());
  if (grids.empty()) {
    fitted.warnings.push_back(
        "no timed points were given: there are no step times and no rates. Give --times GRID.json "
        "(Recorder.time makes one).");
  } else {
    fit_times(fitted, grids);
  }
  Json json = recorded_model_json(fitted.spec);
  if (arguments.contains("about")) json["about"] = text_of(arguments, "about");
  json["card"] = card_json(fitted, operands(arguments), times);
  if (!grids.empty()) json["card"]["accuracy"] = accuracy_json(fitted.spec, grids.front());
  write_file(file, model_file_text(json));

  output.line("{} a model of {} allocations a step; {} of the bytes are exact.", shapes_text(fitted.spec),
              fitted.residuals.all.tensors,
              percent(fitted.residuals.bytes_with_form(), fitted.residuals.all.bytes));
  output.next_table(residual_table(fitted.residuals));
  constexpr std::size_t kShown = 5;
  if (!fitted.inexact.empty()) output.line("\nlargest without a form:");
  for (std::size_t i = 0; i < std::min(kShown, fitted.inexact.size()); ++i) {
    output.line("  " + family_text(fitted.inexact[i], fitted.shape_labels));
  }
  output.line("refused workspaces: {} attempts, {}", fitted.spec.workspace_refusals, refusals_text(fitted));
  for (const std::string& warning : fitted.warnings) output.line("warning: " + warning);
  output.wrote(file);
  Json names = Json::array();
  for (const Parameter& parameter : fitted.spec.parameters) names.push_back(parameter.name);
  output.json({{"model", file},
               {"shapes", fitted.shape_labels},
               {"parameters", std::move(names)},
               {"residuals", residuals_json(fitted)},
               {"range", ranges_json(fitted.spec.recorded)},
               {"warnings", fitted.warnings}});
  return kDone;
}

}  // namespace

Verb fit_verb() {
  return {.name = "fit",
          .summary = "a workload model from recorded steps",
          .operands = "SNAPSHOT...",
          .count = {1, 1000},
          .example = "vramlab fit run.pickle --marks run.marks.json -o model.json",
          .add_options = add_fit_options,
          .run = run_fit};
}

}  // namespace vramlab
