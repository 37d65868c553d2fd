#include "lab/kinds/search/spec.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/faults.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "models/measured.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr double kMostSteps = 1e6;

struct PhaseSection {
  std::string name;
  NamedIntegers set;
  const Json* model = nullptr;
};

struct BucketsSection {
  std::string parameter;
  std::vector<std::int64_t> up_to;
};

struct ThenEpochSection : SearchEpochSetup {
  NamedRanges draw;
};

/// A file of kind `search`, as its keys are named. `common` is the setup of every bucket.
struct SearchFile : SearchScenario, ScenarioSections, CardSections {
  const Json* model = nullptr;
  std::optional<std::vector<std::int64_t>> layers;
  NamedIntegers start;
  NamedRanges bounds;
  std::string batch = "batch";
  std::optional<std::int64_t> max_batch;
  std::optional<std::int64_t> dataset;
  std::optional<std::vector<PhaseSection>> phases;
  std::optional<BucketsSection> bucket_section;
  BatchSearchSetup common;
  std::optional<ThenEpochSection> then_epoch;
  std::optional<Faults> faults;
};

const Record<PhaseSection>& phase_table() {
  using P = PhaseSection;
  static const Record<P> table{
      {"name", &P::name, "", 0, 0, "what it is called", kRequired},
      {"set", &P::set, "", 0, 0, "parameters of its steps (default: those of `start`)"},
      {"model", raw(FieldKind::model, &P::model), "", 0, 0, "a model of its own, in a process of its own"},
  };
  return table;
}

const Record<BucketsSection>& buckets_table() {
  using B = BucketsSection;
  static const Record<B> table{
      {"parameter", &B::parameter, "", 0, 0, "the length, by its name", kRequired},
      {"up_to", &B::up_to, "", 0, 0, "the largest length of each bucket, rising; each is searched at it",
       kRequired},
  };
  return table;
}

const Record<DeclaredFailure>& other_failure_table() {
  using F = DeclaredFailure;
  static const Record<F> table{
      {"from", &F::from, "", 1, 1e9, "the smallest batch that fails", kRequired},
      {"to", &F::to, "", 1, 1e9, "the largest (default: no end)"},
      {"message", &F::message, "", 0, 0, "what it says", kRequired},
  };
  return table;
}

const Record<SearchFile>& workload_table() {
  using F = SearchFile;
  static const Record<F> table{
      {"model", raw(FieldKind::model, &F::model), "", 0, 0, kModelHelp, kRequired},
      {"layers", &F::layers, "", 0, 0, kLayersHelp},
      {"start", &F::start, "", 0, 0, "the other parameters (the batch is searched)"},
      {"bounds", &F::bounds, "", 0, 0, kBoundsHelp},
      {"batch", &F::batch, "", 0, 0, "name of the parameter searched"},
      {"max_batch", &F::max_batch, "", 1, 1e9,
       "a cap that is not memory, such as a launch limit (default: none)"},
      {"dataset", &F::dataset, "", 1, 1e12, "samples there are; no batch is larger (default: any number)"},
      {"phases", list_of(&F::phases, phase_table()), "", 0, 0,
       "what a batch must fit (default: one, `training`); the first is of `model`"},
      {"buckets", object_of(&F::bucket_section, buckets_table()), "", 0, 0,
       "a batch for each bucket of lengths (default: one batch)"},
      {"failed_tensors",
       within(&F::common, one_of<&BatchSearchSetup::failed_tensors>({"freed", "until-clean-up", "never"})),
       "", 0, 0, "when the tensors of a step that ran out of memory go; freed: at once"},
      {"max_steps", within(&F::common, &BatchSearchSetup::max_steps), "", 1, 1e9,
       "steps after which a search is given up, its last probe done (default: no limit)"},
      {"other_failure", within(&F::common, object_of(&BatchSearchSetup::failure, other_failure_table())), "",
       0, 0, "batches at which steps fail with a message"},
  };
  return table;
}

const Record<ThenEpochSection>& then_epoch_table() {
  using E = ThenEpochSection;
  static const Record<E> table{
      {"iterations", &E::iterations, "", 1, kMostSteps, "steps", kRequired},
      {"phases_every", &E::phases_every, "", 1, kMostSteps,
       "the further phases run each time this many steps are done (default: never)"},
      {"draw", &E::draw, "", 0, 0, "parameters drawn anew for each step, evenly within [smallest, largest]"},
  };
  return table;
}

