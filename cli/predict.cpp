// vramlab predict: memory and time of a model at given parameters, or its errors against measured points.
#include <cmath>

#include <fmt/format.h>

#include "cli/file_names.hpp"
#include "cli/output.hpp"
#include "cli/time_points.hpp"
#include "cli/verb.hpp"
#include "lab/data_files.hpp"
#include "lab/measured_grid.hpp"
#include "lab/model_file.hpp"
#include "lab/prediction.hpp"
#include "models/gpu_catalogue.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;

void add_options(Options& options) {
  add_output_options(options);
  options.add_options()
      // clang-format off
      ("set", po::value<Texts>()->composing(), "a parameter's value, batch=8; repeatable; default the recorded middle")
      ("gpu", po::value<std::string>()->default_value("h100-80gb"), "the card")
      ("limit", po::value<std::string>(), "what the allocator may reserve, 12GiB; default the whole card")
      ("alloc-conf", po::value<std::string>()->default_value(""), "allocator settings, as PYTORCH_CUDA_ALLOC_CONF")
      ("largest", po::value<std::string>(), "the parameter whose largest value that fits is wanted")
      ("against", po::value<std::string>(), "a grid of measured points; prints the model's errors")
      ("points", "with --against: every point");
  // clang-format on
}

std::unique_ptr<WorkloadModel> read_model(const std::string& name) {
  return load_model_file(find_data_file(name, {}).value_or(name));
}

// ---- at given parameters

Json prediction_json(const PredictionQuestion& question, const Prediction& prediction) {
  Json json;
  json["parameters"] = Json::object();
  for (std::size_t p = 0; p < question.point.size(); ++p) {
    json["parameters"][question.model->parameters().parameters[p].name] = question.point[p];
  }
  json["fits"] = prediction.fits;
  json["peak_allocated_bytes"] = prediction.peak_allocated;
  json["peak_reserved_bytes"] = prediction.peak_reserved;
  json["step_seconds"] = prediction.step_seconds;
  json["usable_bytes"] = question.usable();
  json["outside_range"] = prediction.outside_range;
  json["workspace_refusals"] = prediction.allocator_ooms;
  return json;
}

Table prediction_table(const PredictionQuestion& question, const Prediction& p) {
  using Align = Table::Align;
  Table table{{{"", Align::left}, {"value"}}};
  for (std::size_t i = 0; i < question.point.size(); ++i) {
    table.add_row({question.model->parameters().parameters[i].name, fmt::format("{}", question.point[i])});
  }
  table.add_row({"peak allocated", format_bytes(p.peak_allocated)});
  table.add_row({"peak reserved", format_bytes(p.peak_reserved)});
  table.add_row({"usable", format_bytes(question.usable())});
  table.add_row(
      {"step time", p.step_seconds > 0 ? fmt::format("{:.1f} ms", p.step_seconds * 1e3) : "not known"});
  return table;
}

void read_settings(const Arguments& arguments, PredictionQuestion& question) {
  if (!arguments.contains("set")) return;
  for (const std::string& setting : arguments["set"].as<Texts>()) question.set(setting);
}

PredictionQuestion read_question(const Arguments& arguments, const WorkloadModel& model) {
  PredictionQuestion question(model);
  question.gpu = &find_gpu(arguments["gpu"].as<std::string>(), "--gpu");
  question.allocator.settings = parse_allocator_settings(arguments["alloc-conf"].as<std::string>());
  if (arguments.contains("limit")) {
    const auto limit = parse_bytes(arguments["limit"].as<std::string>());
    if (!limit) throw InputError("--limit", "is not a size. Write 12GiB, 12288MiB or a number of bytes.");
    question.allocator.limit = *limit;
  }
  read_settings(arguments, question);
  return question;
}

