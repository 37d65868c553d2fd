#include "lab/kinds/training/spec.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lab/kinds/training/run.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/faults.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "models/measured.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"
#include "recordings/input_file.hpp"
#include "sim/runs/batch_search_loop.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

struct PhaseSection {
  std::string name;
  std::int64_t every = 1;
  NamedIntegers set;
  NamedIntegers follow;
  NamedRanges move;
  std::optional<PolicySection> policy;
};

/// What comes before the run of one of "policies".
struct StartSearchSection : PolicySection {
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
};

/// One of "policies".
struct TunerSection : PolicySection {
  std::optional<std::string> options_file;
  std::optional<StartSearchSection> after_search;
  CardsRule cards = CardsRule::fullest;
};

/// One of "expect": a figure of a run, named by one of four keys.
struct SubjectSection : Expectation {
  std::optional<std::string> metric;
  std::optional<std::string> final_value;
  std::optional<std::int64_t> adjustment;
  std::optional<std::string> parameter;
  std::optional<std::int64_t> oom;
};

/// A file of kind `training`, as its keys are named.
struct TrainingFile : TrainingScenario, ScenarioSections, CardSections {
  std::optional<Target> given_target;
  const Json* model_json = nullptr;
  std::optional<std::vector<std::int64_t>> layers;
  const Json* batch_size = nullptr;
  std::optional<PolicySection> searcher;
  NamedIntegers start;
  NamedRanges bounds;
  std::vector<PhaseSection> phases;
  std::optional<Faults> faults;
  std::vector<TunerSection> tuners;
  std::vector<SubjectSection> subjects;
};

constexpr double kLongestRun = 1e6;  // iterations; the record of every one is kept
constexpr std::int64_t kMostTimes = 1000;

const Record<Target>& target_table() {
  using T = Target;
  static const Record<T> table{
      {"usage", &T::usage, "", 0.01, 1, "share of the total to aim at"},
      {"margin", &T::margin, "", 0.001, 0.5, "half the width of the band around it"},
  };
  return table;
}

// A policy that stands alone.
Record<PolicySection> named_policy_table(const char* use) {
  using P = PolicySection;
  return Record<P>{{{"use", &P::use, "", 0, 0, use, kRequired},
                    {"profile", &P::profile, "", 0, 0, "a named set of its options"}},
                   raw(FieldKind::object, &P::json)};
}

const Record<PolicySection>& phase_policy_table() {
  static const Record<PolicySection> table = named_policy_table("a tuner of `vramlab policies`");
  return table;
}

const Record<PhaseSection>& phase_table() {
  using P = PhaseSection;
  static const Record<P> table{
      {"name", &P::name, "", 0, 0, "what it is called", kRequired},
      {"every", &P::every, "", 1, kLongestRun, "it runs each time this many iterations are done", kRequired},
      {"set", &P::set, "", 0, 0, "parameters of its step (default: those of `start`)"},
      {"follow", &P::follow, "", 0, 0,
       "parameters that are that many times what training runs at when the phase begins, e.g. `{\"batch\": "
       "4}`, at most what the model allows"},
      {"move", &P::move, "", 0, 0,
       "parameters that `policy` moves within [smallest, largest], beginning at `set`, e.g. `{\"batch\": [1, "
       "64]}`"},
      {"policy", object_of(&P::policy, phase_policy_table()), "", 0, 0,
       "the tuner of `move`, asked after each run of the phase (default predictive); further keys are its "
       "options"},
  };
  return table;
}

const Record<PolicySection>& searcher_table() {
  static const Record<PolicySection> table = named_policy_table("a searcher of `vramlab policies`");
  return table;
}

const Record<TrainingFile>& workload_table() {
  using F = TrainingFile;
  static const Record<F> table{
      {"model", raw(FieldKind::model, &F::model_json), "", 0, 0, kModelHelp, kRequired},
      {"layers", &F::layers, "", 0, 0, kLayersHelp},
      {"batch_size", raw(FieldKind::batch_size, &F::batch_size), "", 0, 0,
       "the batch of the first step, in place of start's; auto_batch_size: `searcher` finds it"},
      {"searcher", object_of(&F::searcher, searcher_table()), "", 0, 0,
       "the searcher of auto_batch_size (default model); further keys are its options"},
      {"iterations", within(&F::setup, &TrainingSetup::iterations), "", 1, kLongestRun, "steps to run",
       kRequired},
      {"start", &F::start, "", 0, 0, "parameters of the first step", kRequired},
      {"bounds", &F::bounds, "", 0, 0, kBoundsHelp},
      {"phases", list_of(&F::phases, phase_table()), "", 0, 0,
       "further steps at parameters of their own, such as validation"},
  };
  return table;
}

