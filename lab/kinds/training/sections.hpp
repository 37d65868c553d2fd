// What a file of kind `training` says, key by key, and the table of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/scenario.hpp"

namespace vramlab {

struct PhaseSection {
  std::string name;
  std::int64_t every = 1;
  NamedIntegers set;
};

/// One of "policies".
struct TunerSection : PolicySection {
  std::optional<std::string> options_file;
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

const Record<TrainingFile>& training_file_table();

/// The tables of an entry of "policies", and of "searcher".
const Record<TunerSection>& tuner_table();
const Record<PolicySection>& searcher_table();

}  // namespace vramlab
