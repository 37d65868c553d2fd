// What the tuners and composers of jobs did: figures, moments, and the picture of memory and parameters over
// time.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/csv.hpp"
#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostSteered = 24;  // rows for people

// What the policy of a job moves: parameters of its model, or the size of its batches.
std::vector<std::string> parameters_of(const JobSpec& job) {
  if (job.composer) return {"batch"};
  std::vector<std::string> names;
  for (const Parameter& parameter : job.tuner->bounds.parameters) names.push_back(parameter.name);
  return names;
}

Json named_point(const JobSpec& job, const Point& point) {
  Json json = Json::object();
  const std::vector<std::string> names = parameters_of(job);
  for (std::size_t i = 0; i < point.size(); ++i) json[names[i]] = point[i];
  return json;
}

const std::string& policy_of(const JobSpec& job) { return job.tuner ? job.tuner->name : job.composer->name; }

std::string_view event_name(TunedMoment::Kind kind) {
  using Kind = TunedMoment::Kind;
  return kind == Kind::start ? "start" : kind == Kind::change ? "change" : "failure";
}

// Calls `visit(number, job, tuning)` for every job with a tuner or a composer that began.
template <class Visit>
void each_steered(const JobQueueSetup& setup, const JobQueueRun& run, const Visit& visit) {
  for (std::size_t i = 0; i < run.jobs.size(); ++i) {
    if (run.jobs[i].tuning) visit(i, setup.jobs[i], *run.jobs[i].tuning);
  }
}

}  // namespace

bool is_steered(const JobQueueSetup& setup) {
  return std::ranges::any_of(setup.jobs, [](const JobSpec& job) { return job.tuner || job.composer; });
}

Json steered_fate(const JobQueueSetup& setup, const JobRecord& record, std::size_t job) {
  const bool started = record.starts > 0;
  Json fate{{"promised", started ? Json(record.need) : Json()},
            {"most_used", started ? Json(record.most_used) : Json()},
            {"point", nullptr},
            {"changes", nullptr},
            {"failed_steps", nullptr},
            {"samples", nullptr}};
  if (!record.tuning) return fate;
  const JobTuning& tuning = *record.tuning;
  fate["point"] = named_point(setup.jobs[job], tuning.course.back().point);
  fate["changes"] = tuning.changes;
  fate["failed_steps"] = tuning.failed_steps;
  fate["samples"] = tuning.samples;
  return fate;
}

std::string point_text(const Json& point) {
  std::string text;
  for (const auto& [name, value] : point.items()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value.dump());
  }
  return text;
}

Json courses_json(const JobQueueSetup& setup, const JobQueueRun& run) {
  Json list = Json::array();
  each_steered(setup, run, [&](std::size_t, const JobSpec& job, const JobTuning& tuning) {
    Json moments = Json::array();
    for (const TunedMoment& one : tuning.course) {
      moments.push_back({to_seconds(one.time), one.step, event_name(one.kind), one.point, one.reason});
    }
    list.push_back({{"name", job.name},
                    {"policy", policy_of(job)},
                    {"parameters", parameters_of(job)},
                    {"course", std::move(moments)}});
  });
  return list;
}

std::string courses_csv(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::string text = "name,time_s,step,event,point,reason\n";
  each_steered(setup, run, [&](std::size_t, const JobSpec& job, const JobTuning& tuning) {
    for (const TunedMoment& one : tuning.course) {
      text += fmt::format("{},{},{},{},{},{}\n", csv_cell(job.name), Json(to_seconds(one.time)).dump(),
                          one.step, event_name(one.kind), csv_cell(point_text(named_point(job, one.point))),
                          csv_cell(one.reason));
    }
  });
  return text;
}

std::vector<std::string> course_lines(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::vector<std::string> lines;
  each_steered(setup, run, [&](std::size_t, const JobSpec& job, const JobTuning& tuning) {
    for (const TunedMoment& one : tuning.course) {
      lines.push_back(fmt::format("{}: {} at {} after step {}", job.name, event_name(one.kind),
                                  point_text(named_point(job, one.point)), one.step));
    }
    lines.push_back(
        fmt::format("{}: {} samples, {} failed steps", job.name, tuning.samples, tuning.failed_steps));
  });
  return lines;
}

