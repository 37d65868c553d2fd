// vramlab compare --seeds: the same comparison with several seeds, as means and standard deviations.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/experiment.hpp"

namespace vramlab {

/// What each seed came to.
using SeedRuns = std::vector<std::vector<LabelledFigures>>;

/// Runs each of `documents` with as many seeds as `question` asks for, from the scenario's own on. One entry
/// a document; none if the user stopped it, which is said, and where another process shows it. Throws
/// InputError as perform_tasks does.
std::vector<SeedRuns> run_seeds(const std::vector<ScenarioDocument>& documents,
                                const std::vector<std::string>& labels, const Question& question,
                                const Arguments& arguments, Output& output);

/// Prints the tables of one of them, of a kind that has no view of its own of several seeds, and returns the
/// JSON result.
Json show_seeds(const ScenarioDocument& document, const Experiment& experiment, const SeedRuns& runs,
                const Arguments& arguments, Output& output);

}  // namespace vramlab
