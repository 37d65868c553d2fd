#include "lab/failure_trace.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace vramlab {
namespace {

constexpr std::size_t kBefore = 2;  // lines shown before and after the one it is about
constexpr std::size_t kMostJobs = 5;

using Records = std::vector<IterationRecord>;

// The n-th failed step or change; where there are fewer the last one; the run's last step if there is none.
template <class Is>
std::size_t nth(const Records& records, std::int64_t n, const Is& is) {
  std::size_t found = records.size() - 1;
  for (std::size_t i = 0; i < records.size() && n > 0; ++i) {
    if (!is(records[i])) continue;
    found = i;
    --n;
  }
  return found;
}

bool failed(const IterationRecord& record) { return record.result == StepResult::oom; }
bool changed(const IterationRecord& record) { return !record.delta.empty(); }

std::size_t place_of(const Expectation& expectation, const Records& records) {
  using Subject = Expectation::Subject;
  const std::string_view name = expectation.name;
  constexpr std::int64_t kLast = INT64_MAX;
  switch (expectation.subject) {
    case Subject::oom:
      return nth(records, expectation.number, failed);
    case Subject::adjustment:
      return nth(records, expectation.number, changed);
    case Subject::final_value:
      return nth(records, kLast, changed);
    case Subject::metric:
      break;
  }
  if (name.find("oom") != std::string_view::npos) return nth(records, 1, failed);
  if (name.find("peak") == std::string_view::npos && name.find("headroom") == std::string_view::npos) {
    return nth(records, kLast, changed);
  }
  const auto highest = std::max_element(records.begin(), records.end(),
                                        [](const IterationRecord& a, const IterationRecord& b) {
                                          return a.step_peak_allocated < b.step_peak_allocated;
                                        });
  return static_cast<std::size_t>(highest - records.begin());
}

std::string line_of(const IterationRecord& record, const ParameterSpace& space) {
  std::string text = fmt::format("iteration {}:", record.iteration);
  for (std::size_t i = 0; i < record.point.size(); ++i) {
    text += fmt::format(" {} {}", space.parameters[i].name, record.point[i]);
  }
  text += fmt::format(", peak {}, reserved {}", format_bytes(record.step_peak_allocated),
                      format_bytes(record.step_peak_reserved));
  if (failed(record)) text += ", OOM";
  if (changed(record)) text += fmt::format(", then {:+d}", fmt::join(record.delta, ", "));
  return text + (record.reason.empty() ? "" : " (" + record.reason + ")");
}

}  // namespace

std::vector<std::string> iterations_around(const Expectation& expectation, const Scenario& scenario,
                                           const TrainingRun& run) {
  if (run.iterations.empty()) return {};
  const std::size_t at = place_of(expectation, run.iterations);
  std::vector<std::string> lines;
  for (std::size_t i = at - std::min(at, kBefore); i < std::min(at + kBefore + 1, run.iterations.size());
       ++i) {
    lines.push_back((i == at ? "> " : "  ") + line_of(run.iterations[i], scenario.setup.bounds));
  }
  if (!run.ended_early.empty()) lines.push_back("  ended early: " + run.ended_early);
  return lines;
}

std::vector<std::string> jobs_to_look_at(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::vector<std::size_t> order(run.jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto completed = [&](std::size_t i) { return run.jobs[i].outcome == JobOutcome::completed; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (completed(a) != completed(b)) return completed(b);
    return completed(a) ? run.jobs[a].waited > run.jobs[b].waited : run.jobs[a].end < run.jobs[b].end;
  });
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(order.size(), kMostJobs); ++i) {
    const JobRecord& job = run.jobs[order[i]];
    lines.push_back(fmt::format("  {}: arrived at {:.1f} s, waited {:.1f} s, {} at {:.1f} s, {} OOMs{}",
                                setup.jobs[order[i]].name, to_seconds(setup.jobs[order[i]].arrival),
                                to_seconds(job.waited), outcome_name(job.outcome), to_seconds(job.end),
                                job.ooms, job.reason.empty() ? "" : " (" + job.reason + ")"));
  }
  return lines;
}

}  // namespace vramlab
