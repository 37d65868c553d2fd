// vramlab predict: memory and time of a model at given parameters, or its errors against measured points.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "core/statistics.hpp"
#include "lab/model/file.hpp"
#include "lab/model/measured_grid.hpp"
#include "lab/model/prediction.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/file.hpp"
#include "models/gpu_catalogue.hpp"
#include "models/recorded_model.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

using Texts = std::vector<std::string>;

void add_predict_options(Options& options) {
  add_output_options(options);
  options.add_options()
      // clang-format off
      ("set", po::value<Texts>()->composing(), "a parameter's value, batch=8; repeatable; default the recorded middle")
      ("gpu", po::value<std::string>()->default_value("h100-80gb"), "the card")
      ("limit", po::value<std::string>(), "what the allocator may reserve, 12GiB; default the whole card")
      ("alloc-conf", po::value<std::string>()->default_value(""), "allocator settings, as PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF)")
      ("backend", po::value<std::string>()->default_value("native"), "what serves the program: native, cudaMallocAsync, direct, bfc (also bfc:0.9, bfc:grow), fixed-pool")
      ("world", po::value<std::int64_t>(), "of a model of several ranks: how many there are; default the most recorded")
      ("largest", po::value<std::string>(), "the parameter whose largest value that fits is wanted")
      ("against", po::value<std::string>(), "a grid of measured points; prints the model's errors")
      ("points", "with --against: every point");
  // clang-format on
}

RankWorkloads read_model(const Arguments& arguments, Output& output) {
  const std::string name = operands(arguments)[0];
  const auto file = find_data_file(name, {}).value_or(name);
  output.reads({file.string()});
  std::optional<std::uint32_t> world;
  if (arguments.contains("world")) {
    const auto given = arguments["world"].as<std::int64_t>();
    if (given < 1 || given > kMostRanks) {
      throw InputError("--world",
                       fmt::format("{} ranks are out of range. Allowed: 1 to {}.", given, kMostRanks));
    }
    world = static_cast<std::uint32_t>(given);
  }
  return load_rank_workloads(file, world);
}

constexpr std::uint32_t kMostMeasuredRanks = 4;  // docs/fidelity.md

// ---- at given parameters

// Whether the room rests on a context that was not measured; a limit below it does not.
bool assumes_context(const PredictionQuestion& question) {
  return question.gpu->context_assumed() && !question.outside_recorded() && !question.outside_assumed() &&
         question.allocator.limit != question.usable();
}

// Where the figure of what lies outside the allocator comes from.
const char* outside_source(const PredictionQuestion& question) {
  return question.outside_assumed() ? "assumed: as recorded on another card"
         : question.extrapolated    ? "extrapolated"
                                    : "as recorded";
}

std::string card_name(const PredictionQuestion& question) {
  const bool shown = (question.outside_recorded() || question.outside_assumed()) &&
                     question.allocator.limit != question.usable();
  return std::string{question.gpu->id} + (assumes_context(question) ? " (context assumed)" : "") +
         (shown ? fmt::format(" ({} outside the allocator, {})", format_bytes(question.outside()),
                              outside_source(question))
                : "");
}

Json prediction_json(const PredictionQuestion& question, const Prediction& prediction) {
  return {
      {"parameters", point_json(question)},
      {"fits", prediction.fits},
      {"peak_allocated_bytes", prediction.peak_allocated},
      {"peak_reserved_bytes", prediction.peak_reserved},
      {"step_seconds", question.model->timed() ? Json(prediction.step_seconds) : Json(nullptr)},
      {"bound_by_host", prediction.bound_by_host},
      {"host_seconds_seen",
       prediction.bound_by_host ? Json{prediction.least_seconds, prediction.most_seconds} : Json(nullptr)},
      {"gpu", question.gpu->id},
      {"usable_bytes", question.usable()},
      {"context_assumed", assumes_context(question)},
      {"outside_bytes", question.outside()},
      {"outside_recorded", question.outside_recorded() && !question.extrapolated},
      {"disproved_by_recording", prediction.disproved_by != nullptr},
      {"outside_range", prediction.outside_range},
      {"workspace_refusals", prediction.allocator_ooms}};
}

