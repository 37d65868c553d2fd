// The runs of a sweep and their results: one row a run and policy, in a file that a later sweep goes on from.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/metric.hpp"
#include "lab/scenario/sweep.hpp"
#include "lab/tasks.hpp"

namespace vramlab {

/// By run; empty = not done.
using SweepResults = std::vector<std::optional<std::vector<LabelledFigures>>>;

/// How many runs are done.
std::size_t finished_runs(const SweepResults& results);

/// What the result of each combination depends on (ResultKeys), with the labels chosen.
std::vector<std::string> sweep_keys(const Sweep& sweep, const std::vector<std::string>& labels,
                                    std::string_view version);

/// The finished runs as JSON lines or CSV, by the name's ending (.jsonl, .csv), in the order of the sweep.
std::string sweep_text(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys,
                       const std::filesystem::path& file);

/// One finished run as JSON lines.
std::string run_lines(const Sweep& sweep, const std::vector<std::string>& keys, std::size_t run,
                      const std::vector<LabelledFigures>& results);

/// The runs of the sweep of which `file` has every row; none if there is no such file. A row of JSON that was
/// cut off at the end, by a program that was killed, is passed over. Throws InputError for a file that cannot
/// be read, that has a row twice or a metric there is not, or that has results of runs which are not in the
/// sweep: writing it again would lose them. Figures and labels that were changed by hand are not noticed.
SweepResults read_sweep_results(const Sweep& sweep, const std::vector<std::string>& keys,
                                const std::filesystem::path& file);

/// Throws InputError unless the name ends in .jsonl or .csv.
void require_results_name(const std::filesystem::path& file);

/// Which runs of a sweep one of several programs makes: every `of`-th, from the `number`-th on.
struct SweepShard {
  std::size_t number = 1;  ///< from 1
  std::size_t of = 1;

  [[nodiscard]] bool has(std::size_t run) const { return run % of == number - 1; }
  /// How many of `runs` runs it has.
  [[nodiscard]] std::size_t count(std::size_t runs) const { return (runs + of - number) / of; }
};

/// "3/16". Throws InputError for anything but two whole numbers, the first from 1 to the second.
SweepShard parse_shard(const std::string& text);

// Makes the runs of a sweep; the results do not depend on where.

struct SweepOptions {
  std::vector<std::string> labels;  ///< policies to run; empty = all
  unsigned threads = 1;             ///< of this process
  Workers* workers = nullptr;       ///< where the runs are made; null = on those threads
  std::vector<std::string>
      keys{};  ///< of the runs (sweep_keys); may be empty where no other process makes them
  const std::atomic<bool>* stop = nullptr;  ///< when it turns true, runs that have not begun are left out
  std::function<void()> stopped{};          ///< once, when no more runs begin because of it
  SweepShard shard{};                       ///< the others are left out
  /// After each run, one call at a time; what it throws stops the sweep.
  std::function<void(std::size_t run, const std::vector<LabelledFigures>& results)> on_run{};
};

/// Reads every combination that `results` does not have, and then runs them into it. Throws InputError, which
/// names the combination: before the first run if one of them is not a usable scenario, and after all runs if
/// one could not be made (weights that do not fit, for one); the others are in `results` then. Where another
/// process hands out the runs, `results` stays as it is.
void run_sweep(const Sweep& sweep, const SweepOptions& options, SweepResults& results);

}  // namespace vramlab
