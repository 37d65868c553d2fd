#include "lab/kinds/training/sections.hpp"

#include "lab/scenario/faults.hpp"

namespace vramlab {
namespace {

constexpr double kLongestRun = 1e6;  // iterations; the record of every one is kept

const Record<Target>& target_table() {
  using T = Target;
  static const Record<T> table{
      {"usage", &T::usage, "", 0.01, 1, "share of the total to aim at"},
      {"margin", &T::margin, "", 0.001, 0.5, "half the width of the band around it"},
  };
  return table;
}

const Record<PhaseSection>& phase_table() {
  using P = PhaseSection;
  static const Record<P> table{
      {"name", &P::name, "", 0, 0, "what it is called", kRequired},
      {"every", &P::every, "", 1, kLongestRun, "it runs each time this many iterations are done", kRequired},
      {"set", &P::set, "", 0, 0, "parameters of its step (default: those of `start`)"},
  };
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

const Record<SubjectSection>& expectation_table() {
  using E = SubjectSection;
  static const Record<E> table{joined<E>(
      std::vector<Row<E>>{
          {"policy", &E::policy, "", 0, 0, "the label of a policy, or oracle", kRequired},
          {"metric", &E::metric, "", 0, 0,
           "a metric of the results (or give `final`, `adjustment` or `oom`)"},
          {"final", &E::final_value, "", 0, 0, "a parameter, as it stands after the last step"},
          {"adjustment", &E::adjustment, "", 1, kLongestRun,
           "number of a change, from 1: the iteration after which it was made"},
          {"parameter", &E::parameter, "", 0, 0,
           "with `adjustment`: the value of this parameter after it instead"},
          {"oom", &E::oom, "", 1, kLongestRun, "number of a failed step, from 1: its iteration"}},
      bound_rows())};
  return table;
}

}  // namespace

const Record<TunerSection>& tuner_table() {
  using T = TunerSection;
  static const Record<T> table{
      joined<T>(
          policy_rows(),
          std::vector<Row<T>>{
              {"options_file", &T::options_file, "", 0, 0,
               "a YAML file with training options of the dual optimizer, looked up beside the scenario"},
              {"cards", one_of<&TunerSection::cards>({"fullest", "sum"}), "", 0, 0,
               "several cards: it sees the fullest, or all summed up as the original did"}}),
      raw(FieldKind::object, &PolicySection::json)};
  return table;
}

const Record<PolicySection>& searcher_table() {
  using P = PolicySection;
  static const Record<P> table{{{"use", &P::use, "", 0, 0, "a searcher of `vramlab policies`", kRequired},
                                {"profile", &P::profile, "", 0, 0, "a named set of its options"}},
                               raw(FieldKind::object, &P::json)};
  return table;
}

const Record<TrainingFile>& training_file_table() {
  using F = TrainingFile;
  static const Record<F> table{joined<F>(
      head_rows("training"), seed_rows(),
      std::vector<Row<F>>{{"objective", one_of<&TrainingScenario::objective>(objective_names()), "", 0, 0,
                           "what counts as work done"},
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

}  // namespace vramlab
