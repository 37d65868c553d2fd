#include "lab/kinds/training/view.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "lab/page/sections.hpp"
#include "lab/page/thinning.hpp"

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

}  // namespace

Json jobs_section(const JobsScenario& scenario, const std::vector<JobsResult>& results,
                  const SectionHead& head) {
  Json json;
  json["kind"] = "jobs";
  json["title"] = scenario.name;
  json["verdict"] = head.verdict;
  json["head"] = head.head;
  json["description"] = scenario.description;
  json["notes"] = scenario.notes;
  json["metrics"] = metrics_json("jobs");
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

}  // namespace vramlab
