// What became of each job: as JSON and CSV in full, as a table and beside a failed expectation in part.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "core/csv.hpp"
#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

std::string_view state_of(const JobRecord& job) {
  constexpr std::array kStates{"waiting",   "done",   "refused", "timed_out",
                               "timed_out", "killed", "killed",  "killed"};
  static_assert(kStates.size() == static_cast<std::size_t>(JobOutcome::gave_up) + 1);
  return kStates[static_cast<std::size_t>(job.outcome)];
}

bool is_done(const JobRecord& job) { return job.outcome == JobOutcome::completed; }

Json time_or_null(bool known, SimTime time) { return known ? Json(to_seconds(time)) : Json(); }

Json fate_of(const JobQueueSetup& setup, const JobQueueRun& run, std::size_t i) {
  const JobRecord& job = run.jobs[i];
  const bool started = job.starts > 0;
  Json fate{{"name", setup.jobs[i].name},
            {"state", state_of(job)},
            {"cards", job.cards},
            {"submitted_s", to_seconds(setup.jobs[i].arrival)},
            {"started_s", time_or_null(started, job.first_start)},
            {"ended_s", time_or_null(job.outcome != JobOutcome::pending, job.end)},
            {"batch", started ? Json(job.split.batch) : Json()},
            {"accumulation", started ? Json(job.split.accumulation) : Json()},
            {"kills", job.ooms}};
  if (is_steered(setup)) fate.update(steered_fate(setup, job, i));
  fate["reason"] = job.reason;
  return fate;
}

std::string cell_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return point_text(value);
  if (!value.is_array()) return value.dump();
  std::string cards;
  for (const Json& card : value) cards += (cards.empty() ? "" : " ") + card.dump();
  return cards;
}

// Why most of the jobs that did not complete did not, in the words of the first of them; reasons that differ
// in figures alone are one. Of several that are as common the first. Empty where none gives one.
std::string commonest_reason(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::map<std::string, std::vector<std::size_t>> alike;
  const std::vector<std::size_t>* most = nullptr;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    if (is_done(run.jobs[i])) continue;
    ++lost;
    std::string words = run.jobs[i].reason;
    if (words.empty()) continue;
    std::erase_if(words, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    std::vector<std::size_t>& group = alike[words];
    group.push_back(i);
    if (most == nullptr || group.size() > most->size()) most = &group;
  }
  if (most == nullptr) return "";
  return fmt::format(", most often ({} of {}) as {}: \"{}\"", most->size(), lost,
                     setup.jobs[most->front()].name, run.jobs[most->front()].reason);
}

// "3 refused (a, b, c)", the first five by name. Empty where there is none.
std::string named_jobs(const JobQueueSetup& setup, const JobQueueRun& run, std::string_view state) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string> names;
  std::size_t count = 0;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    if (state_of(run.jobs[i]) == state && ++count <= kMostNamed) names.push_back(setup.jobs[i].name);
  }
  if (count == 0) return {};
  if (count > kMostNamed) names.push_back(fmt::format("{} more", count - kMostNamed));
  const std::string_view words = state == "timed_out" ? "timed out"
                                 : state == "waiting" ? "still waiting"
                                                      : state;
  return fmt::format("{} {} ({})", count, words, fmt::join(names, ", "));
}

// Those that did not end well, in the order of the setup, and then those that did.
std::vector<std::size_t> worst_first(const JobQueueRun& run) {
  std::vector<std::size_t> order(run.jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !is_done(run.jobs[i]); });
  return order;
}

// "2 refused, 148 killed": the states of `jobs`.
std::string counted_states(const JobQueueRun& run, std::span<const std::size_t> jobs) {
  std::map<std::string_view, std::size_t> counts;
  for (const std::size_t i : jobs) ++counts[state_of(run.jobs[i])];
  std::string text;
  for (const auto& [state, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
  return text;
}

constexpr std::size_t kShortList = 24;  // rows of all policies: with more, only jobs that did not end well
constexpr std::size_t kMostRows = 5;    // of one policy in a long list

}  // namespace

// Three digits and a unit: the tables are wide enough as it is.
std::string duration(double seconds) {
  const auto text = [](double value, const char* unit) {
    return value < 99.95 ? fmt::format("{:.1f} {}", value, unit) : fmt::format("{:.0f} {}", value, unit);
  };
  if (std::isnan(seconds)) return kNoFigure;
  if (seconds < 120) return text(seconds, "s");
  if (seconds < 7200) return text(seconds / 60, "min");
  if (seconds < 172800) return text(seconds / 3600, "h");
  return text(seconds / 86400, "d");
}

std::string losses_text(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::vector<std::string> lost;
  for (const char* state : {"refused", "timed_out", "killed", "waiting"}) {
    if (std::string text = named_jobs(setup, run, state); !text.empty()) lost.push_back(std::move(text));
  }
  if (!run.ended_early.empty()) lost.push_back("ended early");
  return fmt::format("{}{}", fmt::join(lost, ", "), commonest_reason(setup, run));
}

Json fates_json(const JobQueueSetup& setup, const JobQueueRun& run, std::size_t most) {
  Json list = Json::array();
  std::vector<std::size_t> order = worst_first(run);
  if (order.size() <= most) std::sort(order.begin(), order.end());
  for (const std::size_t i : std::span{order}.first(std::min(most, order.size()))) {
    list.push_back(fate_of(setup, run, i));
  }
  return list;
}

std::string fates_csv(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::string text;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    const Json fate = fate_of(setup, run, i);
    std::string head;
    std::string line;
    for (const auto& [column, value] : fate.items()) {
      head += (head.empty() ? "" : ",") + column;
      line += (line.empty() ? "" : ",") + csv_cell(cell_of(value));
    }
    text += (text.empty() ? head + '\n' : "") + line + '\n';
  }
  return text;
}