const Record<StartSearchSection>& start_search_table() {
  using S = StartSearchSection;
  static const Record<S> table{
      {{"use", &S::use, "", 0, 0, "a searcher of `vramlab policies`", kRequired},
       {"profile", &S::profile, "", 0, 0, "a named set of its options"},
       {"low", &S::low, "", 1, 1e9, "the smallest batch it may try (default: of `bounds`)"},
       {"high", &S::high, "", 1, 1e9, "the largest (default: of `bounds`)"}},
      raw(FieldKind::object, &S::json)};
  return table;
}

const Record<TunerSection>& tuner_table() {
  using T = TunerSection;
  static const Record<T> table{
      joined<T>(
          policy_rows(),
          std::vector<Row<T>>{
              {"options_file", &T::options_file, "", 0, 0,
               "a YAML file with training options of the dual optimizer, looked up beside the scenario"},
              {"cards", one_of<&TunerSection::cards>({"fullest", "sum"}), "", 0, 0,
               "several cards: it sees the fullest, or all summed up as the original did"},
              {"after_search", object_of(&T::after_search, start_search_table()), "", 0, 0,
               "a searcher that finds the batch of the first step; its time counts in the run's, and further "
               "keys are its options (default: the run begins at `start`)"}}),
      raw(FieldKind::object, &PolicySection::json)};
  return table;
}

const Record<SubjectSection>& expectation_table() {
  using E = SubjectSection;
  static const Record<E> table{joined<E>(
      std::vector<Row<E>>{
          {"policy", &E::policy, "", 0, 0, "the label of a policy, or oracle", kRequired},
          {"metric", &E::metric, "", 0, 0,
           "a metric of the results (or give `final`, `adjustment` or `oom`)"},
          {"final", &E::final_value, "", 0, 0,
           "a parameter, as it stands after the last step; of a phase that is moved `validation.batch`"},
          {"adjustment", &E::adjustment, "", 1, kLongestRun,
           "number of a change, from 1: the iteration after which it was made"},
          {"parameter", &E::parameter, "", 0, 0,
           "with `adjustment`: the value of this parameter after it instead"},
          {"oom", &E::oom, "", 1, kLongestRun, "number of a failed step, from 1: its iteration"}},
      bound_rows())};
  return table;
}

const Record<TrainingFile>& file_table() {
  using F = TrainingFile;
  static const Record<F> table{joined<F>(
      head_rows("training"), seed_rows(),
      std::vector<Row<F>>{
          {"objective", one_of<&TrainingScenario::objective>(objective_names()), "", 0, 0,
           "what counts as work done: pixels of all steps (lq-then-batch is its former name), a "
           "rate, or the size first and then the batch"},
          {"target", object_of(&F::given_target, target_table()), "", 0, 0,
           "usage to aim at: policies that set none of their own take it, the oracle too"}},
      device_rows(), allocator_rows(),
      std::vector<Row<F>>{
          {"workload", group_of(workload_table()), "", 0, 0, "what is trained", kRequired},
          {"faults", object_of(&F::faults, faults_table(FaultsOf::training)), "", 0, 0, kFaultsHelp}},
      plugins_rows(),
      std::vector<Row<F>>{
          {"policies", list_of(&F::tuners, tuner_table()), "", 0, 0, kPoliciesHelp, kRequired},
          {"expect", list_of(&F::subjects, expectation_table()), "", 0, 0,
           "what `vramlab check` holds the runs against"}},
      sweep_rows())};
  return table;
}

// `usual` unless the file names another one.
PolicyChoice choice_of(const std::optional<PolicySection>& section, const char* usual,
                       const RecordBase& table, const std::string& where, FileProblems& problems) {
  PolicyChoice choice{.use = usual, .profile = {}, .options = {}, .where = where};
  if (!section) return choice;
  choice.use = section->use;
  choice.profile = section->profile.value_or("");
  choice.options = policy_options(*section->json, table, choice.where, problems);
  return choice;
}

