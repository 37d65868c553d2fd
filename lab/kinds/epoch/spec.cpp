#include "lab/kinds/epoch/spec.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "lab/kinds/epoch/data.hpp"
#include "lab/kinds/training/spec_fields.hpp"
#include "lab/model/file.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "models/linear.hpp"
#include "models/recorded_model.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kMostTokens = 1e7;
constexpr double kMostSamples = 1e7;
constexpr double kLargest = 1099511627776.0;  // 1 TiB, above any card there is

Field integer_field(std::string key, std::string help, double low, double high, bool required = false) {
  return {.key = std::move(key),
          .kind = Kind::integer,
          .help = std::move(help),
          .required = required,
          .low = low,
          .high = high};
}

std::vector<Field> task_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what the model calls it", .required = true},
      integer_field("share", "how often, compared with the others (default 1)", 1, 1e6),
      integer_field("images", "of each sample (default 0)", 0, 1000),
      integer_field("shortest", "tokens of text, at least", 1, kMostTokens, true),
      integer_field("longest", "tokens of text, at most; drawn evenly", 1, kMostTokens, true),
      {.key = "weight", .kind = Kind::number, .help = "of its loss (default 1)", .low = 0.001, .high = 1000},
  };
}

std::vector<Field> data_fields() {
  return {
      {.key = "tasks", .kind = Kind::list, .help = "tasks to draw samples of", .fields = task_fields()},
      integer_field("samples", "how many; with `lengths` at most so many of its lines", 1, kMostSamples),
      integer_field("outliers_every", "one sample in so many is far longer (default: none)", 1, kMostSamples),
      integer_field("outliers_times", "its text has so many times the tokens (default 100)", 1, 10000),
      {.key = "lengths",
       .kind = Kind::text,
       .help = "instead of tasks: a CSV file of lengths, looked up as models are"},
      {.key = "column", .kind = Kind::text, .help = "of that file (default tokens)"},
      integer_field("most", "longer ones are cut to so many tokens (default: no limit)", 1, kMostTokens),
  };
}

std::vector<Field> sizes_fields() {
  return {
      {.key = "resident", .kind = Kind::size, .help = "weights", .low = 0, .high = kLargest},
      {.key = "samples",
       .kind = Kind::list,
       .help = "what a sample takes, by its images",
       .fields = {integer_field("images", "so many", 0, 64, true),
                  {.key = "bytes",
                   .kind = Kind::size,
                   .help = "and this much; more images than listed count as the last",
                   .required = true,
                   .low = 0,
                   .high = kLargest}}},
      {.key = "per_token",
       .kind = Kind::size,
       .help = "of a padded row, for each position (default 0)",
       .low = 0,
       .high = 1073741824.0},
      {.key = "floor_ms",
       .kind = Kind::number,
       .help = "a step takes at least (default 50)",
       .low = 0,
       .high = 1e6},
      {.key = "ms_per_sample",
       .kind = Kind::number,
       .help = "and so long for each sample (default 0)",
       .low = 0,
       .high = 1e6},
  };
}

std::vector<Field> series_fields() {
  return {
      {.key = "file",
       .kind = Kind::text,
       .help = "CSV with the columns task, loss, gradient_norm",
       .required = true},
      {.key = "origin",
       .kind = Kind::choice,
       .help = "where its figures come from",
       .required = true,
       .choices = {"synthetic", "measured"}},
  };
}

std::vector<Field> workload_fields() {
  return {
      {.key = "model", .kind = Kind::text, .help = "a recorded model's file (or give `sizes`)"},
      {.key = "checkpointed",
       .kind = Kind::text,
       .help = "the same workload recorded with activation checkpointing"},
      {.key = "sizes",
       .kind = Kind::object,
       .help = "instead of a model: a table of what samples take",
       .fields = sizes_fields()},
      {.key = "data",
       .kind = Kind::object,
       .help = "the data set",
       .required = true,
       .fields = data_fields()},
      integer_field("target_batch", "samples of an effective batch (default 32)", 1, 1e6),
      integer_field("epochs", "times through the data (default 1)", 1, 1e4),
      integer_field(
          "restart_every",
          "batches after which the process ends and a new one goes on from the saved state (default: "
          "never)",
          1, 1e9),
      {.key = "shuffle", .kind = Kind::boolean, .help = "each epoch in a new order (default true)"},
      {.key = "collator",
       .kind = Kind::choice,
       .help = "rows are padded to the longest, or hold several samples (default pad)",
       .choices = {"pad", "pack"}},
      {.key = "series",
       .kind = Kind::object,
       .help = "losses and gradient norms, which no simulation knows",
       .fields = series_fields()},
      {.key = "balance_losses",
       .kind = Kind::boolean,
       .help = "weigh tasks by their gradient norms (default false)"},
      {.key = "balance_alpha",
       .kind = Kind::number,
       .help = "its exponent (default 1.5)",
       .low = 0,
       .high = 10},
      {.key = "scale_gradient",
       .kind = Kind::boolean,
       .help = "the original's gradient times target over effective batch (default false)"},
      {.key = "scale_learning_rate",
       .kind = Kind::boolean,
       .help = "the original's learning rate times sqrt(effective batch over target) (default false)"},
  };
}

}  // namespace

