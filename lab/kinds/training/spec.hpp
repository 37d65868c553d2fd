// A scenario: a workload on a card, the policies to try on it, and what must come out.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "models/workload_model.hpp"
#include "policies/contract/policy_set.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// What counts as work done. All are sums over the steps that did not fail.
enum class Objective : std::uint8_t {
  lq_then_batch,  ///< samples × pixels of a sample, whatever time it took
  pixels_per_s,   ///< the same per second, so that time lost counts
  samples_per_s
};

/// The usage a scenario aims at, as shares of the total.
struct Target {
  double usage = 0.85;
  double margin = 0.05;
};

/// One policy of a scenario.
struct PolicyEntry {
  std::string label;  ///< unique within the scenario
  TunerChoice choice;
  CardsRule cards = CardsRule::fullest;  ///< what it sees of several cards
};

/// Something that must hold for the run of one policy.
struct Expectation {
  enum class Subject : std::uint8_t {
    metric,
    final_value,  ///< of a parameter after the last step
    adjustment,   ///< iteration of a change, or with a name that parameter's value after it
    oom           ///< iteration of a failed step
  };
  std::string policy;  ///< a label, or "oracle"
  Subject subject = Subject::metric;
  std::string name;         ///< of the metric, or of the parameter
  std::int64_t number = 1;  ///< which change or failed step, from 1
  std::string mark;         ///< kind snapshot: the mark at which; empty = at the end
  std::string relative_to;  ///< label of the run whose figure this one is divided by; empty = none
  double share = 1;         ///< of the seeds' runs, how many must hold
  std::optional<double> min;
  std::optional<double> max;
  std::optional<double> equals;
  double tolerance = 0;  ///< around `equals`
};

/// A training scenario, checked and ready to run.
struct Scenario {
  std::string file;  ///< as it was named
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  Objective objective = Objective::lq_then_batch;
  Target target;
  std::string gpu;  ///< name of the card, for people
  std::shared_ptr<const WorkloadModel> model;
  TrainingSetup setup;                                          ///< `setup.model` is `model`
  std::shared_ptr<const PolicySet> known = builtin_policies();  ///< where its policies are found; never null
  std::vector<PolicyEntry> policies;
  std::vector<Expectation> expectations;
  std::string batch_note;  ///< how the batch was found, where the file left it to a searcher; else empty
};

/// Reads a scenario file. Throws InputError with every problem of the file, each with its JSON pointer.
Scenario read_scenario(const std::filesystem::path& file);

/// The same from text; `file` names it in messages and is where a model's path is looked up. Its policies are
/// found among `known` and in its own plugins.
Scenario parse_scenario(const std::string& text, const std::filesystem::path& file,
                        std::shared_ptr<const PolicySet> known = builtin_policies());

/// The JSON schema (draft 7) of scenario files of every kind, with the options of every policy of `known`.
Json scenario_schema(const PolicySet& known = *builtin_policies());

/// That of kind `training`.
Json training_schema(const PolicySet& known);

/// "lq-then-batch", "pixels_per_s", "samples_per_s"
std::string objective_name(Objective objective);

}  // namespace vramlab
