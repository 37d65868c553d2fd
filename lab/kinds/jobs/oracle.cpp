// The best fixed choice for jobs that have tuners and composers, under the policies of the queue.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/jobs/spec.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostChosen = 4;  // jobs in the line about it

/// One parameter of one job's tuner, or the samples that a composer's batch may have.
struct JobDial {
  std::size_t job = 0;
  std::size_t parameter = 0;  ///< of a tuner
};

/// Everything that is fixed: the policy of the queue, then the dials of the jobs.
class FixedQueue {
 public:
  explicit FixedQueue(const JobsScenario& scenario) : scenario_(scenario) {
    places_.push_back({.count = std::ssize(scenario.policies), .in_order = false});
    for (std::size_t i = 0; i < scenario.setup.jobs.size(); ++i) {
      const JobSpec& job = scenario.setup.jobs[i];
      if (job.composer) add({i, 0}, std::ssize(batch_limits(*job.composer)), "composers");
      if (!job.tuner) continue;
      const auto& bounds = job.tuner->bounds.parameters;
      for (std::size_t p = 0; p < bounds.size(); ++p)
        add({i, p}, bounds[p].high - bounds[p].low + 1, "tuners " + bounds[p].name);
    }
  }

  [[nodiscard]] const std::vector<FixedDial>& dials() const { return places_; }
  [[nodiscard]] const PolicyEntry& policy(const FixedPlaces& places) const {
    return scenario_.policies[static_cast<std::size_t>(places.front())];
  }

  [[nodiscard]] JobQueueSetup setup(const FixedPlaces& places) const {
    JobQueueSetup setup = scenario_.setup;
    if (setup.steps) setup.steps->make_card = nullptr;
    for (std::size_t i = 0; i < dials_.size(); ++i) {
      JobSpec& job = setup.jobs[dials_[i].job];
      if (job.composer) {
        job.composer->limits.most_samples = limit(i, places);
        continue;
      }
      Parameter& range = job.tuner->bounds.parameters[dials_[i].parameter];
      range.low = range.high = range.low + places[i + 1];
      job.tuner->make = [known = scenario_.known, bounds = job.tuner->bounds] {
        return known->tuners.make({.use = "fixed", .profile = {}, .options = {}, .where = {}}, bounds);
      };
    }
    return setup;
  }

  /// What is fixed of each job, by name: {"batch": 24, "lq": 96}, {"most_samples": 8 | null}.
  [[nodiscard]] Json points(const FixedPlaces& places) const {
    Json list = Json::array();
    for (std::size_t i = 0; i < dials_.size(); ++i) {
      const JobSpec& job = scenario_.setup.jobs[dials_[i].job];
      if (i == 0 || dials_[i].job != dials_[i - 1].job)
        list.push_back({{"name", job.name}, {"point", Json::object()}});
      Json& point = list.back()["point"];
      if (job.composer) {
        const auto most = limit(i, places);
        point["most_samples"] = most ? Json(*most) : Json(nullptr);
      } else {
        const Parameter& range = job.tuner->bounds.parameters[dials_[i].parameter];
        point[range.name] = range.low + places[i + 1];
      }
    }
    return list;
  }

 private:
  void add(const JobDial& dial, std::int64_t count, std::string group) {
    dials_.push_back(dial);
    places_.push_back({.count = count, .group = std::move(group)});
  }

  // Doubling up to the data set; the last place is no limit.
  static std::vector<std::int64_t> batch_limits(const JobComposer& composer) {
    std::vector<std::int64_t> limits;
    for (std::int64_t most = 1; most < std::ssize(composer.data.samples); most *= 2) limits.push_back(most);
    limits.push_back(0);
    return limits;
  }

  [[nodiscard]] std::optional<std::int64_t> limit(std::size_t dial, const FixedPlaces& places) const {
    const auto limits = batch_limits(*scenario_.setup.jobs[dials_[dial].job].composer);
    const std::int64_t most = limits[static_cast<std::size_t>(places[dial + 1])];
    return most > 0 ? std::optional{most} : std::nullopt;
  }

  const JobsScenario& scenario_;
  std::vector<JobDial> dials_;
  std::vector<FixedDial> places_;  ///< the policy's, then one for each of `dials_`
};

JobsResult run_fixed(const JobsScenario& scenario, const PolicyEntry& entry, const JobQueueSetup& setup) {
  const auto policy = scenario.known->admitters.make(entry.choice);
  JobsResult result{named_after(entry), run_job_queue(setup, *policy)};
  result.metrics = jobs_metrics(setup, result.run);
  return result;
}

// Empty for a run that is not safe: with an OOM, or one that ended early.
FixedRank rank_by(QueueObjective objective, const JobsResult& result) {
  const Figures figures{result.metrics};
  if (figures["oom_kills"] > 0 || figures["failed_steps"] > 0 || !result.run.ended_early.empty())
    return std::nullopt;
  const double figure = objective == QueueObjective::completion      ? figures["mean_completion_s"]
                        : objective == QueueObjective::samples_per_s ? -figures["samples_per_s"]
                                                                     : -figures["pixels_per_s"];
  return std::vector{figures["jobs"] - figures["completed"], std::isnan(figure) ? HUGE_VAL : figure};
}

std::string choice_text(const std::string& policy, const Json& points) {
  std::string text = policy;
  for (std::size_t i = 0; i < std::min(points.size(), kMostChosen); ++i) {
    const Json& point = points[i]["point"];
    const std::string at =
        point.contains("most_samples")
            ? (point["most_samples"].is_null() ? "as it composes"
                                               : "at most " + point["most_samples"].dump() + " samples")
            : point_text(point);
    text += fmt::format("{} {}: {}", i == 0 ? " with" : ";", points[i]["name"].get<std::string>(), at);
  }
  if (points.size() > kMostChosen) text += fmt::format("; {} more jobs", points.size() - kMostChosen);
  return text;
}

}  // namespace

std::optional<JobsResult> find_queue_oracle(const JobsScenario& scenario, unsigned threads) {
  if (scenario.objective == QueueObjective::none) return std::nullopt;
  const FixedQueue fixed{scenario};
  const auto best = best_fixed_choice(fixed.dials(), threads, [&](const FixedPlaces& places) {
    JobQueueSetup setup = fixed.setup(places);
    setup.keep_moments = false;
    return rank_by(scenario.objective, run_fixed(scenario, fixed.policy(places), setup));
  });
  if (!best) return std::nullopt;
  const PolicyEntry& entry = fixed.policy(best->places);
  JobsResult oracle = run_fixed(scenario, entry, fixed.setup(best->places));
  const Json points = fixed.points(best->places);
  oracle.label = oracle.policy = "oracle";
  oracle.profile.clear();
  oracle.oracle = OracleNote{.choice = choice_text(entry.label, points),
                             .runs = best->runs,
                             .tried_all = best->tried_all,
                             .fixed = {{"policy", entry.label}, {"jobs", points}}};
  return oracle;
}

void add_regrets(const JobsScenario& scenario, const JobsResult& oracle, std::vector<JobsResult>& results) {
  const std::vector<Metric> best = oracle.metrics;  // it may be one of the results
  for (JobsResult& one : results) {
    one.metrics = jobs_metrics(scenario.setup, one.run, {scenario.objective, &best});
  }
}

}  // namespace vramlab
