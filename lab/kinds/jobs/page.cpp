#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/jobs/view.hpp"
#include "lab/page/drawing.hpp"
#include "recordings/runs/run_trace.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostStays = 4000;    // of one policy; about a bar a pixel
constexpr std::size_t kMostCards = 64;      // of one policy; more than a screen
constexpr std::size_t kMostMoments = 4000;  // of the curve of waiting jobs

std::vector<std::string> card_names(const ClusterSetup& cluster) {
  std::vector<std::string> names;
  for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
    for (std::uint32_t i = 0; i < cluster.nodes[node].count && names.size() < kMostCards; ++i) {
      names.push_back(cluster.nodes.size() > 1 ? fmt::format("node {}, card {}", node, i)
                                               : fmt::format("card {}", i));
    }
  }
  return names;
}

/// One job on one card for a while: a bar of the chart.
struct Bar {
  const JobStay* stay = nullptr;
  CardId card = 0;
};

// What is left out is the shortest; a stay that ran out of memory is always there.
std::vector<Bar> drawn_bars(const JobQueueRun& run, std::size_t cards, std::size_t& omitted) {
  std::vector<Bar> bars;
  std::size_t all = 0;
  for (const JobStay& stay : run.stays) {
    for (const CardId card : stay.cards) {
      ++all;
      if (card < cards) bars.push_back({&stay, card});
    }
  }
  if (bars.size() > kMostStays) {
    const auto rank = [](const Bar& bar) {  // all stays lie in one list: the place in it decides ties
      return std::tuple{!bar.stay->ran_out, bar.stay->from - bar.stay->to, bar.stay, bar.card};
    };
    std::sort(bars.begin(), bars.end(), [&](const Bar& a, const Bar& b) { return rank(a) < rank(b); });
    const auto ran_out =
        std::partition_point(bars.begin(), bars.end(), [](const Bar& bar) { return bar.stay->ran_out; });
    bars.resize(std::max(kMostStays, static_cast<std::size_t>(ran_out - bars.begin())));
    std::sort(bars.begin(), bars.end(), [](const Bar& a, const Bar& b) {
      return std::tuple{a.stay, a.card} < std::tuple{b.stay, b.card};
    });
  }
  omitted = all - bars.size();
  return bars;
}

/// Names of the jobs that are drawn, each once.
class JobNames {
 public:
  explicit JobNames(const std::vector<JobSpec>& jobs) : jobs_(jobs) {}

  std::size_t place(std::uint32_t job) {
    const auto [found, fresh] = places_.try_emplace(job, places_.size());
    if (fresh) names_.push_back(jobs_[job].name.empty() ? fmt::format("job {}", job) : jobs_[job].name);
    return found->second;
  }
  [[nodiscard]] const Json& names() const { return names_; }

 private:
  const std::vector<JobSpec>& jobs_;
  std::map<std::uint32_t, std::size_t> places_;
  Json names_ = Json::array();
};

Json waiting_json(const std::vector<QueueMoment>& moments) {
  Json list = Json::array();
  const auto curve =
      thinned_curve(moments.size(), curve_stride(moments.size(), kMostMoments), [&](std::size_t i) {
        return CurvePoint{moments[i].time.count(), moments[i].pending};
      });
  for (const CurvePoint& point : curve) list.push_back({to_seconds(SimTime{point.x}), point.value});
  return list;
}

Json policy_json(const JobsResult& result, const std::vector<std::string>& cards, JobNames& names) {
  Json json;
  json["label"] = result.label;
  if (!result.run.ended_early.empty()) json["ended_early"] = result.run.ended_early;
  json["metrics"] = figures_json(result.metrics);
  json["cards"] = cards;
  std::size_t omitted = 0;
  json["stays"] = Json::array();
  for (const Bar& bar : drawn_bars(result.run, cards.size(), omitted)) {
    json["stays"].push_back({names.place(bar.stay->job), bar.card, to_seconds(bar.stay->from),
                             to_seconds(bar.stay->to), bar.stay->need, bar.stay->most_used,
                             bar.stay->ran_out});
  }
  json["omitted"] = omitted;
  json["waiting"] = waiting_json(result.run.monitored);
  return json;
}