Table prediction_table(const PredictionQuestion& question, const Prediction& p) {
  Table table{{left(""), "value"}};
  for (std::size_t i = 0; i < question.point.size(); ++i) {
    table.add_row({question.model->parameters().parameters[i].name, fmt::format("{}", question.point[i])});
  }
  table.add_row({"peak allocated", format_bytes(p.peak_allocated)});
  table.add_row({"peak reserved", format_bytes(p.peak_reserved)});
  table.add_row({"usable", format_bytes(question.usable())});
  table.add_row({"step time (its own card)",
                 p.step_seconds > 0 ? fmt::format("{:.1f} ms", p.step_seconds * 1e3) : "not known"});
  if (p.bound_by_host) {
    table.add_row({"bound by the host, seen",
                   fmt::format("{:.1f} to {:.1f} ms", p.least_seconds * 1e3, p.most_seconds * 1e3)});
  }
  return table;
}

std::string disproof(const PredictionQuestion& question, const RecordedFailure& failure) {
  std::string point;
  for (std::size_t i = 0; i < failure.point.size(); ++i) {
    point += fmt::format("{}{} {}", i > 0 ? ", " : "", question.model->parameters().parameters[i].name,
                         failure.point[i]);
  }
  return fmt::format("Does not fit on {}: {} usable, and a recorded step of {} needed {} and failed.",
                     card_name(question), format_bytes(question.usable()), point,
                     format_bytes(failure.needed));
}

PredictionQuestion read_question(const Arguments& arguments, const WorkloadModel& model) {
  PredictionQuestion question(model);
  question.gpu = &find_gpu(text_of(arguments, "gpu"), "--gpu");
  question.allocator.settings = parse_allocator_settings(text_of(arguments, "alloc-conf"));
  try {
    question.allocator.backend = parse_backend(text_of(arguments, "backend"));
  } catch (const InputError& error) {
    throw InputError("--backend", error.problems().front().what);
  }
  if (arguments.contains("limit")) {
    const auto limit = parse_bytes(text_of(arguments, "limit"));
    if (!limit || *limit == 0) {
      throw InputError("--limit", "\"" + text_of(arguments, "limit") +
                                      "\" is not a size. Write 12GiB, 12288MiB or a number of bytes.");
    }
    require_limit_on_card(*limit, question.gpu->total, "--limit");
    question.allocator.limit = *limit;
  }
  const double fraction = question.allocator.settings.per_process_memory_fraction;
  if (fraction < 1) {  // R9.1
    const auto share = static_cast<Bytes>(fraction * static_cast<double>(question.gpu->total));
    question.allocator.limit = std::min(question.allocator.limit.value_or(share), share);
  }
  const Texts settings = texts_of(arguments, "set");
  require_names_once(settings, "--set");
  for (const std::string& setting : settings) question.set(setting);
  return question;
}

/// The largest value of the parameter that fits on every rank.
LargestValue find_largest(const std::vector<PredictionQuestion>& questions, const std::string& name) {
  LargestValue least = find_largest(questions[0], name);
  for (std::size_t i = 1; i < questions.size(); ++i) {
    const LargestValue one = find_largest(questions[i], name);
    if (one.value < least.value) least = one;
  }
  return least;
}

std::string worlds_text(const RankWorkloads& workloads) {
  return fmt::format("{}", fmt::join(workloads.recorded, " and "));
}

// What is known of ranks: how many, which of them decides, and whether so many were recorded.
void add_ranks(const RankWorkloads& workloads, const PredictionQuestion& question, std::size_t deciding,
               Output& output, Json& json) {
  if (!workloads.of_ranks()) return;
  json["outside_assumed"] = question.outside_assumed();
  json["ranks"] = workloads.world;
  json["deciding_rank"] = workloads.ranks[deciding];
  json["extrapolated"] = workloads.extrapolated();
  output.line("Rank {} of {} decides{}.", workloads.ranks[deciding], workloads.world,
              workloads.world > workloads.ranks.size() ? ", of those that were recorded" : "");
  if (workloads.extrapolated()) {
    output.line(
        "warning: extrapolated, {} ranks were recorded; how sizes go with their number follows from these.{}",
        worlds_text(workloads),
        workloads.world > kMostMeasuredRanks
            ? fmt::format(" Such answers were held against real runs of up to {} ranks of one host, and none "
                          "of more.",
                          kMostMeasuredRanks)
            : "");
  }
}

