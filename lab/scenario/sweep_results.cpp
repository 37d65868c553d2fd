#include "lab/scenario/sweep_results.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/csv.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/metric.hpp"
#include "lab/parallel.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/result_keys.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

// `rows`: how many the run has, so that a part of it is known for one.
Json row_json(const Sweep& sweep, const SweepRun& run, const std::string& key, std::size_t rows,
              const LabelledFigures& result) {
  Json row;
  row["key"] = key;
  for (std::size_t i = 0; i < sweep.axes.size(); ++i)
    row[sweep.axes[i].name] = sweep.axes[i].values[run.at[i]];
  row["policy"] = result.label;
  row["run_rows"] = rows;
  row["metrics"] = figures_json(result.metrics);
  return row;
}

// `visit` gets the number of each finished run with each of its results.
template <class Visit>
void for_each_row(const SweepResults& results, const Visit& visit) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;
    for (const LabelledFigures& result : *results[i]) visit(i, result);
  }
}

// Columns are those that any run has: one without a safe fixed choice has no regret.
std::vector<std::string> metric_names(const SweepResults& results) {
  std::vector<std::string> names;
  for_each_row(results, [&names](std::size_t, const LabelledFigures& result) {
    for (const Metric& metric : result.metrics) {
      if (std::find(names.begin(), names.end(), metric.name) == names.end()) names.push_back(metric.name);
    }
  });
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
  head.insert(head.end(), {"policy", "run_rows"});
  head.insert(head.end(), names.begin(), names.end());
  add_line(head);
  for_each_row(results, [&](std::size_t i, const LabelledFigures& result) {
    std::vector<std::string> cells{keys[i]};
    for (std::size_t a = 0; a < sweep.axes.size(); ++a) {
      cells.push_back(csv_cell(value_text(sweep.axes[a].values[sweep.runs[i].at[a]])));
    }
    cells.insert(cells.end(), {csv_cell(result.label), std::to_string(results[i]->size())});
    for (const std::string& name : names) {
      const auto value = find_metric(result.metrics, name);
      cells.push_back(value && !std::isnan(*value) ? number_json(*value).dump() : "");
    }
    add_line(cells);
  });
  return text;
}

/// One row of a file.
struct ReadRow {
  std::string key;
  double run_rows = 0;
  LabelledFigures result;
};

/// Puts rows of a file to the runs they are of.
class Collector {
 public:
  Collector(const Sweep& sweep, const std::vector<std::string>& keys, const fs::path& file)
      : file_(file.string()), runs_(keys.size()) {
    for (std::size_t i = 0; i < keys.size(); ++i) places_.emplace(keys[i], i);
    const std::string& kind = sweep.runs.front().scenario.kind;
    for (const MetricDescription& metric : find_kind(kind).metrics()) metrics_.push_back(metric.name);
  }

  // A name that is not a metric's would hide a figure.
  void require_metric(const std::string& where, const std::string& name) const {
    if (std::find(metrics_.begin(), metrics_.end(), name) != metrics_.end()) return;
    throw InputError(where, "there is no metric \"" + name + "\"." + suggest_name(name, metrics_));
  }

  void add(const std::string& where, ReadRow row) {
    const auto place = places_.find(row.key);
    if (place == places_.end()) {
      strangers_.insert(row.key);
      return;
    }
    auto& run = runs_[place->second];
    for (const ReadRow& other : run) {
      if (other.result.label != row.result.label) continue;
      // A run that was cut off is made again: what there was of it stands twice.
      if (figures_json(other.result.metrics) == figures_json(row.result.metrics)) return;
      throw InputError(where, "the file has " + row.result.label + " of this run twice, with other figures.");
    }
    run.push_back(std::move(row));
  }

  SweepResults take() {
    if (!strangers_.empty()) {
      throw InputError(
          file_, fmt::format("holds the results of {} runs that this sweep does not have (another sweep, "
                             "other policies, a changed scenario or version). Name another file, or "
                             "remove this one.",
                             strangers_.size()));
    }
    SweepResults results(runs_.size());
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const auto rows = static_cast<double>(runs_[i].size());
      const auto whole = [&](const ReadRow& row) { return row.run_rows == rows; };
      if (runs_[i].empty() || !std::all_of(runs_[i].begin(), runs_[i].end(), whole)) continue;
      results[i].emplace();
      for (ReadRow& row : runs_[i]) results[i]->push_back(std::move(row.result));
    }
    return results;
  }

 private:
  std::string file_;
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> metrics_;
  std::vector<std::vector<ReadRow>> runs_;  // a run of which rows are missing is made again
  std::set<std::string> strangers_;
};