// A phase that sets a batch of its own keeps it.
bool follows(const PhaseSection& phase) {
  return std::none_of(phase.set.begin(), phase.set.end(),
                      [](const auto& value) { return value.first == "batch"; });
}

// Searches the batch with the searcher that the file names, sets the start and the phases that follow it, and
// notes how it was found. Throws InputError if no batch fits.
void find_batch_size(TrainingFile& file, FileProblems& problems) {
  TrainingSetup& setup = file.setup;
  const std::size_t batch = setup.bounds.find("batch").value();
  const Parameter& range = setup.bounds.parameters[batch];
  BatchSearchSetup search{.model = setup.model,
                          .parameter = batch,
                          .low = std::max<std::int64_t>(range.low, 1),
                          .high = range.high,
                          .phases = {{.name = "training", .point = setup.start}},
                          .cards = cards_of(setup)};
  for (std::size_t i = 0; i < setup.phases.size(); ++i) {
    if (follows(file.phases[i])) search.phases.push_back({setup.phases[i].name, setup.phases[i].point});
  }
  const PolicyChoice choice =
      choice_of(file.searcher, "model", searcher_table(), "/workload/searcher", problems);
  const auto searcher = file.known->searchers.make(choice);
  const BatchSearchRun run = run_batch_search(search, *searcher);
  if (run.answer.action != SearcherAnswer::Action::found) throw InputError("", run.answer.reason + ".");
  setup.start[batch] = run.answer.batch;
  for (std::size_t i = 0; i < setup.phases.size(); ++i) {
    if (follows(file.phases[i])) setup.phases[i].point[batch] = run.answer.batch;
  }
  file.notes.push_back(fmt::format("auto_batch_size: {} by {}, {} probes in {:.1f} s, {} OOMs ({}).",
                                   run.answer.batch, choice.use, run.trials.size(), to_seconds(run.duration),
                                   run.ooms, run.answer.reason));
}

/// Turns a document whose fields passed their checks into a scenario.
class TrainingReader {
 public:
  explicit TrainingReader(const ScenarioDocument& document) : path_(document.file), problems_(path_) {
    read_file(document, file_table(), file_);
    if (file_.objective == Objective::lq_then_batch) file_.objective = Objective::pixels;
    file_.known = with_plugins(file_.plugins, path_, document.policies, problems_);
  }

  TrainingScenario read() {
    read_target();
    take_cards();
    problems_.guarded("/workload", [&] { read_workload(); });
    file_.setup.faults = read_faults(file_.faults, file_.seed, problems_);
    read_policies();
    read_expectations();
    problems_.throw_if_any();
    if (searches_batch()) {
      problems_.guarded("/workload/batch_size", [&] { find_batch_size(file_, problems_); });
      problems_.throw_if_any();
    }
    return std::move(file_);
  }

 private:
  [[nodiscard]] bool searches_batch() const {
    return file_.batch_size != nullptr && *file_.batch_size == kAutoBatchSize;
  }

  void read_target() {
    file_.target = file_.given_target.value_or(Target{});
    if (file_.target.usage + file_.target.margin > 1) {
      problems_.add("/target", "usage plus margin is above 1: the band would end beyond the card.");
    }
  }

  void take_cards() {
    ScenarioCards cards = read_cards(file_, path_, problems_);
    TrainingSetup& setup = file_.setup;
    file_.gpu = std::move(cards.gpu);
    file_.context_assumed = cards.context_assumed;
    file_.notes.insert(file_.notes.end(), cards.notes.begin(), cards.notes.end());
    setup.process = cards.cards.front();
    setup.more_cards.assign(cards.cards.begin() + 1, cards.cards.end());
    setup.others = std::move(cards.others);
  }

