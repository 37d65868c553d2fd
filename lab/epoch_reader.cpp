#include <algorithm>
#include <utility>

#include "lab/data_files.hpp"
#include "lab/epoch_data.hpp"
#include "lab/epoch_scenario.hpp"
#include "lab/model_file.hpp"
#include "lab/policy_list.hpp"
#include "lab/scenario_parts.hpp"
#include "lab/scenario_plugins.hpp"
#include "lab/workload_parts.hpp"
#include "models/recorded_batches.hpp"
#include "models/sample_sizes.hpp"
#include "policies/composer_registry.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// Turns a document whose fields passed their checks into a scenario.
class EpochReader {
 public:
  EpochReader(const Json& json, const fs::path& file) : json_(json), file_(file), problems_(file) {}

  EpochScenario read(std::shared_ptr<const PolicySet> known) {
    scenario_.file = file_.string();
    scenario_.known = with_scenario_plugins(json_, file_, std::move(known), problems_);
    scenario_.name = json_["name"].get<std::string>();
    scenario_.description = json_.value("description", std::string{});
    scenario_.seed = json_.value("seed", std::uint64_t{1});
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

  const Json& json_;
  const fs::path& file_;
  EpochScenario scenario_;
  std::vector<TaskSort> tasks_;
  std::int64_t tokens_per_image_ = 0;
  FileProblems problems_;
};

}  // namespace

EpochScenario parse_epoch_scenario(const std::string& text, const fs::path& file,
                                   std::shared_ptr<const PolicySet> known) {
  const Json json = parse_json(text, file.string());
  std::vector<Problem> problems;
  check_fields(json, epoch_fields(), /*open=*/false, "", problems);
  for (Problem& problem : problems) problem.where = file.string() + ": " + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
  return EpochReader{json, file}.read(std::move(known));
}

}  // namespace vramlab
