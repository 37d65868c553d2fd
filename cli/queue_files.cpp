#include "cli/queue_files.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/run_files.hpp"
#include "report/output_file.hpp"
#include "report/queue_picture.hpp"
#include "trace/queue_trace.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostCards = 16;  // of one policy in a picture

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

std::map<std::string, std::vector<std::string>> write_queue_traces(const JobsScenario& scenario,
                                                                   const std::vector<JobsResult>& results,
                                                                   const std::string& folder) {
  std::vector<std::string> labels;
  for (const JobsResult& result : results) labels.push_back(result.label);
  const auto bases = trace_bases(labels, folder);
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
    for (CardId card = 0; card < std::min(cards, kMostCards); ++card) {
      panels.push_back(panel_of(scenario.setup, result.run, card));
      panels.back().title = cards == 1 ? result.label : fmt::format("{}, card {}", result.label, card);
      if (card + 1 == kMostCards && cards > kMostCards) {
        panels.back().title += fmt::format(" ({} more are not drawn)", cards - kMostCards);
      }
    }
  }
  draw_queue_picture(title, panels, file);
}

}  // namespace vramlab