  void read_workload() {
    TrainingSetup& setup = file_.setup;
    file_.model = read_workload_model(*file_.model_json, file_.layers, path_);
    setup.model = file_.model.get();
    if (setup.model->cards() > 1 && setup.model->cards() != setup.more_cards.size() + 1) {
      problems_.add("/workload/layers", "are spread over " + std::to_string(setup.model->cards()) +
                                            " cards; there are " +
                                            std::to_string(setup.more_cards.size() + 1) + ".");
    }
    if (const auto* measured = dynamic_cast<const MeasuredModel*>(setup.model)) {
      file_.notes.push_back("Peaks follow from " + measured->basis() +
                            ": those of steps beyond are extrapolated.");
    }
    setup.bounds = file_.model->parameters();
    read_bounds(file_.bounds, "/workload/bounds", setup.bounds, problems_);
    setup.start = read_point(start_values(), setup.bounds, "/workload/start", nullptr, problems_);
    for (std::size_t i = 0; i < file_.phases.size(); ++i) {
      const PhaseSection& phase = file_.phases[i];
      const std::string pointer = "/workload/phases/" + std::to_string(i) + "/set";
      setup.phases.push_back({phase.name, phase.every,
                              read_point(phase.set, setup.bounds, pointer, &setup.start, problems_),
                              read_follow(phase, "/workload/phases/" + std::to_string(i) + "/follow")});
      read_move(i, "/workload/phases/" + std::to_string(i));
    }
  }

  // A tuner of its own for the phase, over all parameters: those that stay have one value.
  void read_move(std::size_t number, const std::string& pointer) {
    const PhaseSection& phase = file_.phases[number];
    if (phase.move.empty()) {
      if (phase.policy) problems_.add(pointer + "/policy", "has nothing to move; name it in \"move\".");
      return;
    }
    if (!phase.follow.empty()) {
      problems_.add(pointer + "/move", "and \"follow\" exclude each other; leave one of them out.");
    }
    const Point& start = file_.setup.phases[number].point;
    MovedPhase moved{.phase = number, .bounds = file_.model->parameters(), .make_tuner = {}};
    read_bounds(phase.move, pointer + "/move", moved.bounds, problems_);
    for (std::size_t i = 0; i < start.size(); ++i) {
      Parameter& one = moved.bounds.parameters[i];
      const auto names_it = [&one](const NamedRange& range) { return range.name == one.name; };
      if (std::none_of(phase.move.begin(), phase.move.end(), names_it)) {
        one.low = one.high = start[i];
      } else if (start[i] < one.low || start[i] > one.high) {
        problems_.add(pointer + "/move/" + one.name,
                      "the phase begins at " + std::to_string(start[i]) + ", which lies outside.");
        return;
      } else if (searches_batch() && one.name == "batch") {
        problems_.add(pointer + "/move/batch",
                      "a batch that a searcher is to find cannot be moved; give "
                      "\"batch_size\" a number.");
      }
    }
    PolicyChoice choice =
        choice_of(phase.policy, "predictive", phase_policy_table(), pointer + "/policy", problems_);
    const TunerEntry& tuner = file_.known->tuners.find(choice.use, choice.where + "/use");
    const PolicyProfile* profile = tuner.find_profile(choice.profile, choice.where + "/profile");
    if (profile != nullptr) choice.profile = profile->name;
    choice.options = with_goal(tuner, choice.options);
    file_.known->tuners.make(choice, moved.bounds);  // bad options are reported now
    moved.make_tuner = [known = file_.known, choice, bounds = moved.bounds] {
      return known->tuners.make(choice, bounds);
    };
    file_.setup.moved_phases.push_back(std::move(moved));
  }

  Point read_follow(const PhaseSection& phase, const std::string& pointer) {
    if (phase.follow.empty()) return {};
    Point follow(file_.setup.bounds.size(), 0);
    for (const auto& [name, times] : phase.follow) {
      const std::string where = pointer + "/" + name;
      const auto index = parameter_index(file_.setup.bounds, name, where, problems_);
      if (!index) continue;
      if (times < 1 || times > kMostTimes) {
        problems_.add(where, std::to_string(times) + " is out of range; allowed is 1 to " +
                                 std::to_string(kMostTimes) + ".");
      }
      const auto is_same = [&key = name](const auto& value) { return value.first == key; };
      if (std::any_of(phase.set.begin(), phase.set.end(), is_same)) {
        problems_.add(where, "\"" + name + "\" stands in \"set\", too; leave one of them out.");
      }
      if (searches_batch() && name == "batch") {
        problems_.add(where,
                      "a batch that a searcher is to find cannot be followed; give \"batch_size\" a number.");
      }
      follow[*index] = times;
    }
    return follow;
  }

