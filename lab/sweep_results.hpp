// The results of a sweep: one row a run and policy, in a file that a later sweep goes on from.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/metrics.hpp"
#include "lab/sweep.hpp"

namespace vramlab {

/// By run; empty = not done.
using SweepResults = std::vector<std::optional<std::vector<LabelledFigures>>>;

/// How many runs are done.
std::size_t finished_runs(const SweepResults& results);

/// What a result depends on, in 16 hexadecimal digits: the combination, the labels chosen, the program's
/// version, and the content of every file that the scenario names and of every plugin given besides.
std::vector<std::string> sweep_keys(const Sweep& sweep, const std::vector<std::string>& labels,
                                    std::string_view version);

/// The finished runs as JSON lines or CSV, by the name's ending (.jsonl, .csv), in the order of the sweep.
std::string sweep_text(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys,
                       const std::filesystem::path& file);

/// The runs of the sweep of which `file` has every row; none if there is no such file. Throws InputError for
/// a file that is cut off or cannot be read, that has a row twice or a metric there is not, or that has
/// results of runs which are not in the sweep: writing it again would lose them. Figures and labels that were
/// changed by hand are not noticed.
SweepResults read_sweep_results(const Sweep& sweep, const std::vector<std::string>& keys,
                                const std::filesystem::path& file);

/// Throws InputError unless the name ends in .jsonl or .csv.
void require_results_name(const std::filesystem::path& file);

}  // namespace vramlab
