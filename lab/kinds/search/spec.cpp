#include "lab/kinds/search/spec.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "lab/kinds/training/spec_fields.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kMostSteps = 1e6;

std::vector<Field> search_phase_fields() {
  return {
      {.key = "name", .kind = Kind::text, .help = "what it is called", .required = true},
      {.key = "set", .kind = Kind::values, .help = "parameters of its steps (default: those of `start`)"},
      {.key = "model", .kind = Kind::model, .help = "a model of its own, in a process of its own"},
  };
}

std::vector<Field> bucket_fields() {
  return {
      {.key = "parameter", .kind = Kind::text, .help = "the length, by its name", .required = true},
      {.key = "up_to",
       .kind = Kind::integers,
       .help = "the largest length of each bucket, rising; each is searched at it",
       .required = true},
  };
}

std::vector<Field> other_failure_fields() {
  return {
      {.key = "from", .kind = Kind::integer, .help = "the batch", .required = true, .low = 1, .high = 1e9},
      {.key = "message", .kind = Kind::text, .help = "what it says", .required = true},
  };
}

std::vector<Field> search_workload_fields(const std::vector<Field>& training) {
  std::vector<Field> fields;
  for (const Field& field : training) {
    const bool shared =
        field.key == "model" || field.key == "layers" || field.key == "start" || field.key == "bounds";
    if (shared) fields.push_back(field);
  }
  for (Field& field : fields) {
    if (field.key == "start") field.help = "the other parameters (the batch is searched)";
    if (field.key == "start") field.required = false;
  }
  fields.push_back(
      {.key = "batch", .kind = Kind::text, .help = "name of the parameter searched (default batch)"});
  fields.push_back({.key = "max_batch",
                    .kind = Kind::integer,
                    .help = "a cap that is not memory, such as a launch limit (default: none)",
                    .low = 1,
                    .high = 1e9});
  fields.push_back({.key = "dataset",
                    .kind = Kind::integer,
                    .help = "samples there are; no batch is larger (default: any number)",
                    .low = 1,
                    .high = 1e12});
  fields.push_back({.key = "phases",
                    .kind = Kind::list,
                    .help = "what a batch must fit (default: one, `training`); the first is of `model`",
                    .fields = search_phase_fields()});
  fields.push_back({.key = "buckets",
                    .kind = Kind::object,
                    .help = "a batch for each bucket of lengths (default: one batch)",
                    .fields = bucket_fields()});
  fields.push_back({.key = "failed_tensors",
                    .kind = Kind::choice,
                    .help = "when the tensors of a step that ran out of memory go (default freed: at once)",
                    .choices = {"freed", "until-clean-up", "never"}});
  fields.push_back({.key = "other_failure",
                    .kind = Kind::object,
                    .help = "from some batch on steps fail with a message",
                    .fields = other_failure_fields()});
  return fields;
}

std::vector<Field> then_epoch_fields() {
  return {
      {.key = "iterations",
       .kind = Kind::integer,
       .help = "steps",
       .required = true,
       .low = 1,
       .high = kMostSteps},
      {.key = "phases_every",
       .kind = Kind::integer,
       .help = "the further phases run after so many steps (default: never)",
       .low = 1,
       .high = kMostSteps},
      {.key = "draw",
       .kind = Kind::bounds,
       .help = "parameters drawn anew for each step, evenly within [smallest, largest]"},
  };
}

}  // namespace

std::vector<Field> search_fields() {
  Field workload = shared_field("workload");
  workload.fields = search_workload_fields(workload.fields);
  workload.help = "what is searched";
  Field policies = policies_field();
  policies.required = false;
  policies.help = "searchers to compare (default: model); further keys are options of the searcher";
  return {
      shared_field("$schema"),
      shared_field("version"),
      kind_field("search"),
      shared_field("name"),
      shared_field("description"),
      shared_field("seed"),
      shared_field("device"),
      shared_field("more_devices"),
      shared_field("allocator"),
      workload,
      {.key = "then_epoch",
       .kind = Kind::object,
       .help = "steps at what was found, in a fresh process",
       .fields = then_epoch_fields()},
      shared_field("plugins"),
      policies,
      metric_expectations_field(),
      shared_field("sweep"),
  };
}

Json search_schema(const PolicySet& known) {
  Json schema = fields_schema(search_fields(), /*open=*/false);
  Json& entry = schema["properties"]["policies"]["items"];
  entry = searcher_schemas(Json(entry), known);
  return schema;
}

