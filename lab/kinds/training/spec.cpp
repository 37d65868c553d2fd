#include "lab/kinds/training/spec.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "lab/kinds/training/auto_batch.hpp"
#include "lab/kinds/training/fault_fields.hpp"
#include "lab/kinds/training/spec_fields.hpp"
#include "lab/metric.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// Turns a document whose fields passed their checks into a scenario.
class TrainingReader {
 public:
  explicit TrainingReader(const ScenarioDocument& document)
      : document_(document), json_(document.json), file_(document.file), problems_(file_) {}

  TrainingScenario read() {
    read_base(document_, scenario_, problems_);
    scenario_.objective = objective_from(json_.value("objective", std::string{"lq-then-batch"}));
    if (json_.contains("target")) read_target(json_["target"]);
    take_cards();
    guarded("/workload", [&] { read_workload(json_["workload"]); });
    if (json_.contains("faults")) {
      scenario_.setup.faults = read_faults(json_["faults"], scenario_.seed, problems_);
    }
    read_policies(json_["policies"]);
    if (json_.contains("expect")) read_expectations(json_["expect"]);
    problems_.throw_if_any();
    if (json_["workload"].value("batch_size", Json()) == kAutoBatchSize) {
      guarded("/workload/batch_size", [&] { find_batch_size(scenario_, json_["workload"], problems_); });
      problems_.throw_if_any();
    }
    return std::move(scenario_);
  }

 private:
  void problem(const std::string& pointer, const std::string& what) { problems_.add(pointer, what); }

  template <class Work>
  void guarded(const std::string& pointer, const Work& work) {
    problems_.guarded(pointer, work);
  }

  static Objective objective_from(const std::string& name) {
    if (name == objective_name(Objective::pixels_per_s)) return Objective::pixels_per_s;
    if (name == objective_name(Objective::samples_per_s)) return Objective::samples_per_s;
    return Objective::lq_then_batch;
  }

  void read_target(const Json& target) {
    scenario_.target.usage = target.value("usage", scenario_.target.usage);
    scenario_.target.margin = target.value("margin", scenario_.target.margin);
    if (scenario_.target.usage + scenario_.target.margin > 1) {
      problem("/target", "usage plus margin is above 1: the band would end beyond the card.");
    }
  }

  void take_cards() {
    ScenarioCards cards = read_cards(json_, file_, problems_);
    TrainingSetup& setup = scenario_.setup;
    scenario_.gpu = std::move(cards.gpu);
    setup.process = cards.cards.front();
    setup.more_cards.assign(cards.cards.begin() + 1, cards.cards.end());
    setup.others = std::move(cards.others);
  }