int predict(const Arguments& arguments, const WorkloadModel& model, Output& output) {
  PredictionQuestion question = read_question(arguments, model);
  Json json;
  if (arguments.contains("largest")) {
    const std::string name = arguments["largest"].as<std::string>();
    const LargestValue largest = find_largest(question, name);
    json["largest"] = {{"parameter", name}, {"value", largest.value}, {"bound", largest.at_bound}};
    if (largest.value == 0) {
      output.line(fmt::format("Not even {} {} fits on {}.", name, largest.smallest, question.gpu->id));
      output.json(json);
      return kDone;
    }
    question.set(fmt::format("{}={}", name, largest.value));
    output.line(fmt::format("{} {} is the largest that fits on {}{}.", name, largest.value, question.gpu->id,
                            largest.at_bound ? ", and the largest that the model knows" : ""));
  }
  const Prediction prediction = predict_step(question);
  if (!arguments.contains("largest")) {
    output.line(prediction.fits
                    ? fmt::format("Fits on {}: peak reserved {} of {} usable.", question.gpu->id,
                                  format_bytes(prediction.peak_reserved), format_bytes(question.usable()))
                    : fmt::format("Does not fit on {}: {} usable, out of memory while asking for {}.",
                                  question.gpu->id, format_bytes(question.usable()),
                                  format_bytes(prediction.failed)));
  }
  if (prediction.outside_range) output.line("warning: these parameters lie outside what was recorded.");
  output.line("");
  output.table(prediction_table(question, prediction));
  json.update(prediction_json(question, prediction));
  output.json(json);
  return kDone;
}

// ---- against measured points

double error_of(double predicted, double measured) { return std::abs(predicted - measured) / measured; }

/// Rows of one sort, with the errors of everything that was measured.
struct Comparison {
  std::string what;
  std::vector<double> allocated;
  std::vector<double> reserved;
};

Json summary_json(const std::vector<double>& errors) {
  const ErrorSummary summary = summarise(errors);
  if (errors.empty()) return nullptr;
  return {{"points", summary.points},
          {"exact", summary.exact},
          {"median_error", summary.median},
          {"p95_error", summary.p95},
          {"max_error", summary.largest}};
}

std::string figures(const std::vector<double>& errors) {
  if (errors.empty()) return "-";
  const ErrorSummary s = summarise(errors);
  return fmt::format("{:.3f} / {:.2f} / {:.2f}", 100 * s.median, 100 * s.p95, 100 * s.largest);
}

std::string exact_of(const std::vector<double>& errors) {
  return fmt::format("{} of {}", summarise(errors).exact, errors.size());
}