// Adds to `json` how far the parameter --largest goes, and asks for that. Nothing to predict if it is empty.
std::optional<LargestValue> ask_largest(const Arguments& arguments,
                                        std::vector<PredictionQuestion>& questions, Json& json) {
  const std::string name = text_of(arguments, "largest");
  const LargestValue largest = find_largest(questions, name);
  json["largest"] = {{"parameter", name},
                     {"value", largest.value},
                     {"bound", largest.at_bound},
                     {"ends_at", largest.at_bound ? "model_range" : "memory"}};
  if (largest.value == 0) return largest;
  for (PredictionQuestion& question : questions) question.set(fmt::format("{}={}", name, largest.value));
  return largest;
}

// What a model's file says of recordings that no card took part in, and of what was put into them.
Texts notes_of_model(const std::string& name) {
  const auto file = find_data_file(name, {});
  if (!file || !std::filesystem::is_regular_file(*file)) return {};  // a pipe was read already
  const Json model = Json::parse(read_input_file(*file));
  Texts notes;
  if (!model.contains("card") || !model["card"].contains("warnings")) return notes;
  for (const Json& warning : model["card"]["warnings"]) {
    if (!warning.is_string()) continue;
    const std::string text = warning.get<std::string>();
    const bool is_first = text.starts_with("Made without a card");
    const bool is_part = text.starts_with("By law: ") || text.starts_with("Assumed: ");
    if (is_first || (is_part && !notes.empty())) notes.push_back(text);
  }
  return notes;
}

int predict(const Arguments& arguments, const RankWorkloads& workloads, Output& output) {
  std::vector<PredictionQuestion> questions;
  for (const auto& model : workloads.models) {
    questions.push_back(read_question(arguments, *model));
    questions.back().of_ranks = workloads.of_ranks();
    questions.back().extrapolated = workloads.extrapolated();
  }
  Json json;
  std::optional<LargestValue> largest;
  if (arguments.contains("largest")) largest = ask_largest(arguments, questions, json);
  if (largest && largest->value == 0) {
    json["gpu"] = questions[0].gpu->id;
    json["context_assumed"] = questions[0].gpu->context_assumed();
    output.line("Not even {} {} fits on {}.", text_of(arguments, "largest"), largest->smallest,
                card_name(questions[0]));
    output.json(json);
    return kDone;
  }
  std::vector<Prediction> predictions;
  for (const PredictionQuestion& question : questions) predictions.push_back(predict_step(question));
  const std::size_t deciding = deciding_rank(predictions);
  const PredictionQuestion& question = questions[deciding];
  const Prediction& prediction = predictions[deciding];
  if (largest) {
    output.line(
        largest->at_bound
            ? fmt::format(
                  "{} {} fits on {}, and is where the model's range ends ({:.0f} % of what is usable).",
                  text_of(arguments, "largest"), largest->value, card_name(question),
                  100 * static_cast<double>(prediction.peak_reserved) /
                      static_cast<double>(question.usable()))
            : fmt::format("{} {} is the largest that fits on {}.", text_of(arguments, "largest"),
                          largest->value, card_name(question)));
  } else {
    output.line(prediction.disproved_by != nullptr ? disproof(question, *prediction.disproved_by)
                : prediction.fits
                    ? fmt::format("Fits on {}: peak reserved {} of {} usable.", card_name(question),
                                  format_bytes(prediction.peak_reserved), format_bytes(question.usable()))
                    : fmt::format("Does not fit on {}: {} usable, out of memory while asking for {}.",
                                  card_name(question), format_bytes(question.usable()),
                                  format_bytes(prediction.failed)));
  }
  if (prediction.fits && prediction.allocator_ooms > 0) {
    output.line("warning: {} requests are refused on the way, workspaces that libraries do without.",
                prediction.allocator_ooms);
  }
  add_ranks(workloads, question, deciding, output, json);
  for (const std::string& note : allocator_notes(question.allocator)) output.line("note: " + note);
  if (prediction.outside_range) output.line("warning: these parameters lie outside what was recorded.");
  output.next_table(prediction_table(question, prediction));
  const Texts notes = notes_of_model(operands(arguments).front());
  for (const std::string& note : notes) output.line("note: {}", note);
  if (!notes.empty()) json["notes"] = notes;
  json.update(prediction_json(question, prediction));
  output.json(json);
  return kDone;
}

