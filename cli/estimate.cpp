// vramlab estimate: the two published table estimates, and what they leave out.
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/model/table_estimate.hpp"

namespace vramlab {
namespace {

void add_estimate_options(Options& options) {
  add_output_options(options);
  options.add_options()
      // clang-format off
      ("type", po::value<std::string>(), "a job by its type: transformer, cnn, rnn")
      ("size", po::value<std::string>()->default_value("medium"), "with --type: small, medium, large, xlarge")
      ("seq", po::value<std::int64_t>()->default_value(512), "with --type transformer: sequence length")
      ("training", "with --type: training and not inference")
      ("samples", po::value<std::int64_t>(), "an epoch of mixed tasks: number of samples")
      ("tasks", po::value<std::string>()->default_value("T1=0.4,T2=0.3,T3=0.3"), "with --samples: shares of the tasks")
      ("epochs", po::value<std::int64_t>()->default_value(1), "with --samples: epochs")
      ("budget", po::value<std::string>(), "with --samples: memory to have; adds the largest batch of each task")
      ("inference", "with --samples: forward pass only")
      ("batch", po::value<std::int64_t>(), "batch size; default 8 with --type, 16 with --samples");
  // clang-format on
}

std::string megabytes(double mb) { return fmt::format("{:.1f} MB", mb); }

int estimate_one_job(const Arguments& arguments, Output& output) {
  JobEstimate job;
  job.type = text_of(arguments, "type");
  job.size = text_of(arguments, "size");
  job.sequence = arguments["seq"].as<std::int64_t>();
  if (arguments.contains("batch")) job.batch = arguments["batch"].as<std::int64_t>();
  job.training = arguments.contains("training");
  const JobEstimateSteps result = estimate_job(job);
  output.line("A {} {} needs {} for {} at batch {}, by the table.\n", job.size, job.type,
              megabytes(result.required_mb), job.training ? "training" : "inference", job.batch);
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
  output.json(
      {{"base_mb", result.base_mb}, {"batch_mb", result.batch_mb}, {"required_mb", result.required_mb}});
  return kDone;
}

std::map<std::string, double> read_shares(const std::string& text) {
  std::map<std::string, double> shares;
  std::istringstream entries{text + ','};
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    double share = 0;
    const char* last = entry.data() + entry.size();
    const auto [rest, error] =
        std::from_chars(entry.data() + std::min(equals + 1, entry.size()), last, share);
    if (error != std::errc{} || rest != last || equals == 0) {
      throw InputError("--tasks", '"' + entry + "\" is not a share. Write T1=0.4,T2=0.3,T3=0.3.");
    }
    shares[entry.substr(0, equals)] = share;
  }
  return shares;
}

int estimate_epochs(const Arguments& arguments, Output& output) {
  TaskEstimate tasks;
  tasks.samples = arguments["samples"].as<std::int64_t>();
  tasks.tasks = read_shares(text_of(arguments, "tasks"));
  tasks.epochs = arguments["epochs"].as<std::int64_t>();
  if (arguments.contains("batch")) tasks.batch = arguments["batch"].as<std::int64_t>();
  tasks.training = !arguments.contains("inference");
  if (arguments.contains("budget")) {
    const auto text = text_of(arguments, "budget");
    tasks.budget = parse_bytes(text);
    if (!tasks.budget) throw InputError("--budget", '"' + text + "\" is not a size. Write 12GiB or 512MiB.");
  }
  const TaskEstimateResult result = estimate_tasks(tasks);
  output.line("A batch of {} average samples needs {}, one of the largest samples {}, by the table.\n",
              tasks.batch, megabytes(result.per_batch_mb), megabytes(result.peak_mb));
  Table table{{left(""), "value"}};
  table.add_row({"batches of all epochs", fmt::format("{}", result.batches)});
  table.add_row({"average batch", megabytes(result.per_batch_mb)});
  table.add_row({"batch of the largest samples", megabytes(result.peak_mb)});
  for (const auto& [task, samples] : result.safe_batch) {
    table.add_row({fmt::format("largest batch of {} alone (of 1 to 256)", task), fmt::format("{}", samples)});
  }
  output.table(table);
  output.line(
      "\nIn: 0.15 GB, 0.12 GB a batch, 0.28 GB forward and 0.35 GB backward an image, times the task's "
      "factor.\n"
      "Assumed: 1, 3 and 4 images for T1, T2 and T3. Not in: padding, the allocator's idle memory, the CUDA\n"
      "context. vramlab predict models/mixed-tasks.json simulates a recorded model with such tasks.");
  Json json = {{"per_batch_mb", result.per_batch_mb},
               {"estimated_peak_memory_mb", result.peak_mb},
               {"batches", result.batches}};
  for (const auto& [task, samples] : result.safe_batch) json["safe_batch"][task] = samples;
  output.json(json);
  return kDone;
}

int run_estimate(const Arguments& arguments, Output& output) {
  if (arguments.contains("type") == arguments.contains("samples")) {
    throw InputError("", "give either --type (a job) or --samples (epochs of mixed tasks).");
  }
  return arguments.contains("type") ? estimate_one_job(arguments, output)
                                    : estimate_epochs(arguments, output);
}

}  // namespace

Verb estimate_verb() {
  return {.name = "estimate",
          .summary = "memory by published tables: a job by its type, or epochs of mixed tasks",
          .example = "vramlab estimate --type transformer --size medium --batch 32 --training",
          .add_options = add_estimate_options,
          .run = run_estimate};
}

}  // namespace vramlab
