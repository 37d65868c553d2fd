#include "lab/model/measured_grid.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/records/field.hpp"
#include "core/statistics.hpp"
#include "models/ranks.hpp"
#include "recordings/exact_json.hpp"
#include "sim/runs/step_executor.hpp"

namespace vramlab {
namespace {

constexpr int kStepsPerRow = 4;

constexpr Bytes kLargestMemory = 1024_GiB;  // above any card
constexpr double kLongestStepMs = 1e6;
constexpr std::int64_t kLargestOfRow = 1'000'000;
constexpr std::int64_t kLargestCount = 1'000'000'000;  // of what one item of a step counts

// Does `read`, and puts what it finds wrong at `place`.
template <class Read>
auto read_value(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw InputError(place, error.problems().front().what);
  }
}

const Json& member_of(const Json& json, const std::string& place, const char* key) {
  if (!json.is_object()) throw InputError(place, "is not an object in { }.");
  if (!json.contains(key)) throw InputError(place + '/' + key, "is missing in a grid of measured points.");
  return json[key];
}

GridRow read_row(const Json& json, const std::string& place, Bytes total) {
  GridRow row{.parameters = json};
  if (!json.is_object()) throw InputError(place, "is not an object in { }.");
  if (json.contains("ok")) row.ok = read_value(place + "/ok", [&] { return exact<bool>(json["ok"]); });
  if (!row.ok) return row;
  const auto size = [&](const char* key, Bytes least) {
    const Json& value = member_of(json, place, key);
    return read_value(place + '/' + key, [&] { return exact<Bytes>(value, least, total); });
  };
  if (json.contains("base")) row.base = size("base", 0);
  row.peak_allocated = size("peak_allocated", 1);
  row.peak_reserved = size("peak_reserved", 1);
  if (json.contains("outside")) row.outside = size("outside", 0);
  if (!json.contains("step_ms")) return row;
  row.step_ms = read_value(place + "/step_ms", [&] { return exact<std::vector<double>>(json["step_ms"]); });
  for (const double ms : row.step_ms) {
    if (!(ms > 0 && ms <= kLongestStepMs)) {
      throw InputError(place + "/step_ms", fmt::format("{} is out of range; a step takes above 0 and up to "
                                                       "1000000 milliseconds.",
                                                       shortest_text(ms)));
    }
  }
  return row;
}

/// What a row asks of a model; empty with a reason if the model cannot say.
struct Question {
  RecordedConditions conditions;  ///< of a model that was not recorded only the point
  std::string label;
  std::string reason;
};

class Asker {
 public:
  explicit Asker(const WorkloadModel& model)
      : model_(model), recorded_(dynamic_cast<const RecordedModel*>(&model)) {}

  [[nodiscard]] Question ask(const Json& row) const {
    Question question;
    for (const Parameter& parameter : model_.parameters().parameters) {
      if (!row.contains(parameter.name)) {
        throw InputError("/rows", '"' + parameter.name + "\" is missing in a row; the model needs it.");
      }
      const auto value = read_value("/rows: " + parameter.name, [&] {
        return exact<std::int64_t>(row[parameter.name], 0, kLargestOfRow);
      });
      question.conditions.point.push_back(value);
      question.label += fmt::format("{}{} {}", question.label.empty() ? "" : ", ", parameter.name, value);
    }
    if (recorded_ == nullptr) return question;
    for (const RecordedVariable& variable : recorded_->spec().variables) {
      if (variable.kind != RecordedVariable::Kind::fixed || !row.contains(variable.name)) continue;
      if (row[variable.name] == variable.value) continue;
      question.reason = fmt::format("{} was {} in every recorded step", variable.name, variable.value);
    }
    question.conditions = recorded_->conditions_of(question.conditions.point, fields_of(row));
    return question;
  }

  [[nodiscard]] StepProgram step(const Question& question) const {
    return recorded_ != nullptr ? recorded_->step(question.conditions)
                                : model_.step(question.conditions.point);
  }

  /// What ran in the process before the first row: what the grid says, else the steps that the model was
  /// recorded from, every shape twice.
  [[nodiscard]] std::vector<StepProgram> warm_up(const MeasuredGrid& grid) const {
    std::vector<StepProgram> steps;
    for (const Json& parameters : grid.warm_up.value_or(std::vector<Json>{})) {
      const Question question = ask(parameters);
      if (question.reason.empty()) steps.push_back(step(question));
    }
    if (grid.warm_up || recorded_ == nullptr) return steps;
    const auto parameters = static_cast<std::ptrdiff_t>(model_.parameters().parameters.size());
    for (const VariableValues& shape : recorded_->spec().shapes) {
      steps.insert(steps.end(), 2, model_.step(Point(shape.begin(), shape.begin() + parameters)));
    }
    return steps;
  }

