#include "cli/output/traces.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "core/error.hpp"
#include "recordings/runs/perfetto.hpp"
#include "recordings/runs/run_trace.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace fs = std::filesystem;

namespace {

// A file's name for a label, which may hold anything.
std::string file_name_of(const std::string& label) {
  std::string name;
  for (const char c : label.substr(0, 100)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name;
}

}  // namespace

std::map<std::string, std::string> trace_bases(const std::vector<std::string>& labels,
                                               const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw InputError(folder, "cannot be made a folder: " + failed.message() + ".");
  std::map<std::string, std::string> bases;
  std::set<std::string> taken;
  for (const std::string& label : labels) {
    std::string name = file_name_of(label);
    while (!taken.insert(name).second) name += '-';  // two labels may differ only in what a name leaves out
    bases[label] = (fs::path{folder} / name).string();
  }
  return bases;
}

std::map<std::string, std::string> write_traces(const TrainingScenario& scenario,
                                                const Comparison& comparison, const std::string& folder) {
  std::vector<std::string> labels;
  for (const PolicyResult& result : comparison.policies) labels.push_back(result.label);
  std::map<std::string, std::string> files = trace_bases(labels, folder);
  for (const PolicyResult& result : comparison.policies) {
    std::string& file = files[result.label];
    file += ".jsonl";
    write_trace(scenario.setup.bounds, result.run.iterations, file);
  }
  return files;
}

void require_trace_name(const std::string& file) {
  if (file.empty() || file.ends_with(".jsonl") || file.ends_with(".csv") ||
      file.ends_with(".perfetto.json")) {
    return;
  }
  throw InputError(file, "a trace's name must end in .jsonl, .csv or .perfetto.json.");
}

void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title) {
  require_trace_name(file);
  if (file.ends_with(".perfetto.json")) return write_file(file, trace_perfetto(title, space, records));
  write_file(file, file.ends_with(".csv") ? trace_csv(space, records) : trace_jsonl(space, records));
}

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