  // A batch that is yet to be found stands at its smallest value.
  NamedIntegers start_values() {
    NamedIntegers start = file_.start;
    if (file_.batch_size == nullptr) return start;
    const auto is_batch = [](const auto& value) { return value.first == "batch"; };
    if (std::erase_if(start, is_batch) > 0) {
      problems_.add("/workload/batch_size", "the batch is given twice, here and in \"start\".");
    }
    const auto index = parameter_index(file_.setup.bounds, "batch", "/workload/batch_size", problems_);
    if (!index) return file_.start;
    start.emplace_back("batch", searches_batch() ? file_.setup.bounds.parameters[*index].low
                                                 : file_.batch_size->get<std::int64_t>());
    return start;
  }

  void read_policies() {
    if (file_.tuners.empty()) problems_.add("/policies", "the list is empty; name at least one policy.");
    for (std::size_t i = 0; i < file_.tuners.size(); ++i) {
      const std::size_t before = file_.policies.size();
      const std::string pointer = "/policies/" + std::to_string(i);
      problems_.guarded(pointer, [&] { read_policy(file_.tuners[i], pointer); });
      all_policies_read_ = all_policies_read_ && file_.policies.size() == before + 1;
    }
  }

  void read_policy(const TunerSection& section, const std::string& pointer) {
    PolicyEntry entry{.label = {}, .choice = {}, .cards = section.cards};
    entry.choice.use = section.use;
    entry.choice.profile = section.profile.value_or("");
    entry.choice.where = pointer;
    const TunerEntry& tuner = file_.known->tuners.find(entry.choice.use, pointer + "/use");
    const PolicyProfile* profile = tuner.find_profile(entry.choice.profile, pointer + "/profile");
    entry.label = section.label.value_or(profile != nullptr ? tuner.name + " " + profile->name : tuner.name);
    const std::string fault = label_fault(entry.label, labels_);
    if (!fault.empty()) problems_.add(pointer, fault);
    const OptionMap given =
        section.options_file ? read_options_file(*section.options_file, pointer) : OptionMap{};
    entry.choice.options =
        with_goal(tuner, overlay(given, policy_options(*section.json, tuner_table(), pointer, problems_)));
    if (section.after_search) {
      problems_.guarded(pointer + "/after_search", [&] {
        entry.search = read_search(*section.after_search, pointer + "/after_search");
      });
    }
    // Bad options are reported here, with the file's other problems, and not when the run begins.
    if (file_.model) file_.known->tuners.make(entry.choice, file_.setup.bounds);
    file_.policies.push_back(std::move(entry));
  }

  std::optional<StartSearch> read_search(const StartSearchSection& section, const std::string& pointer) {
    StartSearch search;
    search.choice = {.use = section.use,
                     .profile = section.profile.value_or(""),
                     .options = policy_options(*section.json, start_search_table(), pointer, problems_),
                     .where = pointer};
    file_.known->searchers.make(search.choice);
    if (!file_.model) return std::nullopt;  // which is a problem of its own
    const auto batch = parameter_index(file_.setup.bounds, "batch", pointer, problems_);
    if (!batch) return std::nullopt;
    const Parameter& range = file_.setup.bounds.parameters[*batch];
    search.low = section.low.value_or(std::max<std::int64_t>(1, range.low));
    search.high = section.high.value_or(range.high);
    const std::string allowed = "; allowed is " + std::to_string(range.low) + " to " +
                                std::to_string(range.high) + ", the bounds of batch.";
    for (const auto& [key, value] : {std::pair{"/low", search.low}, std::pair{"/high", search.high}}) {
      if (value >= range.low && value <= range.high) continue;
      problems_.add(pointer + key, std::to_string(value) + " is out of range" + allowed);
    }
    if (search.high < search.low) {
      problems_.add(pointer + "/high", "is below \"low\", " + std::to_string(search.low) + ".");
    }
    return search;
  }

  [[nodiscard]] OptionMap read_options_file(const std::string& name, const std::string& pointer) const {
    return load_dual_optimizer_yaml(data_file(name, path_, pointer + "/options_file").string());
  }

