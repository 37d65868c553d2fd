#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "cli/compare/kinds.hpp"
#include "cli/output/traces.hpp"
#include "lab/kinds/epoch/monitor.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/page/sections.hpp"

namespace vramlab {
namespace {

double metric(const EpochResult& result, const char* name) {
  return find_metric(result.metrics, name).value_or(std::nan(""));
}

std::string percent(double share) { return std::isnan(share) ? "-" : fmt::format("{:.1f} %", 100 * share); }

// Everything trained on, then no OOM, then throughput.
std::string verdict(const std::vector<EpochResult>& results) {
  if (results.empty()) return "No policy was run.";
  const auto rank = [](const EpochResult& result) {
    return std::tuple{metric(result, "untrained_samples") > 0, metric(result, "ooms") > 0,
                      -metric(result, "samples_per_s")};
  };
  const auto best =
      std::min_element(results.begin(), results.end(),
                       [&](const EpochResult& a, const EpochResult& b) { return rank(a) < rank(b); });
  const double untrained = metric(*best, "untrained_samples");
  const double ooms = metric(*best, "ooms");
  std::string reserve = ", without an OOM";
  if (ooms > 0) reserve = fmt::format(", though {:.0f} batches ran out of memory (none ran without)", ooms);
  if (untrained > 0) reserve = fmt::format(", though {:.0f} samples were left out (as with all)", untrained);
  return fmt::format("Best: {}, {:.1f} samples/s{}.", best->label, metric(*best, "samples_per_s"), reserve);
}

std::string shares(const EpochScenario& scenario, const EpochResult& result) {
  std::string text;
  for (std::size_t task = 0; task < scenario.setup.tasks.size(); ++task) {
    text += fmt::format("{}{:.0f}", task ? "/" : "", 100 * result.run.gradient_shares[task]);
  }
  return text;
}

std::string data_shares(const EpochScenario& scenario) {
  std::vector<std::size_t> counts(scenario.setup.tasks.size(), 0);
  for (const Sample& sample : scenario.setup.samples) ++counts[sample.task];
  std::string text;
  for (const std::size_t count : counts) {
    text +=
        fmt::format("{}{:.1f}", text.empty() ? "" : "/",
                    100.0 * static_cast<double>(count) / static_cast<double>(scenario.setup.samples.size()));
  }
  return text;
}

Table results_table(const EpochScenario& scenario, const std::vector<EpochResult>& results) {
  Table table{{{"policy", Table::Align::left},
               {"OOMs"},
               {"left out"},
               {"batches"},
               {"steps"},
               {"effective"},
               {"samples/s"},
               {"budget used"},
               {"peak"},
               {"peak reserved"},
               {"padding"},
               {"error"},
               {"bias"},
               {"unsafe"},
               {fmt::format("gradient {}", fmt::join(scenario.setup.tasks, "/"))}}};
  for (const EpochResult& result : results) {
    const auto count = [&](const char* name) { return fmt::format("{:.0f}", metric(result, name)); };
    const auto share = [&](const char* name) { return percent(metric(result, name)); };
    const std::string low = count("smallest_step");
    const std::string high = count("largest_step");
    table.add_row({result.label, count("ooms"), count("untrained_samples"), count("batches"),
                   count("optimizer_steps"), low == high ? low : low + "-" + high,
                   fmt::format("{:.1f}", metric(result, "samples_per_s")), share("budget_use"),
                   share("peak_allocated_ratio"), share("peak_reserved_ratio"), share("padding_share"),
                   share("predictor_error"), share("predictor_bias"), share("predictor_unsafe_share"),
                   shares(scenario, result)});
  }
  return table;
}

std::string head(const EpochScenario& scenario) {
  const ProcessSetup& process = scenario.setup.process;
  return fmt::format("{}: {} samples ({} %), {} epoch{}, effective batch {}, on {}{}", scenario.name,
                     scenario.setup.samples.size(), data_shares(scenario), scenario.setup.epochs,
                     scenario.setup.epochs == 1 ? "" : "s", scenario.setup.target_batch, scenario.gpu,
                     process.allocator.limit ? " limited to " + format_bytes(*process.allocator.limit) : "");
}

/// Hands every batch on to others.
class BatchRelay : public BatchListener {
 public:
  void add(BatchListener* listener) {
    if (listener != nullptr) listeners_.push_back(listener);
  }
  [[nodiscard]] bool empty() const { return listeners_.empty(); }

  void batch_ends(const BatchRecord& batch) override {
    for (BatchListener* listener : listeners_) listener->batch_ends(batch);
  }
  void epoch_ends(std::int64_t epoch, const EpochTotals& totals) override {
    for (BatchListener* listener : listeners_) listener->epoch_ends(epoch, totals);
  }

 private:
  std::vector<BatchListener*> listeners_;
};

EpochResult run_one(const EpochScenario& scenario, const PolicyEntry& entry, const std::string& trace_folder,
                    BatchListener* history, std::vector<std::string>& files) {
  BatchRelay relay;
  relay.add(history);
  std::optional<EpochMonitor> monitor;
  if (!trace_folder.empty()) {
    monitor.emplace(scenario, entry.label, trace_folder);
    relay.add(&*monitor);
  }
  EpochResult result = run_composer(scenario, entry, relay.empty() ? nullptr : &relay);
  if (!monitor) return result;
  const auto written = monitor->finish(result);
  files.insert(files.end(), written.begin(), written.end());
  return result;
}

Json compare(const EpochScenario& scenario, const ComparisonQuestion& question, Output& output) {
  const auto& labels = question.labels;
  std::vector<EpochResult> results;
  std::vector<BatchHistory> histories;
  std::vector<std::string> files;
  std::map<std::string, std::string> folders;  // by label
  if (!question.trace_dir.empty()) {
    std::vector<std::string> all;
    for (const PolicyEntry& entry : scenario.policies) all.push_back(entry.label);
    folders = trace_bases(all, question.trace_dir);
  }
  for (const PolicyEntry& entry : scenario.policies) {
    if (!labels.empty() && std::find(labels.begin(), labels.end(), entry.label) == labels.end()) continue;
    histories.emplace_back();
    results.push_back(
        run_one(scenario, entry, folders[entry.label], question.report ? &histories.back() : nullptr, files));
  }
  output.line(verdict(results));
  output.line(head(scenario));
  for (const std::string& note : scenario.notes) output.line(note);
  output.line("");
  output.table(results_table(scenario, results));
  for (const EpochResult& result : results) {
    if (!result.run.ended_early.empty()) {
      output.line(fmt::format("{} ended early: {}.", result.label, result.run.ended_early));
    }
  }
  for (const std::string& file : files) output.wrote(file);
  if (output.report().wanted()) {
    output.report().add(epoch_section(scenario, results, histories, {verdict(results), head(scenario)}));
  }
  return epoch_json(scenario, results);
}

}  // namespace

ReadyComparison ready_epoch_comparison(const ScenarioDocument& document, const ComparisonQuestion& question) {
  const auto scenario = std::make_shared<const EpochScenario>(read_epoch(document));
  require_labels(*scenario, question.labels);
  return [=](Output& output) { return compare(*scenario, question, output); };
}

}  // namespace vramlab