namespace {

namespace fs = std::filesystem;

/// Turns a document whose fields passed their checks into a scenario.
class SearchReader {
 public:
  explicit SearchReader(const ScenarioDocument& document)
      : document_(document), json_(document.json), file_(document.file), problems_(file_) {}

  SearchScenario read() {
    read_base(document_, scenario_, problems_);
    ScenarioCards cards = read_cards(json_, file_, problems_);
    scenario_.gpu = std::move(cards.gpu);
    setup_.cards = std::move(cards.cards);
    if (!cards.others.empty()) {
      problems_.add("/device/others", "a search has its cards to itself; give a smaller \"limit\".");
    }
    problems_.guarded("/workload", [&] { read_workload(json_["workload"]); });
    const Json policies = json_.value("policies", Json::array({{{"use", "model"}}}));
    PolicyList list = read_policy_list(policies, family(), problems_);
    scenario_.policies = std::move(list.entries);
    scenario_.expectations =
        read_metric_expectations(json_, list.labels, list.complete, search_metric_names(), problems_);
    problems_.throw_if_any();
    return std::move(scenario_);
  }

 private:
  void read_workload(const Json& workload) {
    scenario_.models.push_back(read_workload_model(workload, file_));
    setup_.model = scenario_.models.front().get();
    const std::size_t parts = setup_.model->cards();
    if (parts > 1 && parts != setup_.cards.size()) {
      problems_.add("/workload/layers", "are spread over " + std::to_string(parts) +
                                            " cards, and there are " + std::to_string(setup_.cards.size()) +
                                            ": \"device\" and those of \"more_devices\".");
    }
    space_ = setup_.model->parameters();
    if (workload.contains("bounds")) read_bounds(workload["bounds"], "/workload/bounds", space_, problems_);
    const auto batch =
        parameter_index(space_, workload.value("batch", std::string{"batch"}), "/workload/batch", problems_);
    if (!batch) return;
    setup_.parameter = *batch;
    read_range(workload);
    Point start(space_.size());
    Json values = workload.value("start", Json::object());
    if (values.contains(space_.parameters[*batch].name)) {
      problems_.add("/workload/start/" + space_.parameters[*batch].name, "the batch is what is searched.");
    }
    values[space_.parameters[*batch].name] = setup_.low;
    start = read_point(values, space_, "/workload/start", nullptr, problems_);
    read_phases(workload, start);
    read_failures(workload);
    read_buckets(workload, start);
    if (json_.contains("then_epoch")) read_epoch(json_["then_epoch"]);
  }

  void read_range(const Json& workload) {
    const Parameter& range = space_.parameters[setup_.parameter];
    setup_.low = std::max<std::int64_t>(range.low, 1);
    setup_.high = range.high;
    for (const char* cap : {"max_batch", "dataset"}) {
      if (!workload.contains(cap)) continue;
      setup_.high = std::min(setup_.high, workload[cap].get<std::int64_t>());
      if (setup_.high < setup_.low) {
        problems_.add(std::string("/workload/") + cap,
                      "is below the smallest batch allowed, " + std::to_string(setup_.low) + ".");
        setup_.high = setup_.low;
      }
    }
  }

  void read_phases(const Json& workload, const Point& start) {
    if (!workload.contains("phases")) {
      setup_.phases = {{.name = "training", .point = start}};
      return;
    }
    const Json& phases = workload["phases"];
    if (phases.empty()) problems_.add("/workload/phases", "the list is empty.");
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const std::string pointer = "/workload/phases/" + std::to_string(i);
      SearchPhase phase{.name = phases[i]["name"].get<std::string>(), .point = start};
      ParameterSpace space = space_;
      if (phases[i].contains("model")) {
        if (i == 0) problems_.add(pointer + "/model", "the first phase is of the workload's own model.");
        problems_.guarded(pointer, [&] { read_phase_model(phases[i], pointer, phase, space); });
      }
      const Json set = phases[i].value("set", Json::object());
      if (phase.point.size() == space.size()) {
        phase.point = read_point(set, space, pointer + "/set", &phase.point, problems_);
      }
      setup_.phases.push_back(std::move(phase));
    }
  }

  // Its parameters keep the values of those of the same name; the others must be set.
  void read_phase_model(const Json& json, const std::string& pointer, SearchPhase& phase,
                        ParameterSpace& space) {
    scenario_.models.push_back(scenario_model(json["model"], file_, pointer + "/model"));
    phase.model = scenario_.models.back().get();
    const Point start = phase.point;
    const ParameterSpace own = std::exchange(space, phase.model->parameters());
    phase.point.clear();
    for (const Parameter& parameter : space.parameters) {
      const auto same = own.find(parameter.name);
      phase.point.push_back(same ? start[*same] : parameter.low);
    }
    if (space.find(own.parameters[setup_.parameter].name) != setup_.parameter) {
      problems_.add(pointer + "/model", "must have the batch in the same place as the workload's model.");
    }
  }

