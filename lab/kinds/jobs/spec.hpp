// A scenario of kind `jobs`: jobs on shared cards, the queue policies to try, and what must come out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/fixed_choices.hpp"
#include "lab/metric.hpp"
#include "lab/page/sections.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/scenario.hpp"
#include "report/pictures.hpp"
#include "report/table.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {

/// What the oracle of jobs with tuners and composers is chosen by, among those that complete most jobs.
enum class QueueObjective : std::uint8_t {
  none,           ///< there is no oracle
  completion,     ///< shortest mean completion, as policies are ranked
  samples_per_s,  ///< of all such jobs, over the makespan
  pixels_per_s
};

/// As files have them.
const std::vector<std::string>& queue_objective_names();

/// A scenario of jobs, checked and ready to run.
struct JobsScenario : Scenario {
  QueueObjective objective = QueueObjective::none;
  bool draws = false;  ///< something of it is drawn with the seed
  JobQueueSetup setup;
  std::vector<std::string> notes;  ///< what had to be assumed or left out to read it

  /// How many there are.
  [[nodiscard]] std::size_t cards() const;
};

/// What one policy made of the jobs. Of several seeds `metrics` are means, and `run` is empty.
struct JobsResult : PolicyFigures {
  JobQueueRun run;
  std::vector<Metric> spread{};        ///< of several seeds: standard deviations of the sample (n − 1)
  std::optional<OracleNote> oracle{};  ///< of the oracle: what it is
};

/// Reads a scenario of kind `jobs`. Throws InputError with every problem of the file.
JobsScenario read_jobs(const ScenarioDocument& document);

/// The keys of such a file.
const RecordBase& jobs_table();

/// Runs the policies labelled so, all if there are none. Throws InputError for an unknown label.
std::vector<JobsResult> compare_queues(const JobsScenario& scenario,
                                       const std::vector<std::string>& labels = {});

/// The oracle by the scenario's objective: under each of its policies, all tuners of jobs stand still at
/// points within their bounds, and composers make batches of at most so many samples; the best of these runs
/// without OOM (oracle.cpp). Always on pretended cards. Empty without an objective, and where nothing that
/// was tried is safe. Give the others their `regret` with add_regrets.
std::optional<JobsResult> find_queue_oracle(const JobsScenario& scenario, unsigned threads);

void add_regrets(const JobsScenario& scenario, const JobsResult& oracle, std::vector<JobsResult>& results);

/// What a run is measured against, by which objective. Refers to the metrics of the oracle.
struct QueueRival {
  QueueObjective objective = QueueObjective::none;
  const std::vector<Metric>* oracle = nullptr;
};

/// All metrics of a run in a fixed order (docs/metrics.md); `regret` only beside an oracle.
std::vector<Metric> jobs_metrics(const JobQueueSetup& setup, const JobQueueRun& run,
                                 const QueueRival& rival = {});
const MetricTable& jobs_metric_table();

// What became of each job (fates.cpp). Times in seconds, of jobs in the order of the setup.

/// What a run lost: its jobs that were refused, timed out, killed or still wait, the first of each by name,
/// an early end, and the commonest reason. Empty if it lost nothing.
std::string losses_text(const JobQueueSetup& setup, const JobQueueRun& run);

/// One job: name, state (done, refused, timed_out, killed or waiting), cards, submitted_s, started_s,
/// ended_s, batch, accumulation, kills, reason; null for what there is not. Of more than `most` jobs those
/// that did not end well come first and the rest is left out.
Json fates_json(const JobQueueSetup& setup, const JobQueueRun& run, std::size_t most = ~std::size_t{0});

/// The same columns of all jobs as CSV; several cards with spaces between.
std::string fates_csv(const JobQueueSetup& setup, const JobQueueRun& run);

/// The same columns of all jobs under every policy.
Table full_fates_table(const JobQueueSetup& setup, const std::vector<JobsResult>& results);

/// For people: all jobs of a short list, else of each policy the first that did not end well, and how many
/// more there are. Empty without a row.
std::optional<Table> fates_table(const JobQueueSetup& setup, const std::vector<JobsResult>& results);

/// A line for each of the first few jobs that `metric` is about: for `refused` those that were refused, for
/// waits those that waited longest, …; those that did not end well for figures of all jobs.
std::vector<std::string> jobs_about(const std::string& metric, const JobQueueSetup& setup,
                                    const JobQueueRun& run);

// Of jobs with a tuner or a composer (steered.cpp).

/// Whether some job has one.
bool is_steered(const JobQueueSetup& setup);

/// What the fates say besides where some job has one: promised and most_used in bytes, and of the policy
/// point (final, by parameter; of a composer the last batch), changes, failed_steps, samples; null where a
/// job has none or never began.
Json steered_fate(const JobQueueSetup& setup, const JobRecord& record, std::size_t job);

/// "batch 24, lq 32": such a point, for people.
std::string point_text(const Json& point);

/// The moments of every such job: what its policy moves, and [time_s, step, event, point, reason] in the
/// order of the run; events are start, change and failure.
Json courses_json(const JobQueueSetup& setup, const JobQueueRun& run);
std::string courses_csv(const JobQueueSetup& setup, const JobQueueRun& run);

/// Each of them without its time, a line; and of each job what it trained on in the end.
std::vector<std::string> course_lines(const JobQueueSetup& setup, const JobQueueRun& run);

/// For people: where each of them ended; at most 24 rows. Empty where there is none.
std::optional<Table> steered_table(const JobQueueSetup& setup, const std::vector<JobsResult>& results);

/// What each job held of `card`, one above the other in the order of their starts: a box for each stretch
/// without a change. The run must have kept its moments.
std::vector<QueueBar> held_bars(const JobQueueRun& run, CardId card);

/// When steps of jobs on `card` ran out of memory, and when jobs were killed for it.
std::vector<SimTime> failures_on(const JobQueueRun& run, CardId card);

/// A curve for each parameter of each job with a tuner, and for the batches of each with a composer.
std::vector<QueueCurve> parameter_curves(const JobQueueSetup& setup, const JobQueueRun& run);

/// A time with three digits and a unit; "-" where it is not a number.
std::string duration(double seconds);

/// `trace_files` gives the files written for a label, where there are some.
Json jobs_json(const JobsScenario& scenario, const std::vector<JobsResult>& results,
               const std::map<std::string, std::vector<std::string>>& trace_files = {});

/// Queues side by side: who was on which card when, how many waited. The runs must have kept their moments.
/// Of one policy at most 64 cards and some 4,000 stays, but every one that ran out of memory.
Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head);

}  // namespace vramlab