  void add_host_range(const Question& question, GridPrediction& prediction) const {
    if (recorded_ == nullptr) return;
    const auto range = recorded_->host_range(question.conditions);
    if (!range) return;
    prediction.least_ms = range->first * 1e3;
    prediction.most_ms = range->second * 1e3;
  }

  [[nodiscard]] bool outside(const Question& question) const {
    if (recorded_ != nullptr) return !recorded_->in_recorded_range(question.conditions);
    return model_.parameters().clamp(question.conditions.point) != question.conditions.point;
  }

 private:
  static std::map<std::string, std::vector<std::int64_t>> fields_of(const Json& row) {
    std::map<std::string, std::vector<std::int64_t>> fields;
    for (const auto& [key, value] : row.items()) {
      const bool whole = value.is_array() && std::all_of(value.begin(), value.end(), [](const Json& one) {
                           return one.is_number_integer();
                         });
      if (!whole) continue;
      for (const Json& one : value) {
        fields[key].push_back(
            read_value("/rows: " + key, [&] { return exact<std::int64_t>(one, 0, kLargestCount); }));
      }
    }
    return fields;
  }

  const WorkloadModel& model_;
  const RecordedModel* recorded_;
};

}  // namespace

RecordedConditions grid_conditions(const RecordedModel& model, const Json& row) {
  return Asker(model).ask(row).conditions;
}

MeasuredGrid read_grid_file(const std::filesystem::path& file) {
  const std::string name = file.string();
  const Json json = read_json_file(file);
  MeasuredGrid grid;
  const std::string place = name + ": ";
  const auto text = [&](const char* key, const std::string& otherwise) {
    if (!json.contains(key)) return otherwise;
    return read_value(place + '/' + key, [&] { return exact<std::string>(json[key]); });
  };
  const Json& total = member_of(json, place, "total_memory");
  grid.name = text("name", name);
  grid.device = text("device", "");
  grid.total_memory =
      read_value(place + "/total_memory", [&] { return exact<Bytes>(total, 1, kLargestMemory); });
  if (json.contains("world")) {
    grid.world =
        read_value(place + "/world", [&] { return exact<std::uint32_t>(json["world"], 1, kMostRanks); });
  }
  if (json.contains("warm_up")) {
    const Json& steps = json["warm_up"];
    if (!steps.is_array()) throw InputError(place + "/warm_up", "is not a list in [ ].");
    for (const Json& step : steps) {
      if (!step.is_object()) throw InputError(place + "/warm_up", "has a step that is not an object in { }.");
    }
    grid.warm_up.emplace(steps.begin(), steps.end());
  }
  const Json& rows = member_of(json, place, "rows");
  if (!rows.is_array()) throw InputError(place + "/rows", "is not a list in [ ].");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    grid.rows.push_back(read_row(rows[i], fmt::format("{}/rows/{}", place, i), grid.total_memory));
  }
  if (grid.rows.empty()) throw InputError(name + ": /rows", "is empty.");
  return grid;
}

std::vector<GridPrediction> replay_grid(const MeasuredGrid& grid, const WorkloadModel& model) {
  const Asker asker(model);
  SimulatedCard card{grid.total_memory};
  SimulatedProcess process{card, AllocatorOptions{}};
  process.executor().run(model.build());
  for (const StepProgram& step : asker.warm_up(grid)) process.executor().run(step);
  std::vector<GridPrediction> predictions;
  for (const GridRow& row : grid.rows) {
    const Question question = asker.ask(row.parameters);
    GridPrediction& prediction = predictions.emplace_back();
    prediction.label = question.label;
    prediction.reason = question.reason;
    prediction.skipped = !question.reason.empty();
    if (prediction.skipped) continue;
    prediction.outside = asker.outside(question);
    prediction.small = row.peak_allocated < 2 * row.base;
    process.allocator().empty_cache();
    process.allocator().reset_peak_stats();
    const MemoryStats& stats = process.allocator().stats();
    prediction.base = static_cast<Bytes>(stats.allocated_bytes.all().current);
    const StepProgram step = asker.step(question);
    for (int i = 0; i < kStepsPerRow; ++i) {
      prediction.oom = process.executor().run(step).result == StepResult::oom || prediction.oom;
    }
    prediction.peak_allocated = static_cast<Bytes>(stats.allocated_bytes.all().peak);
    prediction.peak_reserved = static_cast<Bytes>(stats.reserved_bytes.all().peak);
    prediction.step_ms = to_seconds(step.duration) * 1e3;
    asker.add_host_range(question, prediction);
  }
  return predictions;
}