Table full_fates_table(const JobQueueSetup& setup, const std::vector<JobsResult>& results) {
  std::vector<Table::Column> columns{left("policy")};
  std::vector<std::vector<std::string>> rows;
  for (const JobsResult& result : results) {
    for (std::size_t i = 0; i < result.run.jobs.size(); ++i) {
      const Json fate = fate_of(setup, result.run, i);
      rows.push_back({result.label});
      for (const auto& [column, value] : fate.items()) {
        if (columns.size() <= fate.size()) columns.push_back(left(column));
        rows.back().push_back(cell_of(value));
      }
    }
  }
  Table table{std::move(columns)};
  for (auto& row : rows) table.add_row(std::move(row));
  return table;
}

std::optional<Table> fates_table(const JobQueueSetup& setup, const std::vector<JobsResult>& results) {
  std::size_t jobs = 0;
  for (const JobsResult& result : results) jobs += result.run.jobs.size();
  const bool all = jobs <= kShortList;
  bool any = false;
  Table table{
      {left("policy"), left("job"), left("state"), "started", "ended", "batch", "kills", left("reason")}};
  for (const JobsResult& result : results) {
    const JobQueueRun& run = result.run;
    std::vector<std::size_t> order = worst_first(run);
    if (all) std::sort(order.begin(), order.end());
    const auto bad = static_cast<std::size_t>(std::ranges::count_if(run.jobs, std::not_fn(is_done)));
    const std::size_t shown = all ? order.size() : std::min(bad, kMostRows);
    for (const std::size_t i : std::span{order}.first(shown)) {
      const JobRecord& job = run.jobs[i];
      const bool started = job.starts > 0;
      const auto time = [](bool known, SimTime at) {
        return duration(known ? to_seconds(at) : std::nan(""));
      };
      std::string batch = started ? std::to_string(job.split.batch) : kNoFigure;
      if (started && job.split.accumulation > 1) batch += fmt::format(" · {}", job.split.accumulation);
      table.add_row({result.label, setup.jobs[i].name, std::string{state_of(job)},
                     time(started, job.first_start), time(job.outcome != JobOutcome::pending, job.end), batch,
                     std::to_string(job.ooms), job.reason});
      any = true;
    }
    if (all || shown == bad) continue;
    const std::string more = counted_states(run, std::span{order}.subspan(shown, bad - shown));
    table.add_row({result.label, fmt::format("{} more", bad - shown), "", "", "", "", "", more});
  }
  return any ? std::optional{std::move(table)} : std::nullopt;
}

namespace {

/// Which jobs a metric is about, and which of them first.
struct Concern {
  bool (*concerns)(const JobRecord&);
  bool by_time = false;  ///< the longest first, else in the order of their ends
};

Concern concern_of(const std::string& metric) {
  const auto is = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::find(names, metric) != names.end();
  };
  if (is({"refused"})) return {[](const JobRecord& job) { return job.outcome == JobOutcome::refused; }};
  if (is({"timeouts"})) return {[](const JobRecord& job) { return state_of(job) == "timed_out"; }};
  if (is({"failed"})) return {[](const JobRecord& job) { return state_of(job) == "killed"; }};
  if (is({"oom_kills", "gpu_hours_wasted"})) return {[](const JobRecord& job) { return job.ooms > 0; }};
  if (is({"mean_completion_s", "p99_completion_s", "mean_slow_down"})) return {is_done, true};
  if (is({"mean_wait_s", "p50_wait_s", "p99_wait_s", "most_pending_jobs"})) {
    return {[](const JobRecord& job) { return job.outcome != JobOutcome::refused; }, true};
  }
  return {[](const JobRecord& job) { return !is_done(job); }};
}

}  // namespace

std::vector<std::string> jobs_about(const std::string& metric, const JobQueueSetup& setup,
                                    const JobQueueRun& run) {
  const Concern concern = concern_of(metric);
  std::vector<std::size_t> jobs;
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    if (concern.concerns(run.jobs[i])) jobs.push_back(i);
  }
  const auto end_of = [&](std::size_t i) {
    return run.jobs[i].outcome == JobOutcome::pending ? run.end : run.jobs[i].end;
  };
  const bool waits = metric.find("wait") != std::string::npos || metric == "most_pending_jobs";
  const auto time_of = [&](std::size_t i) {
    const SimTime in_system = end_of(i) - setup.jobs[i].arrival;
    return waits && run.jobs[i].starts > 0 ? run.jobs[i].waited : in_system;
  };
  std::ranges::stable_sort(jobs, {},
                           [&](std::size_t i) { return concern.by_time ? -time_of(i) : end_of(i); });
  std::vector<std::string> lines;
  for (const std::size_t i : std::span{jobs}.first(std::min(jobs.size(), kMostRows))) {
    const JobRecord& job = run.jobs[i];
    lines.push_back(fmt::format(
        "  {}: arrived at {:.1f} s, waited {:.1f} s, {} at {:.1f} s, {} OOMs{}", setup.jobs[i].name,
        to_seconds(setup.jobs[i].arrival), to_seconds(waits ? time_of(i) : job.waited), state_of(job),
        to_seconds(end_of(i)), job.ooms, job.reason.empty() ? "" : " (" + job.reason + ")"));
  }
  if (jobs.size() > lines.size()) {
    lines.push_back("  and " + counted_states(run, std::span{jobs}.subspan(lines.size())));
  }
  return lines;
}

}  // namespace vramlab
