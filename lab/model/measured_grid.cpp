#include "lab/model/measured_grid.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "core/error.hpp"
#include "sim/runs/step_executor.hpp"

namespace vramlab {
namespace {

constexpr int kStepsPerRow = 4;

GridRow read_row(const Json& json, const std::string& place) {
  GridRow row{.parameters = json};
  row.ok = json.value("ok", true);
  if (!row.ok) return row;
  row.base = json.value("base", Bytes{0});
  row.peak_allocated = json.at("peak_allocated");
  row.peak_reserved = json.at("peak_reserved");
  row.step_ms = json.value("step_ms", Json::array()).get<std::vector<double>>();
  if (row.peak_allocated == 0 || row.peak_reserved == 0) throw InputError(place, "has a peak of 0 bytes.");
  for (const double ms : row.step_ms) {
    if (!(ms > 0)) throw InputError(place + "/step_ms", "holds a time that is not above 0.");
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
      if (!row.contains(parameter.name) || !row[parameter.name].is_number_integer()) {
        throw InputError("/rows", '"' + parameter.name + "\" is missing in a row; the model needs it.");
      }
      const std::int64_t value = row[parameter.name];
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
      if (whole) fields[key] = value.get<std::vector<std::int64_t>>();
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
  try {
    grid.name = json.value("name", name);
    grid.device = json.value("device", "");
    grid.total_memory = json.at("total_memory");
    grid.warm_up = json.value("warm_up", Json::array()).get<std::vector<Json>>();
    const Json& rows = json.at("rows");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      grid.rows.push_back(read_row(rows[i], fmt::format("{}: /rows/{}", name, i)));
    }
  } catch (const nlohmann::json::exception& error) {
    throw InputError(name, std::string("is not a grid of measured points: ") + error.what());
  }
  if (grid.rows.empty()) throw InputError(name + ": /rows", "is empty.");
  return grid;
}

std::vector<GridPrediction> replay_grid(const MeasuredGrid& grid, const WorkloadModel& model) {
  const Asker asker(model);
  SimulatedCard card{grid.total_memory};
  SimulatedProcess process{card, AllocatorOptions{}};
  process.executor().run(model.build());
  for (const Json& parameters : grid.warm_up) {
    const Question question = asker.ask(parameters);
    if (question.reason.empty()) process.executor().run(asker.step(question));
  }
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
  }
  return predictions;
}

ErrorSummary summarise(std::vector<double> errors) {
  if (errors.empty()) return {};
  std::sort(errors.begin(), errors.end());
  const auto quantile = [&](double share) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(errors.size())));
    return errors[std::max<std::size_t>(rank, 1) - 1];
  };
  return {.points = errors.size(),
          .exact = static_cast<std::size_t>(std::count(errors.begin(), errors.end(), 0.0)),
          .median = quantile(0.5),
          .p95 = quantile(0.95),
          .largest = errors.back()};
}

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
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
    (gives_time_law(i) ? errors.fitted_times : errors.times)
        .push_back(error_of(predicted.step_ms, middle_of(measured.step_ms)));
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