const Record<SearchFile>& file_table() {
  using F = SearchFile;
  static const Record<F> table{joined<F>(
      head_rows("search"), seed_rows(), device_rows(), allocator_rows(),
      std::vector<Row<F>>{
          {"workload", group_of(workload_table()), "", 0, 0, "what is searched", kRequired},
          {"faults", object_of(&F::faults, faults_table(FaultsOf::search)), "", 0, 0, kFaultsHelp},
          {"then_epoch", object_of(&F::then_epoch, then_epoch_table()), "", 0, 0,
           "steps at what was found, in a fresh process"}},
      plugins_rows(),
      policies_rows("searchers to compare (default: model); further keys are options of the searcher", false),
      expectations_rows(metric_expectation_table()), sweep_rows())};
  return table;
}

/// Turns a document whose fields passed their checks into a scenario.
class SearchReader {
 public:
  explicit SearchReader(const ScenarioDocument& document) : path_(document.file), problems_(path_) {
    file_.policy_sections = {{.use = "model"}};
    read_file(document, file_table(), file_);
    policies_given_ = document.json.contains("policies");
    file_.known = with_plugins(file_.plugins, path_, document.policies, problems_);
  }

  SearchScenario read() {
    ScenarioCards cards = read_cards(file_, path_, problems_);
    file_.gpu = std::move(cards.gpu);
    file_.context_assumed = cards.context_assumed;
    file_.notes = cards.notes;
    setup_.cards = std::move(cards.cards);
    setup_.others = std::move(cards.others);
    setup_.faults = read_faults(file_.faults, file_.seed, problems_);
    setup_.seed = file_.seed;
    if (const auto& failure = setup_.failure; failure && failure->to < failure->from) {
      problems_.add("/workload/other_failure/to",
                    "is below \"from\", " + std::to_string(failure->from) + ".");
    }
    problems_.guarded("/workload", [&] { read_workload(); });
    if (!file_.models.empty() && dynamic_cast<const LargestBatches*>(setup_.model) != nullptr) {
      answer_without_steps();
    }
    const auto& known = file_.known->searchers;
    PolicyList list = read_policy_list(
        file_.policy_sections,
        {find_in(known, /*names_both=*/true), [&](const PolicyChoice& choice) { known.make(choice); }},
        problems_);
    file_.policies = std::move(list.entries);
    require_metric_expectations(file_.expectations, list.labels, list.complete,
                                names_of(search_metric_table()), problems_);
    problems_.throw_if_any();
    return std::move(file_);
  }

 private:
  void read_workload() {
    file_.models.push_back(read_workload_model(*file_.model, file_.layers, path_));
    setup_.model = file_.models.front().get();
    const std::size_t parts = setup_.model->cards();
    if (parts > 1 && parts != setup_.cards.size()) {
      problems_.add("/workload/layers", "are spread over " + std::to_string(parts) +
                                            " cards, and there are " + std::to_string(setup_.cards.size()) +
                                            ": \"device\" and those of \"more_devices\".");
    }
    space_ = setup_.model->parameters();
    read_bounds(file_.bounds, "/workload/bounds", space_, problems_);
    const auto batch = parameter_index(space_, file_.batch, "/workload/batch", problems_);
    if (!batch) return;
    setup_.parameter = *batch;
    read_range();
    NamedIntegers values = file_.start;
    const auto is_batch = [&](const auto& value) { return value.first == file_.batch; };
    if (std::erase_if(values, is_batch) > 0) {
      problems_.add("/workload/start/" + file_.batch, "the batch is what is searched.");
    }
    values.emplace_back(file_.batch, setup_.low);
    const Point start = read_point(values, space_, "/workload/start", nullptr, problems_);
    read_phases(start);
    read_buckets(start);
    if (file_.then_epoch) read_epoch(*file_.then_epoch);
  }

  // Where the largest batches are given, whatever needs a step or a searcher has nothing to stand on.
  void answer_without_steps() {
    const auto refuse = [&](bool stands_there, const char* key) {
      if (!stands_there) return;
      problems_.add(key, "cannot stand beside given largest batches: no step is run. Leave it out.");
    };
    refuse(policies_given_, "/policies");
    refuse(file_.then_epoch.has_value(), "/then_epoch");
    refuse(file_.phases.has_value(), "/workload/phases");
    refuse(setup_.failure.has_value(), "/workload/other_failure");
    refuse(file_.faults.has_value(), "/faults");
    refuse(!setup_.others.empty(), "/device/others");
    if (file_.batch != "batch")
      problems_.add("/workload/batch", "must be \"batch\" with given largest batches.");
    file_.policy_sections.front().label = "given";
  }