bool is_row(const Json& row) {
  const auto has = [&](const char* key, auto is) { return row.contains(key) && (row[key].*is)(); };
  return row.is_object() && has("key", &Json::is_string) && has("policy", &Json::is_string) &&
         has("run_rows", &Json::is_number) && has("metrics", &Json::is_object);
}

void read_jsonl(const std::string& text, const fs::path& file, Collector& collector) {
  std::size_t line = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const Json row = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    const std::string where = fmt::format("{}: line {}", file.string(), ++line);
    begin = end + 1;
    if (!is_row(row)) throw InputError(where, "is not a row of a sweep's results.");
    ReadRow read{
        row["key"].get<std::string>(), row["run_rows"].get<double>(), {row["policy"].get<std::string>(), {}}};
    for (const auto& [name, value] : row["metrics"].items()) {
      collector.require_metric(where, name);
      if (!value.is_number() && !value.is_null())
        throw InputError(where, "\"" + name + "\" is not a number.");
      read.result.metrics.push_back({name, value.is_number() ? value.get<double>() : std::nan("")});
    }
    collector.add(where, std::move(read));
  }
}

// Metrics are the columns behind those of the run, in the file's order. An axis may have the name of one.
void read_csv(const fs::path& file, Collector& collector) {
  const CsvTable table{file};
  const std::vector<std::string>& columns = table.columns();
  const auto last = std::find(columns.begin(), columns.end(), "run_rows");
  const std::size_t first = std::min(columns.size(), static_cast<std::size_t>(last - columns.begin()) + 1);
  for (std::size_t c = first; c < columns.size(); ++c) {
    collector.require_metric(file.string(), columns[c]);
    if (std::count(columns.begin() + static_cast<std::ptrdiff_t>(first), columns.end(), columns[c]) > 1) {
      throw InputError(file.string() + ":1", "has the column \"" + columns[c] + "\" twice.");
    }
  }
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ReadRow read{std::string{table.text(row, "key")},
                 table.number(row, "run_rows"),
                 {std::string{table.text(row, "policy")}, {}}};
    for (std::size_t c = first; c < columns.size(); ++c) {
      const std::string_view cell = table.text_at(row, c);
      if (cell.empty()) continue;
      double value = 0;
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
      if (error != std::errc{} || end != cell.data() + cell.size()) {
        throw InputError(fmt::format("{}: line {}", file.string(), row + 2),
                         fmt::format("{} \"{}\" is not a number.", columns[c], cell));
      }
      read.result.metrics.push_back({columns[c], value});
    }
    collector.add(fmt::format("{}: line {}", file.string(), row + 2), std::move(read));
  }
}

// What a program that was killed left behind the last whole row goes; anything else is not ours to drop.
void drop_cut_row(std::string& text, const fs::path& file) {
  constexpr std::string_view kBegin = "{\"key\":\"";
  const std::size_t begin = text.find_last_of('\n') + 1;  // the start where there is no whole row
  const std::string_view cut = std::string_view{text}.substr(begin);
  if (file.extension() == ".csv" || cut.substr(0, kBegin.size()) != kBegin.substr(0, cut.size())) {
    throw InputError(file.string(), "is cut off in its last line. Remove that line; its run is made again.");
  }
  text.resize(begin);
}

// What `work` finds wrong is said with the combination it is about.
template <class Work>
auto at_point(const Sweep& sweep, const SweepRun& run, const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& one : problems) one.what += " (at " + sweep.point_text(run) + ")";
    throw InputError(std::move(problems));
  }
}

/// The runs of a sweep as tasks.
class RunsToMake {
 public:
  RunsToMake(const Sweep& sweep, const std::vector<std::string>& labels)
      : sweep_(sweep), labels_(labels), read_(sweep.runs.size()) {}

  /// Throws InputError, which names the combination, if it is not a usable scenario.
  void read(std::size_t i) {
    read_[i] = at_point(sweep_, sweep_.runs[i], [&] {
      auto experiment = read_experiment(sweep_.runs[i].scenario);
      experiment->require_labels(labels_);
      return experiment;
    });
  }

