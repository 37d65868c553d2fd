// vramlab estimate: the two published table estimates, and what they leave out; a network by its config.json
// has a source of its own.
#include "cli/estimate/estimate.hpp"

#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/model/table_estimate.hpp"
#include "policies/composers/oom_guardian.hpp"
#include "policies/predictors/table_predictor.hpp"

namespace vramlab {
namespace {

void add_estimate_options(Options& options) {
  add_output_options(options);
  options.add_options()
      // clang-format off
      ("type", po::value<std::string>(), "a job by its type: transformer, cnn, rnn")
      ("size", po::value<std::string>()->default_value("medium"), "with --type: small, medium, large, xlarge")
      ("seq", po::value<std::int64_t>()->default_value(512), "with --type transformer and --config: sequence length")
      ("training", "with --type: training and not inference")
      ("faithful", "with --type: as the published queue computes: always medium, no ratio below 1")
      ("samples", po::value<std::int64_t>(), "an epoch of mixed tasks: number of samples")
      ("tasks", po::value<std::string>()->default_value("T1=0.4,T2=0.3,T3=0.3"), "with --samples: shares of the tasks")
      ("epochs", po::value<std::int64_t>()->default_value(1), "with --samples: epochs")
      ("budget", po::value<std::string>(), "with --samples: memory to have; adds the largest batch of each task")
      ("safe-batch", text_value("TASK"), "the largest batch of one task within --budget, of 1 to 256")
      ("images", text_value("T1=N,T2=N,T3=N"), "images of a sample, by task; assumed 1, 3 and 4")
      ("calibration", text_value("FILE"), "CSV, header task,mb: peaks of batches of one sample; 10 calibrate a task")
      ("inference", "with --samples and --safe-batch: forward pass only")
      ("batch", po::value<std::int64_t>(), "batch size; default 8 with --type and --config, 16 with --samples");
  // clang-format on
  add_config_options(options);
}

std::string megabytes(double mb) { return fmt::format("{:.1f} MB", mb); }

int estimate_one_job(const Arguments& arguments, Output& output) {
  JobEstimate job;
  job.type = text_of(arguments, "type");
  job.size = text_of(arguments, "size");
  job.sequence = arguments["seq"].as<std::int64_t>();
  if (arguments.contains("batch")) job.batch = arguments["batch"].as<std::int64_t>();
  job.training = arguments.contains("training");
  job.faithful = arguments.contains("faithful");
  const JobEstimateSteps result = estimate_job(job);
  output.line("A {} {} needs {} for {} at batch {}, by the table{}.\n", job.size, job.type,
              megabytes(result.required_mb), job.training ? "training" : "inference", job.batch,
              job.faithful ? " as the published queue reads it: always medium, no ratio below 1" : "");
  Table table{{left(""), "memory"}};
  table.add_row({"table, batch 8, length 512", megabytes(result.base_mb)});
  table.add_row({job.type == "transformer" ? fmt::format("at batch {}, length {}", job.batch, job.sequence)
                                           : fmt::format("at batch {}", job.batch),
                 megabytes(result.batch_mb)});
  if (job.training) table.add_row({"training, x 2.5", megabytes(result.required_mb)});
  output.table(table);
  output.line(
      "\nIn: weights and activations as one figure, scaled with the batch. Not in: what does not grow with "
      "the\n"
      "batch, the optimizer, the allocator's idle memory, the CUDA context. vramlab predict simulates "
      "these.");
  std::vector<std::string> assumed;
  if (arguments["size"].defaulted()) assumed.push_back("size " + job.size);
  if (!arguments.contains("batch")) assumed.push_back(fmt::format("batch {}", job.batch));
  if (job.type == "transformer" && arguments["seq"].defaulted())
    assumed.push_back(fmt::format("length {}", job.sequence));
  if (!assumed.empty()) output.line("Assumed: {}.", fmt::join(assumed, ", "));
  output.json({{"base_mb", result.base_mb},
               {"batch_mb", result.batch_mb},
               {"required_mb", result.required_mb},
               {"assumed", assumed}});
  return kDone;
}

// `T1=0.4,T2=0.3` as numbers by name.
template <class Number>
std::map<std::string, Number> read_entries(const std::string& option, const std::string& text,
                                           const char* example) {
  std::map<std::string, Number> read;
  std::istringstream entries{text + ','};
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    Number value = 0;
    const char* last = entry.data() + entry.size();
    const auto [rest, error] =
        std::from_chars(entry.data() + std::min(equals + 1, entry.size()), last, value);
    if (error != std::errc{} || rest != last || equals == 0) {
      throw InputError(option,
                       fmt::format("\"{}\" does not give a task its number. Write {}.", entry, example));
    }
    if (!read.emplace(entry.substr(0, equals), value).second) {
      throw InputError(option, entry.substr(0, equals) + " is given twice.");
    }
  }
  return read;
}

TaskEstimate read_task_estimate(const Arguments& arguments) {
  TaskEstimate tasks;
  tasks.tasks = read_entries<double>("--tasks", text_of(arguments, "tasks"), "T1=0.4,T2=0.3,T3=0.3");
  if (const auto text = text_of(arguments, "images"); !text.empty()) {
    tasks.images = read_entries<std::int64_t>("--images", text, "T1=1,T2=4,T3=8");
  }
  if (const auto file = text_of(arguments, "calibration"); !file.empty()) {
    tasks.measured = read_measured_samples(file);
  }
  if (arguments.contains("samples")) tasks.samples = arguments["samples"].as<std::int64_t>();
  if (arguments.contains("batch")) tasks.batch = arguments["batch"].as<std::int64_t>();
  tasks.epochs = arguments["epochs"].as<std::int64_t>();
  tasks.training = !arguments.contains("inference");
  if (arguments.contains("budget")) {
    const auto text = text_of(arguments, "budget");
    tasks.budget = parse_bytes(text);
    if (!tasks.budget) throw InputError("--budget", '"' + text + "\" is not a size. Write 12GiB or 512MiB.");
  }
  return tasks;
}

std::vector<std::string> assumed_images(const TaskEstimate& asked, const TaskEstimateResult& result) {
  std::vector<std::string> assumed;
  for (const auto& [task, images] : result.images) {
    if (!asked.images.contains(task)) {
      assumed.push_back(fmt::format("{} image{} of a {} sample", images, images == 1 ? "" : "s", task));
    }
  }
  return assumed;
}

bool calibrates(const TaskCalibration& one) { return one.samples >= TablePredictor::kSamplesToCalibrate; }

// "the table", or which of its tasks were measured.
std::string basis(const TaskEstimateResult& result) {
  std::vector<std::string> tasks;
  for (const auto& [task, one] : result.calibration) {
    if (calibrates(one) && result.images.contains(task)) tasks.push_back(task);
  }
  return tasks.empty() ? "the table" : fmt::format("the table as calibrated for {}", fmt::join(tasks, ", "));
}

// What the figures rest on: measured samples, the table, and what nobody gave.
void show_basis(const TaskEstimateResult& result, const std::vector<std::string>& assumed, Output& output) {
  if (!result.calibration.empty()) {
    output.line("");
    Table table{{left("calibration"), "measured", "factor", "error by the table", "with the factor"}};
    for (const auto& [task, one] : result.calibration) {
      const bool enough = calibrates(one);
      table.add_row({task, fmt::format("{}{}", one.samples, enough ? "" : ", too few"),
                     enough ? fmt::format("{:.3f}", one.factor) : "-",
                     fmt::format("{:.1f} %", 100 * one.table_error),
                     enough ? fmt::format("{:.1f} %", 100 * one.error) : "-"});
    }
    output.table(table);
  }
  output.line(
      "\nIn: 0.15 GB, 0.12 GB a batch, 0.28 GB forward and 0.35 GB backward an image, times the task's "
      "multiplier\n"
      "and its factor from {} or more measured samples. Not in: padding, the allocator's idle memory, the "
      "CUDA\n"
      "context. vramlab predict models/mixed-tasks.json simulates a recorded model with such tasks.",
      TablePredictor::kSamplesToCalibrate);
  if (!assumed.empty()) output.line("Assumed: {}.", fmt::join(assumed, ", "));
}

Json basis_json(const TaskEstimateResult& result, const std::vector<std::string>& assumed) {
  Json json = {{"images", result.images}, {"assumed", assumed}};
  for (const auto& [task, one] : result.calibration) {
    const bool enough = calibrates(one);
    json["calibration"][task] = {{"samples", one.samples},
                                 {"factor", enough ? Json(one.factor) : Json()},
                                 {"table_error", one.table_error},
                                 {"error", enough ? Json(one.error) : Json()}};
  }
  return json;
}

int estimate_epochs(const Arguments& arguments, Output& output) {
  const TaskEstimate tasks = read_task_estimate(arguments);
  const TaskEstimateResult result = estimate_tasks(tasks);
  std::vector<std::string> assumed = assumed_images(tasks, result);
  if (arguments["tasks"].defaulted()) assumed.push_back("shares " + text_of(arguments, "tasks"));
  if (!arguments.contains("batch")) assumed.push_back(fmt::format("batch {}", tasks.batch));
  output.line("A batch of {} average samples needs {}, one of the largest samples {}, by {}.\n", tasks.batch,
              megabytes(result.per_batch_mb), megabytes(result.peak_mb), basis(result));
  Table table{{left(""), "value"}};
  table.add_row({"batches of all epochs", fmt::format("{}", result.batches)});
  table.add_row({"average batch", megabytes(result.per_batch_mb)});
  table.add_row({"batch of the largest samples", megabytes(result.peak_mb)});
  for (const auto& [task, samples] : result.safe_batch) {
    table.add_row({fmt::format("largest batch of {} alone (of 1 to 256)", task), fmt::format("{}", samples)});
  }
  output.table(table);
  show_basis(result, assumed, output);
  Json json = {{"per_batch_mb", result.per_batch_mb},
               {"estimated_peak_memory_mb", result.peak_mb},
               {"batches", result.batches}};
  for (const auto& [task, samples] : result.safe_batch) json["safe_batch"][task] = samples;
  json.update(basis_json(result, assumed));
  output.json(json);
  return kDone;
}

int find_safe_batch(const Arguments& arguments, Output& output) {
  const std::string task = text_of(arguments, "safe-batch");
  TaskEstimate tasks = read_task_estimate(arguments);
  if (!tasks.budget) throw InputError("--safe-batch", "needs --budget, what a batch may take. Write 12GiB.");
  require_table_task(task, "--safe-batch");
  tasks.tasks = {{task, 1}};
  const TaskEstimateResult result = estimate_tasks(tasks);
  const std::int64_t samples = result.safe_batch.at(task);
  const std::string budget = format_bytes(*tasks.budget);
  if (samples == 0) {
    output.line("Not one sample of {} fits within {}, by {}.\n", task, budget, basis(result));
  } else {
    output.line("A batch of up to {} sample{} of {} fits within {}, by {}{}.\n", samples,
                samples == 1 ? "" : "s", task, budget, basis(result),
                samples == kMostSafeBatch ? "; no more than 256 were looked for" : "");
  }
  Table table{{"batch", "memory", left("")}};
  for (const std::int64_t batch : {samples, samples + 1}) {
    if (batch < 1 || batch > kMostSafeBatch) continue;
    tasks.batch = batch;
    table.add_row({fmt::format("{}", batch), megabytes(estimate_tasks(tasks).per_batch_mb),
                   batch == samples ? "fits" : "does not fit"});
  }
  output.table(table);
  const std::vector<std::string> assumed = assumed_images(tasks, result);
  show_basis(result, assumed, output);
  Json json = {{"task", task}, {"safe_batch", samples}, {"at_bound", samples == kMostSafeBatch}};
  json.update(basis_json(result, assumed));
  output.json(json);
  return kDone;
}

int run_estimate(const Arguments& arguments, Output& output) {
  const bool job = arguments.contains("type");
  const bool epochs = arguments.contains("samples");
  const bool safe = !text_of(arguments, "safe-batch").empty();
  const bool config = !text_of(arguments, "config").empty();
  if (job + epochs + safe + config != 1) {
    throw InputError(
        "",
        "give one of --config (a network by its config.json), --type (a job), --samples (epochs of "
        "mixed tasks) and --safe-batch (one task).");
  }
  if (config) return estimate_config(arguments, output);
  require_no_config_options(arguments);
  for (const char* option : {"images", "calibration"}) {
    if (job && !text_of(arguments, option).empty()) {
      throw InputError(std::string{"--"} + option, "goes with --samples or --safe-batch.");
    }
  }
  if (!job && arguments.contains("faithful")) throw InputError("--faithful", "goes with --type.");
  if (job) return estimate_one_job(arguments, output);
  return epochs ? estimate_epochs(arguments, output) : find_safe_batch(arguments, output);
}

}  // namespace

Verb estimate_verb() {
  return {.name = "estimate",
          .summary = "memory of a network by its config.json, or by published tables of a job or of epochs",
          .example =
              "vramlab estimate --config docs/examples/decoder.config.json --batch 6 --seq 768 --gpu l4-24gb",
          .add_options = add_estimate_options,
          .run = run_estimate};
}

}  // namespace vramlab