std::optional<Table> steered_table(const JobQueueSetup& setup, const std::vector<JobsResult>& results) {
  Table table{{left("policy"), left("job"), left("ended at"), "changes", "failed steps", "samples",
               "promised", "most used"}};
  std::size_t rows = 0;
  for (const JobsResult& result : results) {
    each_steered(setup, result.run, [&](std::size_t i, const JobSpec& job, const JobTuning& tuning) {
      if (++rows > kMostSteered) return;
      const JobRecord& record = result.run.jobs[i];
      table.add_row({result.label, job.name, point_text(named_point(job, tuning.course.back().point)),
                     std::to_string(tuning.changes), std::to_string(tuning.failed_steps),
                     std::to_string(tuning.samples), format_bytes(record.need),
                     format_bytes(record.most_used)});
    });
  }
  if (rows > kMostSteered) {
    table.add_row({"", fmt::format("{} more", rows - kMostSteered), "", "", "", "", "", ""});
  }
  return rows > 0 ? std::optional{std::move(table)} : std::nullopt;
}

namespace {

/// Boxes of one card, drawn as time goes on.
class HeldBoxes {
 public:
  void change(const HoldingMoment& moment) {
    const auto at = std::ranges::find(jobs_, moment.job, &Held::job);
    if (at != jobs_.end()) {
      at->used = moment.used;
    } else if (moment.used > 0) {
      jobs_.push_back({.job = moment.job, .used = moment.used});
    }
  }

  /// All changes of the moment `now` are made: boxes whose edges moved end here, and others begin.
  void settle(SimTime now) {
    Bytes low = 0;
    for (Held& held : jobs_) {
      const Bytes used = std::exchange(low, low + held.used);
      if (held.low == used && held.high == low) continue;
      close(held, now);
      held.low = used;
      held.high = low;
      held.since = now;
    }
    std::erase_if(jobs_, [](const Held& held) { return held.used == 0; });
  }

  /// All boxes; those that did not end end here.
  std::vector<QueueBar> take(SimTime end) {
    for (const Held& held : jobs_) close(held, end);
    return std::move(boxes_);
  }

 private:
  struct Held {
    JobId job = 0;
    Bytes used = 0;
    Bytes low = 0;
    Bytes high = 0;
    SimTime since{0};
  };

  void close(const Held& held, SimTime now) {
    if (held.high > held.low && now > held.since) {
      boxes_.push_back(
          {.from = held.since, .to = now, .memory = held.high - held.low, .job = held.job, .low = held.low});
    }
  }

  std::vector<Held> jobs_;  // in the order in which they began to hold memory
  std::vector<QueueBar> boxes_;
};

}  // namespace

std::vector<QueueBar> held_bars(const JobQueueRun& run, CardId card) {
  HeldBoxes boxes;
  SimTime now{0};
  for (const HoldingMoment& moment : run.holdings) {
    if (moment.card != card) continue;
    if (moment.time > now) boxes.settle(std::exchange(now, moment.time));
    boxes.change(moment);
  }
  boxes.settle(now);
  return boxes.take(run.end);
}

std::vector<SimTime> failures_on(const JobQueueRun& run, CardId card) {
  std::vector<SimTime> times;
  for (const JobStay& stay : run.stays) {
    if (std::ranges::find(stay.cards, card) == stay.cards.end()) continue;
    if (stay.ran_out) times.push_back(stay.to);
    if (!run.jobs[stay.job].tuning) continue;
    for (const TunedMoment& one : run.jobs[stay.job].tuning->course) {
      const bool during = one.time >= stay.from && one.time <= stay.to;
      if (one.kind == TunedMoment::Kind::failure && during) times.push_back(one.time);
    }
  }
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

std::vector<QueueCurve> parameter_curves(const JobQueueSetup& setup, const JobQueueRun& run) {
  std::vector<QueueCurve> curves;
  each_steered(setup, run, [&](std::size_t i, const JobSpec& job, const JobTuning& tuning) {
    const std::vector<std::string> names = parameters_of(job);
    for (std::size_t p = 0; p < names.size(); ++p) {
      // In one moment an attempt may fail and end, and the next one begin.
      std::vector<std::tuple<SimTime, int, double>> moments;
      for (const TunedMoment& one : tuning.course) {
        const int order = one.kind == TunedMoment::Kind::start ? 2 : 0;
        moments.emplace_back(one.time, order, static_cast<double>(one.point[p]));
      }
      for (const JobStay& stay : run.stays) {
        if (stay.job == i) moments.emplace_back(stay.to, 1, std::nan(""));
      }
      std::ranges::stable_sort(moments, {}, [](const auto& one) {
        return std::pair{std::get<SimTime>(one), std::get<int>(one)};
      });
      QueueCurve curve{.name = job.name + ": " + names[p], .parameter = names[p], .job = i, .number = p};
      for (const auto& [time, order, value] : moments) {
        if (!curve.values.empty() && curve.values.back().first == time) curve.values.pop_back();
        curve.values.emplace_back(time, value);
      }
      curves.push_back(std::move(curve));
    }
  });
  return curves;
}

}  // namespace vramlab