  void read_range() {
    const Parameter& range = space_.parameters[setup_.parameter];
    setup_.low = std::max<std::int64_t>(range.low, 1);
    setup_.high = range.high;
    if (range.high < setup_.model->parameters().parameters[setup_.parameter].high) {
      file_.high_bound = BatchBound::bounds;
    }
    const auto cap_at = [&](const char* key, const std::optional<std::int64_t>& cap, BatchBound bound) {
      if (!cap || *cap >= setup_.high) return;
      setup_.high = *cap;
      file_.high_bound = bound;
      if (setup_.high < setup_.low) {
        problems_.add(std::string("/workload/") + key,
                      "is below the smallest batch allowed, " + std::to_string(setup_.low) + ".");
        setup_.high = setup_.low;
      }
    };
    cap_at("max_batch", file_.max_batch, BatchBound::max_batch);
    cap_at("dataset", file_.dataset, BatchBound::dataset);
  }

  void read_phases(const Point& start) {
    if (!file_.phases) {
      setup_.phases = {{.name = "training", .point = start}};
      return;
    }
    if (file_.phases->empty()) problems_.add("/workload/phases", "the list is empty.");
    for (std::size_t i = 0; i < file_.phases->size(); ++i) {
      const PhaseSection& section = (*file_.phases)[i];
      const std::string pointer = "/workload/phases/" + std::to_string(i);
      SearchPhase phase{.name = section.name, .point = start};
      ParameterSpace space = space_;
      if (section.model != nullptr) {
        if (i == 0) problems_.add(pointer + "/model", "the first phase is of the workload's own model.");
        problems_.guarded(pointer, [&] { read_phase_model(*section.model, pointer, phase, space); });
      }
      if (phase.point.size() == space.size()) {
        phase.point = read_point(section.set, space, pointer + "/set", &phase.point, problems_);
      }
      setup_.phases.push_back(std::move(phase));
    }
  }

  // Its parameters keep the values of those of the same name; the others must be set.
  void read_phase_model(const Json& model, const std::string& pointer, SearchPhase& phase,
                        ParameterSpace& space) {
    file_.models.push_back(scenario_model(model, path_, pointer + "/model"));
    phase.model = file_.models.back().get();
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

  void read_buckets(const Point& start) {
    if (!file_.bucket_section) {
      file_.buckets = {{.name = {}, .setup = setup_, .draws = {}}};
      return;
    }
    const auto& [name, ends] = *file_.bucket_section;
    const auto length = parameter_index(space_, name, "/workload/buckets/parameter", problems_);
    if (!length) return;
    if (*length == setup_.parameter) {
      problems_.add("/workload/buckets/parameter", "\"" + name + "\" is the batch, which is searched.");
      return;
    }
    std::int64_t below = space_.parameters[*length].low - 1;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::int64_t up_to = ends[i];
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
      file_.buckets.push_back(std::move(bucket));
      below = up_to;
    }
    if (ends.empty()) problems_.add("/workload/buckets/up_to", "the list is empty.");
  }

  void read_epoch(const ThenEpochSection& section) {
    file_.epoch = section;
    file_.epoch.seed = file_.seed;
    for (const auto& [name, low, high] : section.draw) {
      const std::string pointer = "/then_epoch/draw/" + name;
      const auto index = parameter_index(space_, name, pointer, problems_);
      if (!index) continue;
      const StepDraw draw{*index, low, high};
      const Parameter& bounds = space_.parameters[*index];
      if (*index == setup_.parameter || draw.low < bounds.low || draw.high > bounds.high) {
        problems_.add(pointer, "is the batch, or goes beyond [" + std::to_string(bounds.low) + ", " +
                                   std::to_string(bounds.high) + "].");
      }
      for (SearchBucket& bucket : file_.buckets) {
        const auto taken = std::ranges::find(bucket.draws, *index, &StepDraw::parameter);
        if (taken == bucket.draws.end()) bucket.draws.push_back(draw);
      }
    }
    for (SearchBucket& bucket : file_.buckets) bucket.setup.draws = bucket.draws;
  }

  fs::path path_;
  SearchFile file_;
  BatchSearchSetup& setup_ = file_.common;
  ParameterSpace space_;
  FileProblems problems_;
  bool policies_given_ = false;
};

}  // namespace

const RecordBase& search_table() { return file_table(); }

SearchScenario read_search(const ScenarioDocument& document) { return SearchReader{document}.read(); }

}  // namespace vramlab