  void read_failures(const Json& workload) {
    const auto tensors = workload.value("failed_tensors", std::string{"freed"});
    if (tensors == "until-clean-up") setup_.failed_tensors = FailedTensors::until_clean_up;
    if (tensors == "never") setup_.failed_tensors = FailedTensors::never;
    if (!workload.contains("other_failure")) return;
    setup_.fails_from = workload["other_failure"]["from"].get<std::int64_t>();
    setup_.failure = workload["other_failure"]["message"].get<std::string>();
  }

  void read_buckets(const Json& workload, const Point& start) {
    if (!workload.contains("buckets")) {
      scenario_.buckets = {{.name = {}, .setup = setup_, .draws = {}}};
      return;
    }
    const Json& json = workload["buckets"];
    const auto name = json["parameter"].get<std::string>();
    const auto length = parameter_index(space_, name, "/workload/buckets/parameter", problems_);
    if (!length) return;
    if (*length == setup_.parameter) {
      problems_.add("/workload/buckets/parameter", "\"" + name + "\" is the batch, which is searched.");
      return;
    }
    std::int64_t below = space_.parameters[*length].low - 1;
    for (std::size_t i = 0; i < json["up_to"].size(); ++i) {
      const auto up_to = json["up_to"][i].get<std::int64_t>();
      if (up_to <= below || up_to > space_.parameters[*length].high) {
        problems_.add("/workload/buckets/up_to/" + std::to_string(i),
                      "lengths must rise and lie within the bounds of " + name + ".");
        return;
      }
      SearchBucket bucket{.name = name + " " + std::to_string(up_to), .setup = setup_, .draws = {}};
      for (SearchPhase& phase : bucket.setup.phases) {
        if (phase.point.size() == start.size() && phase.point[*length] == start[*length])
          phase.point[*length] = up_to;
      }
      bucket.draws = {{*length, below + 1, up_to}};
      scenario_.buckets.push_back(std::move(bucket));
      below = up_to;
    }
    if (json["up_to"].empty()) problems_.add("/workload/buckets/up_to", "the list is empty.");
  }

  void read_epoch(const Json& json) {
    scenario_.epoch.iterations = json["iterations"].get<std::int64_t>();
    scenario_.epoch.phases_every = json.value("phases_every", std::int64_t{0});
    scenario_.epoch.seed = scenario_.seed;
    if (!json.contains("draw")) return;
    for (const auto& [name, range] : json["draw"].items()) {
      const std::string pointer = "/then_epoch/draw/" + name;
      const auto index = parameter_index(space_, name, pointer, problems_);
      if (!index) continue;
      const EpochBucket::Draw draw{*index, range[0].get<std::int64_t>(), range[1].get<std::int64_t>()};
      const Parameter& bounds = space_.parameters[*index];
      if (*index == setup_.parameter || draw.low < bounds.low || draw.high > bounds.high) {
        problems_.add(pointer, "is the batch, or goes beyond [" + std::to_string(bounds.low) + ", " +
                                   std::to_string(bounds.high) + "].");
      }
      for (SearchBucket& bucket : scenario_.buckets) {
        const bool taken = std::any_of(bucket.draws.begin(), bucket.draws.end(),
                                       [&](const EpochBucket::Draw& one) { return one.parameter == *index; });
        if (!taken) bucket.draws.push_back(draw);
      }
    }
  }

  PolicyFamily family() {
    return {
        .find =
            [this](TunerChoice& choice) {
              const SearcherEntry& searcher =
                  find_searcher(choice.use, choice.where + "/use", scenario_.known->searchers);
              choice.profile = full_profile_name(searcher, choice);
              return searcher.profiles.size() <= 1 ? searcher.name : searcher.name + " " + choice.profile;
            },
        .try_out = [this](const TunerChoice& choice) { make_searcher(choice, scenario_.known->searchers); }};
  }

  const ScenarioDocument& document_;
  const Json& json_;
  fs::path file_;
  SearchScenario scenario_;
  BatchSearchSetup setup_;  // of every bucket
  ParameterSpace space_;
  FileProblems problems_;
};

}  // namespace

SearchScenario read_search(const ScenarioDocument& document) {
  require_fields(document, search_fields());
  return SearchReader{document}.read();
}

}  // namespace vramlab