ErrorSummary summarise(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  return {.points = errors.size(),
          .exact = static_cast<std::size_t>(std::count(errors.begin(), errors.end(), 0.0)),
          .median = quantile_of(errors, 0.5),
          .p95 = quantile_of(errors, 0.95),
          .largest = errors.back()};
}

namespace {

template <class Number>
double error_of(Number predicted, Number measured) {
  return std::abs(static_cast<double>(predicted) - static_cast<double>(measured)) /
         static_cast<double>(measured);
}

Json summary_json(const std::vector<double>& errors) {
  if (errors.empty()) return nullptr;
  const ErrorSummary summary = summarise(errors);
  return {{"points", summary.points},
          {"exact", summary.exact},
          {"median_error", summary.median},
          {"p95_error", summary.p95},
          {"max_error", summary.largest}};
}

void add_time_error(bool gives_law, const GridPrediction& predicted, double measured_ms, GridErrors& errors) {
  const double error = error_of(predicted.step_ms, measured_ms);
  (gives_law ? errors.fitted_times : errors.times).push_back(error);
  if (gives_law) return;
  if (predicted.most_ms <= 0) {
    errors.card_times.push_back(error);
    return;
  }
  constexpr double kNearby = 1.1;
  ++errors.waiting;
  if (measured_ms * kNearby >= predicted.least_ms && measured_ms <= kNearby * predicted.most_ms) {
    ++errors.waiting_as_seen;
  }
}

}  // namespace

GridErrors grid_errors(const MeasuredGrid& grid, const std::vector<GridPrediction>& predictions) {
  GridErrors errors;
  errors.rows = {
      {"all"}, {"inside the recorded range"}, {"outside it"}, {"peak below twice the base"}, {"other peaks"}};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const GridPrediction& predicted = predictions[i];
    const GridRow& measured = grid.rows[i];
    if (predicted.skipped) {
      ++errors.skipped;
      errors.skip_reason = predicted.reason;
      continue;
    }
    errors.outside += predicted.outside ? 1 : 0;
    ++errors.outcomes[measured.ok ? 0 : 1][predicted.oom ? 1 : 0];
    if (!measured.ok || predicted.oom) continue;
    const std::size_t by_range = predicted.outside ? 2 : 1;
    const std::size_t by_peak = predicted.small ? 3 : 4;
    for (const std::size_t sort : {std::size_t{0}, by_range, by_peak}) {
      errors.rows[sort].allocated.push_back(error_of(predicted.peak_allocated, measured.peak_allocated));
      errors.rows[sort].reserved.push_back(error_of(predicted.peak_reserved, measured.peak_reserved));
    }
    if (measured.step_ms.empty() || predicted.step_ms <= 0) continue;
    add_time_error(gives_time_law(i), predicted, middle_of(measured.step_ms), errors);
  }
  return errors;
}

Json grid_errors_json(const GridErrors& errors) {
  constexpr const char* kKeys[] = {"", "inside_range", "outside_range_errors", "small_peaks", "other_peaks"};
  Json json;
  json["points"] =
      errors.outcomes[0][0] + errors.outcomes[0][1] + errors.outcomes[1][0] + errors.outcomes[1][1];
  json["skipped"] = errors.skipped;
  json["outside_range"] = errors.outside;
  json["peak_allocated"] = summary_json(errors.rows[0].allocated);
  json["peak_reserved"] = summary_json(errors.rows[0].reserved);
  json["step_time"] = summary_json(errors.times);
  json["step_time_not_bound_by_host"] = summary_json(errors.card_times);
  json["bound_by_host"] = {{"points", errors.waiting}, {"within_range_seen", errors.waiting_as_seen}};
  json["step_time_of_fitted_points"] = summary_json(errors.fitted_times);
  for (std::size_t sort = 1; sort < errors.rows.size(); ++sort) {
    json[kKeys[sort]]["peak_allocated"] = summary_json(errors.rows[sort].allocated);
    json[kKeys[sort]]["peak_reserved"] = summary_json(errors.rows[sort].reserved);
  }
  json["oom"]["true_positive"] = errors.outcomes[1][1];
  json["oom"]["false_positive"] = errors.outcomes[0][1];
  json["oom"]["true_negative"] = errors.outcomes[0][0];
  json["oom"]["false_negative"] = errors.outcomes[1][0];
  return json;
}

}  // namespace vramlab