  void read_workload(const Json& workload) {
    TrainingSetup& setup = scenario_.setup;
    scenario_.model = read_workload_model(workload, file_);
    setup.model = scenario_.model.get();
    if (setup.model->cards() > 1 && setup.model->cards() != setup.more_cards.size() + 1) {
      problem("/workload/layers", "are spread over " + std::to_string(setup.model->cards()) +
                                      " cards; there are " + std::to_string(setup.more_cards.size() + 1) +
                                      ".");
    }
    setup.iterations = workload["iterations"].get<std::int64_t>();
    setup.bounds = scenario_.model->parameters();
    if (workload.contains("bounds")) {
      read_bounds(workload["bounds"], "/workload/bounds", setup.bounds, problems_);
    }
    setup.start = read_point(start_values(workload), setup.bounds, "/workload/start", nullptr, problems_);
    if (!workload.contains("phases")) return;
    const Json& phases = workload["phases"];
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const std::string pointer = "/workload/phases/" + std::to_string(i);
      const Json set = phases[i].value("set", Json::object());
      setup.phases.push_back({phases[i]["name"].get<std::string>(), phases[i]["every"].get<std::int64_t>(),
                              read_point(set, setup.bounds, pointer + "/set", &setup.start, problems_)});
    }
  }

  // A batch that is yet to be found stands at its smallest value.
  Json start_values(const Json& workload) {
    Json start = workload["start"];
    if (!workload.contains("batch_size")) return start;
    if (start.contains("batch")) {
      problem("/workload/batch_size", "the batch is given twice, here and in \"start\".");
    }
    const auto index = parameter_index(scenario_.setup.bounds, "batch", "/workload/batch_size", problems_);
    if (!index) return start;
    const Json& size = workload["batch_size"];
    start["batch"] = size.is_string() ? Json(scenario_.setup.bounds.parameters[*index].low) : size;
    return start;
  }

  void read_policies(const Json& policies) {
    if (policies.empty()) problem("/policies", "the list is empty; name at least one policy.");
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const std::size_t before = scenario_.policies.size();
      const std::string pointer = "/policies/" + std::to_string(i);
      guarded(pointer, [&] { read_policy(policies[i], pointer); });
      all_policies_read_ = all_policies_read_ && scenario_.policies.size() == before + 1;
    }
  }

  void read_policy(const Json& json, const std::string& pointer) {
    PolicyEntry entry;
    entry.choice.use = json["use"].get<std::string>();
    entry.choice.profile = json.value("profile", std::string{});
    entry.choice.where = pointer;
    if (json.value("cards", std::string{}) == "sum") entry.cards = CardsRule::sum;
    const TunerEntry& tuner = find_tuner(entry.choice.use, pointer + "/use", scenario_.known->tuners);
    const TunerProfile* profile = find_profile(tuner, entry.choice.profile, pointer + "/profile");
    entry.label = json.value("label", profile != nullptr ? tuner.name + " " + profile->name : tuner.name);
    const std::string fault = label_fault(entry.label, labels_);
    if (!fault.empty()) problem(pointer, fault);
    static const std::set<std::string> kOwnKeys{"use", "profile", "label", "options_file", "cards"};
    OptionMap given;
    if (json.contains("options_file"))
      given = read_options_file(json["options_file"], pointer + "/options_file");
    entry.choice.options =
        with_goal(tuner, overlay(given, policy_options(json, kOwnKeys, pointer, problems_)));
    // Bad options are reported here, with the file's other problems, and not when the run begins.
    if (scenario_.model) make_tuner(entry.choice, scenario_.setup.bounds, scenario_.known->tuners);
    scenario_.policies.push_back(std::move(entry));
  }

  OptionMap read_options_file(const Json& name, const std::string& pointer) {
    const auto path = find_data_file(name.get<std::string>(), file_);
    if (!path)
      throw InputError(
          pointer, "there is no file " + name.dump() + " beside the scenario, here or in the data folder.");
    return load_dual_optimizer_yaml(path->string());
  }

  // A scenario's target and objective hold for every policy that has them and was not told otherwise.
  OptionMap with_goal(const TunerEntry& tuner, const OptionMap& given) const {
    OptionMap target;
    const bool has_target = json_.contains("target") && given.find("preset") == nullptr;
    for (const OptionDescription& option : tuner.options) {
      if (option.key == "objective")
        target.set(option.key, objective_name(scenario_.objective), "/objective");
      if (!has_target) continue;
      if (option.key == "target_vram_usage") target.set(option.key, scenario_.target.usage, "/target/usage");
      if (option.key == "safety_margin") target.set(option.key, scenario_.target.margin, "/target/margin");
    }
    return overlay(target, given);
  }

  void read_expectations(const Json& expectations) {
    for (std::size_t i = 0; i < expectations.size(); ++i) {
      read_expectation(expectations[i], "/expect/" + std::to_string(i));
    }
  }

  void read_expectation(const Json& json, const std::string& pointer) {
    Expectation expectation;
    expectation.policy = json["policy"].get<std::string>();
    const std::vector<std::string> labels(labels_.begin(), labels_.end());
    // Else the label may be that of a policy with another fault.
    if (all_policies_read_) require_expected_labels(json, "policy", pointer, labels, problems_);
    if (!read_subject(json, pointer, expectation)) return;
    read_expected_bounds(json, pointer, expectation, problems_);
    scenario_.expectations.push_back(std::move(expectation));
  }

  bool read_subject(const Json& json, const std::string& pointer, Expectation& expectation) {
    using Subject = Expectation::Subject;
    const int given = int{json.contains("metric")} + int{json.contains("final")} +
                      int{json.contains("adjustment")} + int{json.contains("oom")};
    if (given != 1) {
      problem(pointer,
              "give one of \"metric\", \"final\" (a parameter), \"adjustment\" and \"oom\" (a number).");
      return false;
    }
    if (json.contains("parameter") && !json.contains("adjustment")) {
      problem(pointer + "/parameter", "goes with \"adjustment\", which is not given.");
    }
    if (json.contains("metric")) {
      expectation.name = json["metric"].get<std::string>();
      const auto names = training_metric_names();
      if (std::find(names.begin(), names.end(), expectation.name) == names.end()) {
        problem(pointer + "/metric",
                "\"" + expectation.name + "\" is no metric." + suggest_name(expectation.name, names));
      }
      return true;
    }
    const char* key = json.contains("final") ? "final" : "parameter";
    if (json.contains(key)) {
      expectation.name = json[key].get<std::string>();
      if (scenario_.model)
        parameter_index(scenario_.setup.bounds, expectation.name, pointer + "/" + key, problems_);
    }
    expectation.subject = json.contains("final")        ? Subject::final_value
                          : json.contains("adjustment") ? Subject::adjustment
                                                        : Subject::oom;
    expectation.number = json.value("adjustment", json.value("oom", std::int64_t{1}));
    return true;
  }

  const ScenarioDocument& document_;
  const Json& json_;
  fs::path file_;
  TrainingScenario scenario_;
  std::set<std::string> labels_{"oracle"};  // the oracle's is taken from the start
  bool all_policies_read_ = true;
  FileProblems problems_;
};

}  // namespace

TrainingScenario read_training(const ScenarioDocument& document) {
  require_fields(document, scenario_fields());
  return TrainingReader{document}.read();
}

std::string objective_name(Objective objective) {
  switch (objective) {
    case Objective::pixels_per_s:
      return "pixels_per_s";
    case Objective::samples_per_s:
      return "samples_per_s";
    case Objective::lq_then_batch:
      break;
  }
  return "lq-then-batch";
}

}  // namespace vramlab