  // A scenario's target and objective hold for every policy that has them and was not told otherwise.
  OptionMap with_goal(const TunerEntry& tuner, const OptionMap& given) const {
    OptionMap target;
    const bool has_target = file_.given_target && given.find("preset") == nullptr;
    for (const Field& option : tuner.options) {
      if (option.key == "objective") target.set(option.key, objective_name(file_.objective), "/objective");
      if (!has_target) continue;
      if (option.key == "target_vram_usage") target.set(option.key, file_.target.usage, "/target/usage");
      if (option.key == "safety_margin") target.set(option.key, file_.target.margin, "/target/margin");
    }
    return overlay(target, given);
  }

  void read_expectations() {
    for (std::size_t i = 0; i < file_.subjects.size(); ++i) {
      read_expectation(file_.subjects[i], "/expect/" + std::to_string(i));
    }
  }

  void read_expectation(const SubjectSection& section, const std::string& pointer) {
    const std::vector<std::string> labels(labels_.begin(), labels_.end());
    // Else the label may be that of a policy with another fault.
    if (all_policies_read_) require_expected_labels(section, "policy", pointer, labels, problems_);
    Expectation expectation = section;
    if (!read_subject(section, pointer, expectation)) return;
    require_expected_bounds(expectation, pointer, problems_);
    file_.expectations.push_back(std::move(expectation));
  }

  bool read_subject(const SubjectSection& section, const std::string& pointer, Expectation& expectation) {
    using Subject = Expectation::Subject;
    const int given = int{section.metric.has_value()} + int{section.final_value.has_value()} +
                      int{section.adjustment.has_value()} + int{section.oom.has_value()};
    if (given != 1) {
      problems_.add(
          pointer, "give one of \"metric\", \"final\" (a parameter), \"adjustment\" and \"oom\" (a number).");
      return false;
    }
    if (section.parameter && !section.adjustment) {
      problems_.add(pointer + "/parameter", "goes with \"adjustment\", which is not given.");
    }
    if (section.metric) {
      expectation.name = *section.metric;
      const auto names = names_of(training_metric_table());
      if (std::find(names.begin(), names.end(), expectation.name) == names.end()) {
        problems_.add(pointer + "/metric", "\"" + expectation.name + "\" is not a metric." +
                                               suggest_name(expectation.name, names));
      }
      return true;
    }
    const std::optional<std::string>& parameter =
        section.final_value ? section.final_value : section.parameter;
    if (parameter) {
      expectation.name = *parameter;
      const std::string where = pointer + (section.final_value ? "/final" : "/parameter");
      const bool is_of_phase = section.final_value && find_moved_parameter(file_.setup, *parameter);
      if (file_.model && !is_of_phase) parameter_index(file_.setup.bounds, *parameter, where, problems_);
    }
    expectation.subject = section.final_value  ? Subject::final_value
                          : section.adjustment ? Subject::adjustment
                                               : Subject::oom;
    expectation.number = section.adjustment.value_or(section.oom.value_or(1));
    return true;
  }

  fs::path path_;
  TrainingFile file_;
  std::set<std::string> labels_{"oracle"};  // the oracle's is taken from the start
  bool all_policies_read_ = true;
  FileProblems problems_;
};

}  // namespace

std::optional<std::pair<std::size_t, std::size_t>> find_moved_parameter(const TrainingSetup& setup,
                                                                        const std::string& name) {
  for (std::size_t i = 0; i < setup.moved_phases.size(); ++i) {
    const MovedPhase& moved = setup.moved_phases[i];
    for (std::size_t at = 0; at < moved.bounds.size(); ++at) {
      const std::string full = setup.phases[moved.phase].name + "." + moved.bounds.parameters[at].name;
      if (full == name) return std::pair{i, at};
    }
  }
  return std::nullopt;
}

const RecordBase& training_table() { return file_table(); }

TrainingScenario read_training(const ScenarioDocument& document) { return TrainingReader{document}.read(); }

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names{"pixels", "pixels_per_s", "samples_per_s", "lq-first",
                                              "lq-then-batch"};
  return names;
}

std::string objective_name(Objective objective) {
  return objective_names().at(static_cast<std::size_t>(objective));
}

}  // namespace vramlab