std::vector<Field> epoch_fields() {
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("epoch"),
      shared_field("name"),
      shared_field("description"),
      shared_field("seed"),
      shared_field("device"),
      shared_field("allocator"),
      {.key = "workload",
       .kind = Kind::object,
       .help = "what is trained on what",
       .required = true,
       .fields = workload_fields()},
      shared_field("plugins"),
      policies_field(),
      metric_expectations_field(),
      shared_field("sweep"),
  };
}

Json epoch_schema(const PolicySet& known) {
  Json schema = fields_schema(epoch_fields(), /*open=*/false);
  Json& entry = schema["properties"]["policies"]["items"];
  entry = composer_schemas(Json(entry), known);
  return schema;
}

namespace {

namespace fs = std::filesystem;

/// Turns a document whose fields passed their checks into a scenario.
class EpochReader {
 public:
  explicit EpochReader(const ScenarioDocument& document)
      : document_(document), json_(document.json), file_(document.file), problems_(file_) {}

  EpochScenario read() {
    read_base(document_, scenario_, problems_);
    scenario_.setup.seed = scenario_.seed;
    ScenarioCards cards = read_cards(json_, file_, problems_);
    scenario_.gpu = std::move(cards.gpu);
    scenario_.setup.process = std::move(cards.cards.front());
    scenario_.setup.others = std::move(cards.others);
    problems_.guarded("/workload", [&] { read_workload(json_["workload"]); });
    PolicyList list = read_policy_list(json_["policies"], family(), problems_);
    scenario_.policies = std::move(list.entries);
    scenario_.expectations =
        read_metric_expectations(json_, list.labels, list.complete, epoch_metric_names(), problems_);
    problems_.throw_if_any();
    return std::move(scenario_);
  }

 private:
  void read_workload(const Json& workload) {
    EpochSetup& setup = scenario_.setup;
    setup.target_batch = workload.value("target_batch", setup.target_batch);
    setup.epochs = workload.value("epochs", setup.epochs);
    scenario_.restart_every = workload.value("restart_every", std::int64_t{0});
    setup.shuffle = workload.value("shuffle", true);
    setup.packs = workload.value("collator", std::string{"pad"}) == "pack";
    read_tasks(workload["data"]);
    read_models(workload);
    read_samples(workload["data"]);
    setup.loss.balance = workload.value("balance_losses", false);
    setup.loss.alpha = workload.value("balance_alpha", setup.loss.alpha);
    setup.loss.scale_gradient = workload.value("scale_gradient", false);
    setup.loss.scale_learning_rate = workload.value("scale_learning_rate", false);
    if (workload.contains("series")) read_declared(workload["series"]);
    if (setup.loss.balance && setup.gradient_norms.by_task.empty()) {
      problems_.add("/workload/balance_losses", "needs gradient norms: declare them with \"series\".");
    }
  }

  void read_tasks(const Json& data) {
    if (data.contains("tasks") == data.contains("lengths")) {
      throw InputError("/workload/data", "give either \"tasks\" or \"lengths\".");
    }
    const Json tasks = data.value("tasks", Json::array());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::string pointer = "/workload/data/tasks/" + std::to_string(i);
      TaskSort task{.name = tasks[i]["name"].get<std::string>(),
                    .share = tasks[i].value("share", std::int64_t{1}),
                    .images = tasks[i].value("images", 0),
                    .shortest = tasks[i]["shortest"].get<std::int64_t>(),
                    .longest = tasks[i]["longest"].get<std::int64_t>()};
      if (task.shortest > task.longest) problems_.add(pointer, "\"shortest\" is above \"longest\".");
      scenario_.setup.tasks.push_back(task.name);
      scenario_.setup.loss.weights.push_back(tasks[i].value("weight", 1.0));
      tasks_.push_back(std::move(task));
    }
    if (tasks_.size() > kMostTasks) {
      throw InputError("/workload/data/tasks", std::to_string(kMostTasks) + " tasks are the most.");
    }
    if (data.contains("tasks") && tasks_.empty()) {
      throw InputError("/workload/data/tasks", "the list is empty.");
    }
    if (data.contains("lengths")) {
      scenario_.setup.tasks = {"text"};
      scenario_.setup.loss.weights = {1};
    }
  }