int compare(const Arguments& arguments, const WorkloadModel& model, Output& output) {
  const MeasuredGrid grid = read_grid_file(arguments["against"].as<std::string>());
  const std::vector<GridPrediction> predictions = replay_grid(grid, model);
  std::vector<Comparison> sorts{
      {"all"}, {"inside the recorded range"}, {"outside it"}, {"peak below twice the base"}, {"other peaks"}};
  std::vector<double> times;
  std::vector<double> fitted_times;
  std::size_t skipped = 0;
  std::size_t outside = 0;
  std::size_t outcomes[2][2] = {};
  using Align = Table::Align;
  Table points{{{"point", Align::left},
                {"allocated"},
                {"error %"},
                {"reserved"},
                {"error %"},
                {"base off"},
                {"time error %"}}};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const GridPrediction& p = predictions[i];
    const GridRow& row = grid.rows[i];
    skipped += p.skipped ? 1 : 0;
    if (p.skipped) continue;
    outside += p.outside ? 1 : 0;
    ++outcomes[row.ok ? 0 : 1][p.oom ? 1 : 0];
    if (!row.ok || p.oom) continue;
    const double allocated =
        error_of(static_cast<double>(p.peak_allocated), static_cast<double>(row.peak_allocated));
    const double reserved =
        error_of(static_cast<double>(p.peak_reserved), static_cast<double>(row.peak_reserved));
    for (const std::size_t sort :
         {std::size_t{0}, std::size_t{p.outside ? 2U : 1U}, std::size_t{p.small ? 3U : 4U}}) {
      sorts[sort].allocated.push_back(allocated);
      sorts[sort].reserved.push_back(reserved);
    }
    double time = 0;
    if (!row.step_ms.empty() && p.step_ms > 0) {
      const double measured = middle_of(row.step_ms);
      time = p.step_ms / measured - 1;
      (gives_time_law(i) ? fitted_times : times).push_back(std::abs(time));
    }
    points.add_row(
        {p.label, format_bytes(row.peak_allocated),
         fmt::format(
             "{:+.3f}",
             100 * (static_cast<double>(p.peak_allocated) / static_cast<double>(row.peak_allocated) - 1)),
         format_bytes(row.peak_reserved),
         fmt::format(
             "{:+.3f}",
             100 * (static_cast<double>(p.peak_reserved) / static_cast<double>(row.peak_reserved) - 1)),
         fmt::format("{:+}", static_cast<std::int64_t>(p.base) - static_cast<std::int64_t>(row.base)),
         fmt::format("{:+.1f}", 100 * time)});
  }
  output.line(fmt::format(
      "{} measured points on {}: peak allocated is off by {:.2f} % at the median, peak reserved by {:.2f} %.",
      predictions.size(), grid.device.empty() ? "a card" : grid.device,
      100 * summarise(sorts[0].allocated).median, 100 * summarise(sorts[0].reserved).median));
  if (skipped > 0) {
    for (const GridPrediction& p : predictions) {
      if (!p.skipped) continue;
      output.line(
          fmt::format("{} points are left out: {}. Record steps at other values of it.", skipped, p.reason));
      break;
    }
  }
  output.line("");
  if (arguments.contains("points")) {
    output.table(points);
    output.line("");
  }
  Table table{{{"errors in %, median / p95 / largest", Align::left},
               {"points"},
               {"peak allocated"},
               {"equal"},
               {"peak reserved"},
               {"equal"}}};
  for (const Comparison& sort : sorts) {
    if (sort.allocated.empty()) continue;
    table.add_row({sort.what, fmt::format("{}", sort.allocated.size()), figures(sort.allocated),
                   exact_of(sort.allocated), figures(sort.reserved), exact_of(sort.reserved)});
  }
  output.table(table);
  if (!times.empty()) {
    output.line(fmt::format(
        "\nstep time, errors in %: {} over {} points that did not give the law, {} over those that did.",
        figures(times), times.size(), figures(fitted_times)));
  }
  Json json;
  json["points"] = predictions.size() - skipped;
  json["skipped"] = skipped;
  json["outside_range"] = outside;
  json["peak_allocated"] = summary_json(sorts[0].allocated);
  json["peak_reserved"] = summary_json(sorts[0].reserved);
  json["step_time"] = summary_json(times);
  json["step_time_fitted_points"] = summary_json(fitted_times);
  const char* keys[] = {"", "inside", "outside", "small", "other"};
  for (std::size_t sort = 1; sort < sorts.size(); ++sort) {
    json[keys[sort]] = {{"peak_allocated", summary_json(sorts[sort].allocated)},
                        {"peak_reserved", summary_json(sorts[sort].reserved)}};
  }
  json["oom"] = {{"true_positive", outcomes[1][1]},
                 {"false_positive", outcomes[0][1]},
                 {"true_negative", outcomes[0][0]},
                 {"false_negative", outcomes[1][0]}};
  output.json(json);
  return kDone;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  require_output_names(operands(arguments), {arguments["json"].as<std::string>()});
  const auto model = read_model(operands(arguments)[0]);
  return arguments.contains("against") ? compare(arguments, *model, output)
                                       : predict(arguments, *model, output);
}

}  // namespace

Verb predict_verb() {
  return {
      .name = "predict",
      .summary = "memory and time of a model at given parameters, or its errors against measured points",
      .operands = "MODEL",
      .example = "vramlab predict models/superres-rrdb6.json --set batch=8 --set lq=96 --gpu rtx-3060-12gb",
      .least_operands = 1,
      .most_operands = 1,
      .add_options = add_options,
      .run = run};
}

}  // namespace vramlab