  /// They refer to this. `keys`: one a run, or none.
  std::vector<Task> tasks(const std::vector<std::string>& keys) {
    std::vector<Task> tasks;
    for (std::size_t i = 0; i < sweep_.runs.size(); ++i) {
      tasks.push_back({.name = sweep_.point_text(sweep_.runs[i]),
                       .key = keys.empty() ? std::string{} : keys[i],
                       .length = length_of(sweep_.runs[i].scenario),
                       .perform = [this, i] { return perform(i); }});
    }
    return tasks;
  }

 private:
  Json perform(std::size_t i) {
    if (!read_[i]) read(i);
    const auto experiment = std::move(read_[i]);
    return at_point(sweep_, sweep_.runs[i], [&] {
      experiment->leave_out_oracle();  // each would take as many runs again as it has choices
      experiment->run(labels_);
      return labelled_json(experiment->figures());
    });
  }

  const Sweep& sweep_;
  const std::vector<std::string>& labels_;
  std::vector<std::unique_ptr<Experiment>> read_;  ///< until they are run
};

}  // namespace

std::size_t finished_runs(const SweepResults& results) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const auto& run) { return run.has_value(); }));
}

void require_results_name(const fs::path& file) {
  if (file.extension() == ".jsonl" || file.extension() == ".csv") return;
  throw InputError(file.string(), "the name of a sweep's results must end in .jsonl or .csv.");
}

std::vector<std::string> sweep_keys(const Sweep& sweep, const std::vector<std::string>& labels,
                                    std::string_view version) {
  ResultKeys result_keys{version};
  std::vector<std::string> keys;
  for (const SweepRun& run : sweep.runs) keys.push_back(result_keys.of(run.scenario, labels));
  return keys;
}

std::string sweep_text(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys,
                       const fs::path& file) {
  if (file.extension() == ".csv") return csv_text(sweep, results, keys);
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i]) text += run_lines(sweep, keys, i, *results[i]);
  }
  return text;
}

std::string run_lines(const Sweep& sweep, const std::vector<std::string>& keys, std::size_t run,
                      const std::vector<LabelledFigures>& results) {
  std::string text;
  for (const LabelledFigures& result : results) {
    text += row_json(sweep, sweep.runs[run], keys[run], results.size(), result).dump() + '\n';
  }
  return text;
}

SweepShard parse_shard(const std::string& text) {
  SweepShard shard;
  const char* const end = text.data() + text.size();
  const auto [slash, bad] = std::from_chars(text.data(), end, shard.number);
  const bool has_slash = bad == std::errc{} && slash != end && *slash == '/';
  if (has_slash) {
    const auto [rest, error] = std::from_chars(slash + 1, end, shard.of);
    if (error == std::errc{} && rest == end && shard.number >= 1 && shard.number <= shard.of) return shard;
  }
  throw InputError("--shard",
                   "\"" + text + "\" must be two whole numbers such as 3/16, the third of 16 parts.");
}

SweepResults read_sweep_results(const Sweep& sweep, const std::vector<std::string>& keys,
                                const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return SweepResults(sweep.runs.size());
  if (!fs::is_regular_file(file, ignored)) throw InputError(file.string(), "is not a regular file.");
  std::string text = read_input_file(file);
  if (text.empty()) return SweepResults(sweep.runs.size());
  if (text.back() != '\n') drop_cut_row(text, file);
  Collector collector{sweep, keys, file};
  if (file.extension() == ".csv") {
    read_csv(file, collector);
  } else {
    read_jsonl(text, file, collector);
  }
  return collector.take();
}

void run_sweep(const Sweep& sweep, const SweepOptions& options, SweepResults& results) {
  Threads own{options.threads};
  Workers& workers = options.workers != nullptr ? *options.workers : own;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    if (!results[i] && options.shard.has(i)) wanted.push_back(i);
  }
  RunsToMake runs{sweep, options.labels};
  if (workers.hands_out()) {  // who is handed a run reads it then
    for_each_index(wanted.size(), options.threads, [&](std::size_t i) {
      if (options.stop == nullptr || !options.stop->load()) runs.read(wanted[i]);
    });
  }
  workers.perform(runs.tasks(options.keys), std::move(wanted),
                  {.take =
                       [&](std::size_t run, const Json& rows) {
                         results[run] = labelled_from(rows);
                         if (options.on_run) options.on_run(run, *results[run]);
                       },
                   .stop = options.stop,
                   .stopped = options.stopped});
}

}  // namespace vramlab