  [[nodiscard]] fs::path data_file(const Json& name, const std::string& pointer) const {
    const auto path = find_data_file(name.get<std::string>(), file_);
    if (path) return *path;
    throw InputError(pointer,
                     "there is no file " + name.dump() + " beside the scenario, here or in the data folder.");
  }

  void read_models(const Json& workload) {
    if (workload.contains("model") == workload.contains("sizes")) {
      throw InputError("/workload", "give either \"model\" or \"sizes\".");
    }
    if (workload.contains("sizes")) {
      scenario_.model = read_sizes(workload["sizes"]);
    } else {
      const auto recorded = recorded_model(workload["model"], "/workload/model");
      tokens_per_image_ = recorded->tokens_per_image();
      scenario_.model = recorded;
    }
    if (workload.contains("checkpointed")) {
      scenario_.checkpointed = recorded_model(workload["checkpointed"], "/workload/checkpointed");
    }
    scenario_.setup.model = scenario_.model.get();
    scenario_.setup.checkpointed = scenario_.checkpointed.get();
  }

  [[nodiscard]] std::shared_ptr<const RecordedBatches> recorded_model(const Json& name,
                                                                      const std::string& pointer) const {
    std::shared_ptr<const WorkloadModel> model = load_model_file(data_file(name, pointer));
    auto recorded = std::dynamic_pointer_cast<const RecordedModel>(model);
    if (recorded == nullptr) {
      throw InputError(pointer,
                       name.dump() + " is not a recorded model; only these know batches of samples.");
    }
    try {
      return std::make_shared<const RecordedBatches>(recorded, scenario_.setup.tasks, scenario_.setup.packs);
    } catch (const InputError& error) {
      throw InputError(pointer, error.problems().front().what);
    }
  }

  [[nodiscard]] static std::shared_ptr<const BatchModel> read_sizes(const Json& json) {
    SampleSizes sizes;
    if (json.contains("resident")) sizes.resident = size_value(json["resident"]);
    for (const Json& sample : json.value("samples", Json::array())) {
      const auto images = sample["images"].get<std::size_t>();
      if (sizes.by_images.size() <= images) sizes.by_images.resize(images + 1);
      sizes.by_images[images] = size_value(sample["bytes"]);
    }
    if (json.contains("per_token")) sizes.per_token = size_value(json["per_token"]);
    sizes.floor_seconds = json.value("floor_ms", 50.0) / 1000;
    sizes.seconds_per_sample = json.value("ms_per_sample", 0.0) / 1000;
    return std::make_shared<const SampleSizeModel>(std::move(sizes));
  }

  void read_samples(const Json& data) {
    const auto count = data.value("samples", std::int64_t{0});
    if (data.contains("lengths")) {
      const auto most = data.value("most", std::int64_t{10'000'000});
      scenario_.setup.samples = read_lengths(data_file(data["lengths"], "/workload/data/lengths"),
                                             data.value("column", std::string{"tokens"}), most, count);
      return;
    }
    if (count == 0) throw InputError("/workload/data", "say how many \"samples\".");
    const Outliers outliers{data.value("outliers_every", std::int64_t{0}),
                            data.value("outliers_times", std::int64_t{100})};
    problems_.throw_if_any();  // nothing can be drawn from a task whose range is empty
    scenario_.setup.samples = draw_samples(tasks_, count, outliers, tokens_per_image_, scenario_.seed);
  }

  void read_declared(const Json& json) {
    SeriesFile series = read_series(data_file(json["file"], "/workload/series/file"), scenario_.setup.tasks);
    scenario_.setup.losses = std::move(series.losses);
    scenario_.setup.gradient_norms = std::move(series.gradient_norms);
    scenario_.series_origin = json["origin"].get<std::string>();
  }

  PolicyFamily family() {
    return {.find =
                [this](TunerChoice& choice) {
                  const ComposerEntry& composer =
                      find_composer(choice.use, choice.where + "/use", scenario_.known->composers);
                  choice.profile = full_profile_name(composer, choice);
                  return choice.profile.empty() ? composer.name : choice.profile;
                },
            .try_out =
                [this](const TunerChoice& choice) {
                  make_composer(choice, scenario_.setup.tasks, scenario_.known->composers);
                }};
  }

  const ScenarioDocument& document_;
  const Json& json_;
  fs::path file_;
  EpochScenario scenario_;
  std::vector<TaskSort> tasks_;
  std::int64_t tokens_per_image_ = 0;
  FileProblems problems_;
};

}  // namespace

EpochScenario read_epoch(const ScenarioDocument& document) {
  require_fields(document, epoch_fields());
  return EpochReader{document}.read();
}

}  // namespace vramlab