constexpr std::size_t kMostDrawn = 16;  // cards of one policy in a picture

QueuePanel panel_of(const JobQueueSetup& setup, const JobQueueRun& run, CardId card) {
  QueuePanel panel;
  for (const JobStay& stay : run.stays) {
    if (std::find(stay.cards.begin(), stay.cards.end(), card) == stay.cards.end()) continue;
    // One that ran out at once used nothing; what it wanted is shown.
    const Bytes memory = stay.ran_out ? std::max(stay.most_used, stay.need) : stay.most_used;
    panel.bars.push_back({stay.from, stay.to, memory, stay.job, stay.ran_out});
  }
  for (const CardMoment& moment : run.moments) {
    if (moment.card != card) continue;
    panel.levels.push_back({moment.time, moment.promised, moment.used + moment.foreign});
  }
  for (const CardNode& node : setup.cluster.nodes) {
    if (card >= node.first && card < node.first + node.count) {
      panel.total = setup.cluster.pools[node.pool].total;
    }
  }
  return panel;
}

}  // namespace

Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head) {
  Json json = begun_section("jobs", scenario.name, head);
  json["description"] = scenario.description;
  json["notes"] = scenario.notes;
  json["metrics"] = metrics_json(jobs_metric_table());
  const auto cards = card_names(scenario.setup.cluster);
  JobNames names{scenario.setup.jobs};
  SimTime begin = SimTime::max();
  SimTime end{0};
  json["policies"] = Json::array();
  for (const JobsResult& result : results) {
    json["policies"].push_back(policy_json(result, cards, names));
    begin = std::min(begin, result.run.begin);
    end = std::max(end, result.run.end);
  }
  json["jobs"] = names.names();
  json["span"] = {results.empty() ? 0.0 : to_seconds(begin), to_seconds(end)};
  return json;
}

std::map<std::string, std::vector<std::string>> write_queue_traces(const JobsScenario& scenario,
                                                                   const std::vector<JobsResult>& results,
                                                                   const std::string& folder) {
  std::vector<std::string> labels;
  for (const JobsResult& result : results) labels.push_back(result.label);
  const auto bases = file_bases(labels, folder);
  std::map<std::string, std::vector<std::string>> files;
  for (const JobsResult& result : results) {
    const auto write = [&](const char* ending, const std::string& text) {
      files[result.label].push_back(bases.at(result.label) + ending);
      write_file(files[result.label].back(), text);
    };
    const auto& jobs = scenario.setup.jobs;
    write(".jsonl", cards_jsonl(result.run));
    write(".csv", cards_csv(result.run));
    write(".jobs.csv", stays_csv(jobs, result.run));
    write(".monitor.csv", monitor_csv(result.run));
    write(".perfetto.json", queue_perfetto(scenario.name + ": " + result.label, jobs, result.run));
  }
  return files;
}

void draw_queue(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                const std::string& title, const std::string& file) {
  std::size_t cards = 0;
  for (const CardNode& node : scenario.setup.cluster.nodes) cards += node.count;
  std::vector<QueuePanel> panels;
  for (const JobsResult& result : results) {
    for (CardId card = 0; card < std::min(cards, kMostDrawn); ++card) {
      panels.push_back(panel_of(scenario.setup, result.run, card));
      panels.back().title = cards == 1 ? result.label : fmt::format("{}, card {}", result.label, card);
      if (card + 1 == kMostDrawn && cards > kMostDrawn) {
        panels.back().title += fmt::format(" ({} more are not drawn)", cards - kMostDrawn);
      }
    }
  }
  draw_queue_picture(title, panels, file);
}

}  // namespace vramlab
