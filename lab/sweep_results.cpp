#include "lab/sweep_results.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lab/data_files.hpp"
#include "lab/result_json.hpp"
#include "sim/core/csv.hpp"
#include "sim/core/error.hpp"
#include "trace/csv_table.hpp"
#include "trace/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

// FNV-1a, 64 bits.
std::uint64_t hash(std::string_view text, std::uint64_t start = 14695981039346656037ULL) {
  for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return start;
}

/// Hashes of files by their path, each read once.
class FileHashes {
 public:
  std::uint64_t of(const fs::path& file) {
    const auto [place, fresh] = hashes_.try_emplace(file, 0);
    if (fresh) place->second = hash(read_input_file(file));
    return place->second;
  }

 private:
  std::map<fs::path, std::uint64_t> hashes_;
};

// Any text of a scenario may name a file; most name none.
void add_files(const Json& json, const fs::path& scenario, FileHashes& files, std::uint64_t& sum) {
  if (json.is_string()) {
    const auto& name = json.get_ref<const std::string&>();
    if (name.find('.') == std::string::npos || name.size() > 4096) return;
    if (const auto file = find_data_file(name, scenario))
      sum = hash(fmt::format("{:x}", files.of(*file)), sum);
  }
  if (json.is_structured()) {
    for (const Json& inside : json) add_files(inside, scenario, files, sum);
  }
}

Json row_json(const Sweep& sweep, const SweepRun& run, const std::string& key,
              const LabelledFigures& result) {
  Json row;
  row["key"] = key;
  for (std::size_t i = 0; i < sweep.axes.size(); ++i)
    row[sweep.axes[i].name] = sweep.axes[i].values[run.at[i]];
  row["policy"] = result.label;
  row["metrics"] = figures_json(result.metrics);
  return row;
}

// Columns are those that any run has: one without a safe fixed choice has no regret.
std::vector<std::string> metric_names(const SweepResults& results) {
  std::vector<std::string> names;
  for (const auto& run : results) {
    if (!run) continue;
    for (const LabelledFigures& result : *run) {
      for (const Metric& metric : result.metrics) {
        if (std::find(names.begin(), names.end(), metric.name) == names.end()) names.push_back(metric.name);
      }
    }
  }
  return names;
}

std::string csv_text(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys) {
  const auto names = metric_names(results);
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    text += fmt::format("{}\n", fmt::join(cells, ","));
  };
  std::vector<std::string> head{"key"};
  for (const SweepAxis& axis : sweep.axes) head.push_back(csv_cell(axis.name));
  head.emplace_back("policy");
  head.insert(head.end(), names.begin(), names.end());
  add_line(head);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    for (const LabelledFigures& result : *results[i]) {
      std::vector<std::string> cells{keys[i]};
      for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
        cells.push_back(csv_cell(value_text(sweep.axes[a].values[sweep.runs[i].at[a]])));
      }
      cells.push_back(csv_cell(result.label));
      for (const std::string& name : names) {
        const auto value = find_metric(result.metrics, name);
        cells.push_back(value && !std::isnan(*value) ? number_json(*value).dump() : "");
      }
      add_line(cells);
    }
  }
  return text;
}

/// Puts rows of a file to the runs they are of.
class Collector {
 public:
  Collector(const std::vector<std::string>& keys, const fs::path& file)
      : file_(file.string()), results_(keys.size()) {
    for (std::size_t i = 0; i < keys.size(); ++i) places_.emplace(keys[i], i);
  }

  void add(const std::string& key, LabelledFigures result) {
    const auto place = places_.find(key);
    if (place == places_.end()) {
      strangers_.insert(key);
      return;
    }
    auto& run = results_[place->second];
    if (!run) run.emplace();
    run->push_back(std::move(result));
  }

  SweepResults take() {
    if (!strangers_.empty()) {
      throw InputError(
          file_, fmt::format("holds the results of {} runs that this sweep does not have (another sweep, "
                             "other policies, a changed scenario or version). Name another file, or "
                             "remove this one.",
                             strangers_.size()));
    }
    return std::move(results_);
  }

 private:
  std::string file_;
  std::map<std::string, std::size_t> places_;
  SweepResults results_;
  std::set<std::string> strangers_;
};

void read_jsonl(const fs::path& file, Collector& collector) {
  const std::string text = read_input_file(file);
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const Json row = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    ++line;
    begin = end + 1;
    const bool whole = row.is_object() && row.contains("key") && row["key"].is_string() &&
                       row.contains("policy") && row["policy"].is_string() && row.contains("metrics") &&
                       row["metrics"].is_object();
    if (!whole)
      throw InputError(fmt::format("{}: line {}", file.string(), line), "is no row of a sweep's results.");
    LabelledFigures result{row["policy"].get<std::string>(), {}};
    for (const auto& [name, value] : row["metrics"].items()) {
      result.metrics.push_back({name, value.is_number() ? value.get<double>() : std::nan("")});
    }
    collector.add(row["key"].get<std::string>(), std::move(result));
  }
}

// Metrics are the columns behind those of the run, in the file's order.
void read_csv(const fs::path& file, Collector& collector) {
  const CsvTable table{file};
  const auto policy = std::find(table.columns().begin(), table.columns().end(), "policy");
  const std::vector<std::string> metrics(policy == table.columns().end() ? policy : policy + 1,
                                         table.columns().end());
  for (std::size_t row = 0; row < table.rows(); ++row) {
    LabelledFigures result{std::string{table.text(row, "policy")}, {}};
    for (const std::string& name : metrics) {
      const std::string_view cell = table.text(row, name, false);
      if (cell.empty()) continue;
      double value = 0;
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc{} || end != cell.data() + cell.size()) table.wrong(row, name, "is no number.");
      result.metrics.push_back({name, value});
    }
    collector.add(std::string{table.text(row, "key")}, std::move(result));
  }
}

}  // namespace

void require_results_name(const fs::path& file) {
  if (file.extension() == ".jsonl" || file.extension() == ".csv") return;
  throw InputError(file.string(), "the name of a sweep's results must end in .jsonl or .csv.");
}

std::vector<std::string> sweep_keys(const Sweep& sweep, const std::vector<std::string>& labels,
                                    std::string_view version) {
  FileHashes files;
  std::vector<std::string> keys;
  for (const SweepRun& run : sweep.runs) {
    std::uint64_t sum = hash(run.scenario.text, hash(version));
    for (const std::string& label : labels) sum = hash(label + '\n', sum);
    for (const PolicyPlugin& plugin : run.scenario.policies->plugins)
      sum = hash(fmt::format("{:x}", files.of(plugin.file)), sum);
    add_files(Json::parse(run.scenario.text), run.scenario.file, files, sum);
    keys.push_back(fmt::format("{:016x}", sum));
  }
  return keys;
}

std::string sweep_text(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys,
                       const fs::path& file) {
  if (file.extension() == ".csv") return csv_text(sweep, results, keys);
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    for (const LabelledFigures& result : *results[i])
      text += row_json(sweep, sweep.runs[i], keys[i], result).dump() + '\n';
  }
  return text;
}

SweepResults read_sweep_results(const Sweep& sweep, const std::vector<std::string>& keys,
                                const fs::path& file) {
  Collector collector{keys, file};
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return SweepResults(sweep.runs.size());
  if (file.extension() == ".csv") {
    read_csv(file, collector);
  } else {
    read_jsonl(file, collector);
  }
  return collector.take();
}

}  // namespace vramlab