// ---- against measured points

std::string figures(const std::vector<double>& errors) {
  if (errors.empty()) return "-";
  const ErrorSummary s = summarise(errors);
  return fmt::format("{:.3f} / {:.2f} / {:.2f}", 100 * s.median, 100 * s.p95, 100 * s.largest);
}

std::string equal_of(const std::vector<double>& errors) {
  return fmt::format("{} of {}", summarise(errors).exact, errors.size());
}

Table errors_table(const GridErrors& errors) {
  Table table{{left("errors in %, median / p95 / largest"), "points", "peak allocated", "equal",
               "peak reserved", "equal"}};
  for (const RowErrors& rows : errors.rows) {
    if (rows.allocated.empty()) continue;
    table.add_row({rows.what, fmt::format("{}", rows.allocated.size()), figures(rows.allocated),
                   equal_of(rows.allocated), figures(rows.reserved), equal_of(rows.reserved)});
  }
  return table;
}

std::string off_by(Bytes predicted, Bytes measured) {
  return fmt::format("{:+.3f}", 100 * (static_cast<double>(predicted) / static_cast<double>(measured) - 1));
}

Table points_table(const MeasuredGrid& grid, const std::vector<GridPrediction>& predictions) {
  Table table{{left("point"), "peak allocated", "off by %", "peak reserved", "off by %", "base off by bytes",
               "step, ms", "off by %"}};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const GridPrediction& p = predictions[i];
    const GridRow& row = grid.rows[i];
    if (p.skipped || !row.ok || p.oom) {
      table.add_row({p.label, p.skipped ? "left out" : "out of memory", "", "", "", "", "", ""});
      continue;
    }
    const bool timed = !row.step_ms.empty() && p.step_ms > 0;
    const double ms = timed ? middle_of(row.step_ms) : 0;
    table.add_row(
        {p.label, format_bytes(row.peak_allocated), off_by(p.peak_allocated, row.peak_allocated),
         format_bytes(row.peak_reserved), off_by(p.peak_reserved, row.peak_reserved),
         fmt::format("{:+}", static_cast<std::int64_t>(p.base) - static_cast<std::int64_t>(row.base)),
         timed ? fmt::format("{:.1f}", ms) : "-",
         timed ? fmt::format("{:+.1f}", 100 * (p.step_ms / ms - 1)) : "-"});
  }
  return table;
}

/// How many ranks a grid says of itself: by its `world`, or by a name such as "fsdp_w2.rank0" or "fsdp, 3
/// ranks".
std::optional<std::uint32_t> world_of(const MeasuredGrid& grid) {
  if (grid.world) return grid.world;
  std::smatch found;
  for (const char* form : {"_w([1-9][0-9]{0,4})([._-]|$)", "[ -]([1-9][0-9]{0,4})[ -]ranks"}) {
    if (std::regex_search(grid.name, found, std::regex(form)))
      return static_cast<std::uint32_t>(std::stoul(found[1].str()));
  }
  return std::nullopt;
}

// What a grid of another number of ranks is worth is for the user to say.
void require_world_of(const MeasuredGrid& grid, const RankWorkloads& workloads, bool given, Output& output) {
  if (!workloads.of_ranks()) return;
  output.line("Simulated as {} rank{}{}.", workloads.world, workloads.world == 1 ? "" : "s",
              workloads.ranks.size() > 1 ? ", at each point the one with the highest reserved peak" : "");
  const auto world = world_of(grid);
  if (!world || *world == workloads.world) return;
  const std::string measured = fmt::format("was measured with {} rank{}", *world, *world == 1 ? "" : "s");
  if (grid.world && !given) {
    throw InputError(grid.name,
                     fmt::format("{}, not {}. Give --world {}, or --world {} to compare them all the same.",
                                 measured, workloads.world, *world, workloads.world));
  }
  output.line("warning: by its {}, {} {}. --world {} compares like with like.",
              grid.world ? "own account" : "name", grid.name, measured, *world);
}

