#include "lab/jobs_models.hpp"

#include <algorithm>

#include "lab/scenario_parts.hpp"
#include "sim/core/error.hpp"
#include "sim/workload/job_process.hpp"
#include "sim/workload/job_programs.hpp"

namespace vramlab {
namespace {

constexpr Bytes kNeverFull = 1024_GiB * 1024;
constexpr int kMostSteps = 16;  // after the first ones at a point; memory has settled long before

std::vector<std::string> names_of(const ParameterSpace& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters) names.push_back(parameter.name);
  return names;
}

}  // namespace

JobModel JobModels::read(const Json& json, const std::string& pointer) {
  std::shared_ptr<const WorkloadModel> workload;
  if (json.is_object()) {
    workload = scenario_model(json, scenario_, pointer);
  } else {
    auto& known = models_[json.get<std::string>()];
    if (!known) known = scenario_model(json, scenario_, pointer);
    workload = known;
  }
  const auto batch = workload->parameters().find("batch");
  if (!batch) throw InputError(pointer, "the model has no parameter \"batch\", which a queue could set.");
  return {std::move(workload), *batch};
}

Point JobModels::point(const JobModel& model, std::int64_t batch, const Json& values, const Point* base,
                       const std::string& pointer) {
  const ParameterSpace& space = model.workload->parameters();
  std::vector<Problem> problems;
  Point point = base != nullptr ? *base : Point(space.size());
  std::vector<bool> given(space.size(), base != nullptr);
  for (const auto& [key, value] : values.items()) {
    const auto index = space.find(key);
    if (!index || *index == model.batch) {
      problems.push_back({pointer + "/" + key,
                          index ? "the batch is the job's \"batch\"."
                                : "the model has no such parameter." + suggest_name(key, names_of(space))});
      continue;
    }
    point[*index] = value.get<std::int64_t>();
    given[*index] = true;
  }
  point[model.batch] = batch;
  given[model.batch] = true;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Parameter& parameter = space.parameters[i];
    if (!given[i]) {
      problems.push_back({pointer, "\"" + parameter.name + "\" of the model is missing."});
    } else if (point[i] < parameter.low || point[i] > parameter.high) {
      problems.push_back(
          {pointer, parameter.name + " " + std::to_string(point[i]) + " is out of bounds; the model allows " +
                        std::to_string(parameter.low) + " to " + std::to_string(parameter.high) + "."});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return point;
}

JobPhase JobModels::phase(const JobModel& model, const Point& point, std::int64_t steps) {
  JobPhase phase{.duration = model.workload->step(point).duration * steps};
  phase.steps = steps;
  phase.point = point;
  return phase;
}

void JobModels::measure(const JobModel& model, const std::vector<JobPhase>& phases, JobDemand& demand) {
  const auto held_at = [&](std::int64_t batch) {
    std::vector<Point> points;
    for (const JobPhase& phase : phases) {
      points.push_back(phase.point);
      points.back()[model.batch] = batch;
    }
    return most_held(model, points);
  };
  demand.least_batch = model.workload->parameters().parameters[model.batch].low;
  const Bytes most = held_at(demand.batch);
  const Bytes least = std::min(most, held_at(demand.least_batch));
  const auto span = static_cast<Bytes>(demand.batch - demand.least_batch);
  demand.per_sample = span > 0 ? (most - least) / span : 0;
  demand.fixed = most - demand.per_sample * static_cast<Bytes>(demand.batch);
}

Bytes JobModels::most_held(const JobModel& model, const std::vector<Point>& points) {
  const auto [entry, fresh] = held_.try_emplace({model.workload.get(), points});
  if (!fresh) return entry->second;
  SimulatedCard card{kNeverFull, 0};
  JobProcess process{card, context_, allocator_};
  JobPrograms programs;
  Bytes most = 0;
  const auto run = [&](const JobProgram& program) {
    const JobProcess::Step step = process.run(program.program, program.key, program.shape);
    if (!step.ok) throw InputError("", "the model takes more than a card can have.");
    most = std::max(most, process.holding().reserved);
    return step.settled;
  };
  if (!process.open()) throw InternalError("a context does not fit an empty card");
  run(programs.build(*model.workload));
  for (const Point& point : points) {
    const auto first = static_cast<int>(model.workload->first_steps());
    for (int i = 0; i < first + kMostSteps; ++i) {
      if (run(programs.step(*model.workload, point, static_cast<std::size_t>(i)))) break;
    }
  }
  return entry->second = most;
}

}  // namespace vramlab
