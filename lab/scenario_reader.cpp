#include <algorithm>
#include <set>
#include <utility>

#include "lab/data_files.hpp"
#include "lab/field_table.hpp"
#include "lab/metrics.hpp"
#include "lab/model_file.hpp"
#include "lab/scenario.hpp"
#include "lab/scenario_fields.hpp"
#include "lab/scenario_parts.hpp"
#include "models/gpu_catalogue.hpp"
#include "policies/dual_optimizer_yaml.hpp"
#include "sim/memory/allocator_settings.hpp"
#include "trace/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kAssumedContext =
    527_MiB;  // where a card is given by size alone; the H100's is 526.8 MiB (R10.4)

/// Turns a document whose fields passed their checks into a scenario.
class ScenarioReader {
 public:
  ScenarioReader(const Json& json, const fs::path& file) : json_(json), file_(file), problems_(file) {}

  Scenario read() {
    scenario_.file = file_.string();
    scenario_.name = json_["name"].get<std::string>();
    scenario_.description = json_.value("description", std::string{});
    scenario_.seed = json_.value("seed", std::uint64_t{1});
    scenario_.objective = objective_from(json_.value("objective", std::string{"lq-then-batch"}));
    if (json_.contains("target")) read_target(json_["target"]);
    read_device(json_["device"]);
    guarded("/allocator", [&] { read_allocator(); });
    guarded("/workload", [&] { read_workload(json_["workload"]); });
    read_policies(json_["policies"]);
    if (json_.contains("expect")) read_expectations(json_["expect"]);
    problems_.throw_if_any();
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

  void read_device(const Json& device) {
    ProcessSetup& process = scenario_.setup.process;
    if (device.contains("gpu") == device.contains("total")) {
      problem("/device", "give either \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory).");
      return;
    }
    if (device.contains("gpu")) {
      guarded("/device/gpu", [&] {
        const Gpu& gpu = find_gpu(device["gpu"].get<std::string>(), "/device/gpu");
        scenario_.gpu = gpu.name;
        process.card_total = gpu.total;
        process.context_bytes = gpu.context;
      });
    } else {
      process.card_total = size_value(device["total"]);
      process.context_bytes = std::min(kAssumedContext, process.card_total);
      scenario_.gpu = format_bytes(process.card_total) + " card";
    }
    if (device.contains("context")) process.context_bytes = size_value(device["context"]);
    if (process.context_bytes > process.card_total) {
      problem("/device/context", "the context is larger than the card.");
    }
    if (device.contains("limit")) process.allocator.limit = size_value(device["limit"]);
    if (device.contains("others")) read_others(device["others"]);
  }

  void read_others(const Json& others) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      OtherProcess other{.from = from_seconds(others[i].value("from_s", 0.0)),
                         .to = SimTime::max(),
                         .bytes = size_value(others[i]["bytes"])};
      if (others[i].contains("to_s")) other.to = from_seconds(others[i]["to_s"].get<double>());
      if (other.to <= other.from) {
        problem("/device/others/" + std::to_string(i), "\"to_s\" must be later than \"from_s\".");
      }
      scenario_.setup.others.push_back(other);
    }
  }

  void read_allocator() {
    if (!json_.contains("allocator")) return;
    const Json& allocator = json_["allocator"];
    AllocatorSettings& settings = scenario_.setup.process.allocator.settings;
    const auto read = [&](const char* key, const auto& take) {
      if (!allocator.contains(key)) return;
      try {
        take(allocator[key].get<std::string>());
      } catch (const InputError& error) {
        for (const Problem& one : error.problems()) {
          problem(std::string("/allocator/") + key,
                  one.where.empty() ? one.what : one.where + ": " + one.what);
        }
      }
    };
    read("torch_version", [&](const std::string& text) { settings.torch = parse_torch_version(text); });
    read("conf", [&](const std::string& text) { settings = parse_allocator_settings(text, settings); });
  }

  void read_workload(const Json& workload) {
    TrainingSetup& setup = scenario_.setup;
    scenario_.model = read_model(workload["model"]);
    setup.model = scenario_.model.get();
    setup.iterations = workload["iterations"].get<std::int64_t>();
    setup.bounds = scenario_.model->parameters();
    if (workload.contains("bounds")) read_bounds(workload["bounds"]);
    setup.start = read_point(workload["start"], "/workload/start", nullptr);
    if (!workload.contains("phases")) return;
    const Json& phases = workload["phases"];
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const std::string pointer = "/workload/phases/" + std::to_string(i);
      Point point = setup.start;
      if (phases[i].contains("set")) point = read_point(phases[i]["set"], pointer + "/set", &setup.start);
      setup.phases.push_back(
          {phases[i]["name"].get<std::string>(), phases[i]["every"].get<std::int64_t>(), point});
    }
  }

  std::shared_ptr<const WorkloadModel> read_model(const Json& model) {
    if (model.is_object()) return parse_model(model, file_.string() + ": /workload/model");
    const auto name = model.get<std::string>();
    const auto path = find_data_file(name, file_);
    if (!path) {
      throw InputError("/workload/model", "there is no model file \"" + name +
                                              "\" beside the scenario, in the data folder or here.");
    }
    return load_model_file(*path);
  }

  void read_bounds(const Json& bounds) {
    for (const auto& [key, range] : bounds.items()) {
      const std::string pointer = "/workload/bounds/" + key;
      const auto index = parameter_index(key, pointer);
      if (!index) continue;
      Parameter& parameter = scenario_.setup.bounds.parameters[*index];
      const auto low = range[0].get<std::int64_t>();
      const auto high = range[1].get<std::int64_t>();
      if (low < parameter.low || high > parameter.high) {
        problem(pointer, "[" + std::to_string(low) + ", " + std::to_string(high) +
                             "] goes beyond the model's range, [" + std::to_string(parameter.low) + ", " +
                             std::to_string(parameter.high) + "].");
        continue;
      }
      parameter.low = low;
      parameter.high = high;
    }
  }

  // Missing values come from `base`; without it every parameter must be given.
  Point read_point(const Json& values, const std::string& pointer, const Point* base) {
    const auto& parameters = scenario_.setup.bounds.parameters;
    Point point = base != nullptr ? *base : Point(parameters.size());
    std::vector<bool> given(parameters.size(), base != nullptr);
    for (const auto& [key, value] : values.items()) {
      const auto index = parameter_index(key, pointer + "/" + key);
      if (!index) continue;
      given[*index] = true;
      point[*index] = value.get<std::int64_t>();
      const Parameter& parameter = parameters[*index];
      if (point[*index] < parameter.low || point[*index] > parameter.high) {
        problem(pointer + "/" + key, value.dump() + " is out of bounds; allowed is " +
                                         std::to_string(parameter.low) + " to " +
                                         std::to_string(parameter.high) + ".");
      }
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i]) problem(pointer, "\"" + parameters[i].name + "\" is missing.");
    }
    return point;
  }

  std::optional<std::size_t> parameter_index(const std::string& name, const std::string& pointer) {
    const auto index = scenario_.setup.bounds.find(name);
    if (index) return index;
    std::vector<std::string> known;
    for (const Parameter& parameter : scenario_.setup.bounds.parameters) known.push_back(parameter.name);
    problem(pointer, "the workload has no parameter \"" + name + "\"." + suggest_name(name, known));
    return std::nullopt;
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
    const TunerEntry& tuner = find_tuner(entry.choice.use, pointer + "/use");
    const TunerProfile* profile = find_profile(tuner, entry.choice.profile, pointer + "/profile");
    entry.label = json.value("label", profile != nullptr ? tuner.name + " " + profile->name : tuner.name);
    if (entry.label == "oracle" || !labels_.insert(entry.label).second) {
      problem(pointer,
              "the label \"" + entry.label + "\" is taken. Give this policy a \"label\" of its own.");
    }
    static const std::set<std::string> kOwnKeys{"use", "profile", "label", "options_file"};
    OptionMap given;
    if (json.contains("options_file"))
      given = read_options_file(json["options_file"], pointer + "/options_file");
    entry.choice.options =
        with_target(tuner, overlay(given, policy_options(json, kOwnKeys, pointer, problems_)));
    // Bad options are reported here, with the file's other problems, and not when the run begins.
    if (scenario_.model) make_tuner(entry.choice, scenario_.setup.bounds);
    scenario_.policies.push_back(std::move(entry));
  }

  OptionMap read_options_file(const Json& name, const std::string& pointer) {
    const auto path = find_data_file(name.get<std::string>(), file_);
    if (!path)
      throw InputError(
          pointer, "there is no file " + name.dump() + " beside the scenario, in the data folder or here.");
    return load_dual_optimizer_yaml(path->string());
  }

  // A scenario's target holds for every policy that has one and was not told otherwise.
  OptionMap with_target(const TunerEntry& tuner, const OptionMap& given) const {
    if (!json_.contains("target") || given.find("preset") != nullptr) return given;
    OptionMap target;
    for (const OptionDescription& option : tuner.options) {
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
    std::vector<std::string> labels(labels_.begin(), labels_.end());
    labels.emplace_back("oracle");
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
      if (scenario_.model) parameter_index(expectation.name, pointer + "/" + key);
    }
    expectation.subject = json.contains("final")        ? Subject::final_value
                          : json.contains("adjustment") ? Subject::adjustment
                                                        : Subject::oom;
    expectation.number = json.value("adjustment", json.value("oom", std::int64_t{1}));
    return true;
  }

  const Json& json_;
  const fs::path& file_;
  Scenario scenario_;
  std::set<std::string> labels_;
  bool all_policies_read_ = true;
  FileProblems problems_;
};

}  // namespace

Scenario parse_scenario(const std::string& text, const fs::path& file) {
  const Json json = parse_json(text, file.string());
  std::vector<Problem> problems;
  check_fields(json, scenario_fields(), /*open=*/false, "", problems);
  for (Problem& problem : problems) problem.where = file.string() + ": " + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
  return ScenarioReader{json, file}.read();
}

Scenario read_scenario(const fs::path& file) { return parse_scenario(read_input_file(file), file); }

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