// What lay outside the allocator, where the grid and the model have it.
void add_outside(const MeasuredGrid& grid, const RankWorkloads& workloads, Output& output, Json& json) {
  Bytes least = 0;
  Bytes most = 0;
  for (const GridRow& row : grid.rows) {
    if (row.outside == 0) continue;
    least = least == 0 ? row.outside : std::min(least, row.outside);
    most = std::max(most, row.outside);
  }
  const auto* recorded = dynamic_cast<const RecordedModel*>(workloads.models.front().get());
  const Bytes predicted = recorded == nullptr ? 0 : recorded->spec().outside;
  if (most == 0 || predicted == 0) return;
  json["outside"] = {{"predicted_bytes", predicted},
                     {"measured_bytes", {least, most}},
                     {"extrapolated", workloads.extrapolated()}};
  output.line("\nOutside the allocator: {} bytes{}; measured {}.", predicted,
              workloads.extrapolated() ? ", extrapolated" : "",
              least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

int compare(const Arguments& arguments, const RankWorkloads& workloads, Output& output) {
  const MeasuredGrid grid = read_grid_file(text_of(arguments, "against"));
  require_world_of(grid, workloads, arguments.contains("world"), output);
  const std::vector<GridPrediction> predictions = replay_grid(grid, workloads);
  const GridErrors errors = grid_errors(grid, predictions);
  if (errors.rows[0].allocated.empty()) {
    output.line("None of {} measured points can be compared{}.", predictions.size(),
                errors.skipped > 0 ? ": " + errors.skip_reason : "");
  } else {
    output.line(
        "{} measured points on {}: peak allocated is off by {:.2f} % at the median, peak reserved by {:.2f} "
        "%.",
        errors.rows[0].allocated.size(), grid.device.empty() ? "a card" : grid.device,
        100 * summarise(errors.rows[0].allocated).median, 100 * summarise(errors.rows[0].reserved).median);
  }
  if (errors.skipped > 0) {
    output.line("{} points are left out: {}. Record steps at other values of it.", errors.skipped,
                errors.skip_reason);
  }
  if (arguments.contains("points")) output.next_table(points_table(grid, predictions));
  output.next_table(errors_table(errors));
  if (!errors.times.empty()) {
    output.line(
        "\nstep time, errors in %: {} over {} points that did not give the law, {} over {} "
        "that did.",
        figures(errors.times), errors.times.size(), figures(errors.fitted_times), errors.fitted_times.size());
    if (errors.waiting > 0) {
      output.line(
          "Of the {}, {} may be bound by the host, and {} of these took what it was seen to take, to a tenth;"
          " the other {}: {}.",
          errors.times.size(), errors.waiting, errors.waiting_as_seen, errors.card_times.size(),
          figures(errors.card_times));
    }
  }
  Json json = grid_errors_json(errors);
  add_outside(grid, workloads, output, json);
  if (workloads.of_ranks()) {
    json["ranks"] = workloads.world;
    json["extrapolated"] = workloads.extrapolated();
  }
  if (workloads.extrapolated()) {
    output.line("\n{} ranks are extrapolated: {} were recorded.", workloads.world, worlds_text(workloads));
  }
  output.json(json);
  return kDone;
}

// A grid says itself where and at what its points were measured.
void require_options_of_form(const Arguments& arguments, bool against) {
  for (const char* name : {"set", "gpu", "limit", "alloc-conf", "largest"}) {
    if (against && arguments.contains(name) && !arguments[name].defaulted()) {
      throw InputError(std::string{"--"} + name,
                       "does not go with --against: the grid says what was measured.");
    }
  }
  if (!against && arguments.contains("points"))
    throw InputError("--points", "goes with --against GRID.json.");
}

int run_predict(const Arguments& arguments, Output& output) {
  const bool against = arguments.contains("against");
  require_options_of_form(arguments, against);
  Texts inputs = operands(arguments);
  if (against) inputs.push_back(text_of(arguments, "against"));
  require_output_names(inputs, {text_of(arguments, "json")});
  const RankWorkloads workloads = read_model(arguments, output);
  return against ? compare(arguments, workloads, output) : predict(arguments, workloads, output);
}

}  // namespace

Verb predict_verb() {
  return {
      .name = "predict",
      .summary = "memory and time of a model at given parameters, or its errors against measured points",
      .operands = "MODEL",
      .count = {1, 1},
      .example = "vramlab predict models/superres-rrdb6.json --set batch=8 --set lq=96 --gpu rtx-3060-12gb",
      .add_options = add_predict_options,
      .run = run_predict};
}

}  // namespace vramlab
