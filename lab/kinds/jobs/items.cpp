#include "lab/kinds/jobs/items.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "core/random.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"
#include "models/job_estimate.hpp"
#include "sim/runs/job_process.hpp"

namespace vramlab {
namespace {

// First an octave between the two, then evenly within it: logarithms without floating point.
SimTime any_duration(Random& random, SimTime shortest, SimTime longest) {
  std::int64_t octaves = 0;
  while (shortest.count() << (octaves + 1) <= longest.count()) ++octaves;
  const std::int64_t low = shortest.count() << random.between(0, octaves);
  return SimTime{random.between(low, std::min(2 * low, longest.count()))};
}

const JobSort& any_sort(Random& random, const std::vector<JobSort>& mix) {
  std::int64_t sum = 0;
  for (const JobSort& sort : mix) sum += sort.weight;
  std::int64_t drawn = random.between(0, sum - 1);
  for (const JobSort& sort : mix) {
    if (drawn < sort.weight) return sort;
    drawn -= sort.weight;
  }
  return mix.back();
}

void draw_need(Random& random, const JobSort& sort, JobDemand& demand) {
  const auto mib = static_cast<Bytes>(random.between(static_cast<std::int64_t>(sort.need_low / 1_MiB),
                                                     static_cast<std::int64_t>(sort.need_high / 1_MiB)));
  demand.fixed = mib * 1_MiB;
  if (demand.batch == 1) return;
  demand.fixed /= 5;  // a fifth of the need does not depend on the batch
  demand.per_sample = (mib * 1_MiB - demand.fixed) / static_cast<Bytes>(demand.batch);
}

void run_model(const JobSort& sort, SimTime duration, JobSpec& job) {
  const std::int64_t steps = std::max<std::int64_t>(1, duration / sort.step.duration);
  job.model = sort.model;
  job.phases = {sort.step};
  job.phases.front().steps = steps;
  job.phases.front().duration *= steps;
}

}  // namespace

std::vector<JobSpec> generate_jobs(const std::vector<JobSort>& mix, std::int64_t count, SimTime span,
                                   std::uint64_t seed) {
  Random random{seed};
  std::vector<JobSpec> jobs;
  for (std::int64_t i = 0; i < count; ++i) {
    const JobSort& sort = any_sort(random, mix);
    JobSpec job;
    job.name = sort.name + " " + std::to_string(i);
    job.arrival = SimTime{random.between(0, span.count())};
    job.demand = sort.demand;
    job.busy_milli = sort.busy_milli;
    if (sort.model) {
      run_model(sort, any_duration(random, sort.shortest, sort.longest), job);
    } else {
      draw_need(random, sort, job.demand);
      job.phases = {{.duration = any_duration(random, sort.shortest, sort.longest)}};
    }
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void spread_use(std::vector<JobSpec>& jobs, std::int64_t spread_milli, Bytes card_total, std::uint64_t seed) {
  Random random{seed ^ 0xA5A5A5A5u};  // another stream than that of the jobs themselves
  for (JobSpec& job : jobs) {
    const auto factor = static_cast<Bytes>(1000 + random.between(-spread_milli, spread_milli));
    if (job.model) {
      job.demand.fixed = job.demand.fixed * factor / 1000;
      job.demand.per_sample = job.demand.per_sample * factor / 1000;
      continue;
    }
    if (job.phases.size() != 1 || job.phases.front().fixed_use || job.demand.share_milli > 0) continue;
    JobPhase& phase = job.phases.front();
    phase.fixed_use = std::min(job.demand.fixed * factor / 1000, card_total);
    phase.use_per_sample = job.demand.per_sample * factor / 1000;
  }
}

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

namespace {

std::int32_t busy_milli(const Json& json) {
  return static_cast<std::int32_t>(std::llround(json.value("busy", 1.0) * 1000));
}

JobPhase plain_phase(const Json& json, const std::string& pointer) {
  if (!json.contains("duration_s") || json.contains("steps") || json.contains("set")) {
    throw InputError(pointer, "a job without a model needs \"duration_s\", and has no \"steps\" or \"set\".");
  }
  JobPhase phase{.duration = from_seconds(json["duration_s"].get<double>())};
  if (json.contains("use") || json.contains("use_per_sample")) {
    phase.fixed_use = json.contains("use") ? size_value(json["use"]) : 0;
  }
  if (json.contains("use_per_sample")) phase.use_per_sample = size_value(json["use_per_sample"]);
  return phase;
}

}  // namespace

std::vector<JobSpec> JobItems::read(const Json& list, const std::string& pointer, std::size_t first,
                                    FileProblems& problems) {
  std::vector<JobSpec> jobs;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string where = pointer + "/" + std::to_string(i);
    problems.guarded(where, [&] {
      const JobSpec job = read_job(list[i], where, first + jobs.size());
      const auto count = list[i].value("count", std::int64_t{1});
      const SimTime every = from_seconds(list[i].value("every_s", 0.0));
      for (std::int64_t n = 0; n < count; ++n) {
        jobs.push_back(job);
        jobs.back().arrival += every * n;
        if (count > 1) jobs.back().name.append(" ").append(std::to_string(n + 1));
      }
    });
  }
  return jobs;
}

JobSpec JobItems::read_job(const Json& json, const std::string& pointer, std::size_t number) {
  JobSpec job;
  job.name = json.value("name", "job " + std::to_string(number));
  job.arrival = from_seconds(json.value("arrival_s", 0.0));
  job.busy_milli = busy_milli(json);
  job.demand.batch = json.value("batch", std::int64_t{1});
  job.demand.cards = json.value("cards", 1);
  job.demand.priority = json.value("priority", 0);
  if (json.contains("quota")) job.demand.account = account_of(json["quota"], pointer + "/quota");
  if (json.contains("expected_s")) job.expected = from_seconds(json["expected_s"].get<double>());
  if (json.contains("crash_after_s")) job.crash_after = from_seconds(json["crash_after_s"].get<double>());
  read_phases(json, pointer, job);
  read_demand(json, pointer, job);
  return job;
}

void JobItems::read_phases(const Json& json, const std::string& pointer, JobSpec& job) {
  const char* span = json.contains("model") ? "steps" : "duration_s";
  if (json.contains(span) == json.contains("phases")) {
    throw InputError(pointer, "give either \"" + std::string{span} + "\" or \"phases\".");
  }
  std::optional<Point> base;
  if (json.contains("model")) {
    job.model = models_.read(json["model"], pointer + "/model");
    const Json none = Json::object();
    base = JobModels::point(*job.model, job.demand.batch, json.contains("at") ? json["at"] : none, nullptr,
                            pointer + "/at");
  } else if (json.contains("at")) {
    throw InputError(pointer + "/at", "goes with \"model\", which is not given.");
  }
  const auto read = [&](const Json& phase, const std::string& where) {
    job.phases.push_back(job.model ? read_model_phase(phase, where, job, &*base) : plain_phase(phase, where));
    if (job.phases.back().duration <= SimTime{0}) throw InputError(where, "a duration must be above 0.");
  };
  if (!json.contains("phases")) return read(json, pointer);
  for (std::size_t i = 0; i < json["phases"].size(); ++i) {
    const Json& phase = json["phases"][i];
    read(phase, pointer + "/phases/" + std::to_string(i));
    if (phase.contains("need")) job.phases.back().need = size_value(phase["need"]);
  }
  if (job.phases.empty()) throw InputError(pointer + "/phases", "the list is empty.");
}

JobPhase JobItems::read_model_phase(const Json& json, const std::string& pointer, const JobSpec& job,
                                    const Point* base) {
  if (!json.contains("steps") || json.contains("duration_s") || json.contains("use") ||
      json.contains("use_per_sample")) {
    throw InputError(pointer, "a job with a model needs \"steps\"; time and use come from the model.");
  }
  Point point = *base;
  if (json.contains("set")) {
    point = JobModels::point(*job.model, job.demand.batch, json["set"], base, pointer + "/set");
  }
  return JobModels::phase(*job.model, point, json["steps"].get<std::int64_t>());
}

void JobItems::read_demand(const Json& json, const std::string& pointer, JobSpec& job) {
  JobDemand& demand = job.demand;
  const bool bytes = json.contains("need") || json.contains("per_sample");
  const int given = int{bytes} + int{json.contains("share")} + int{json.contains("estimate")};
  if (given == 0 && job.model) return models_.measure(*job.model, job.phases, demand);
  if (given != 1) {
    throw InputError(pointer,
                     "give one of \"need\" (with \"per_sample\" or not), \"share\" and \"estimate\".");
  }
  if (json.contains("need")) demand.fixed = size_value(json["need"]);
  if (json.contains("per_sample")) demand.per_sample = size_value(json["per_sample"]);
  if (json.contains("share")) {
    demand.share_milli = std::max<std::int64_t>(1, std::llround(json["share"].get<double>() * 1000));
  }
  if (!json.contains("estimate")) return;
  const Json& table = json["estimate"];
  demand.per_sample = estimated_bytes({.type = table["type"].get<std::string>(),
                                       .size = table.value("size", std::string{"medium"}),
                                       .batch = 1,
                                       .sequence = table.value("sequence", std::int64_t{512}),
                                       .training = table.value("training", true)},
                                      pointer + "/estimate");
}

std::uint32_t JobItems::account_of(const Json& name, const std::string& pointer) const {
  const auto account = accounts_.find(name.get<std::string>());
  if (account != accounts_.end()) return account->second;
  std::vector<std::string> names;
  for (const auto& [known, id] : accounts_) names.push_back(known);
  throw InputError(pointer,
                   "no quota is called " + name.dump() + "." + suggest_name(name.get<std::string>(), names));
}

std::vector<JobSort> JobItems::read_mix(const Json& mix, const std::string& pointer) {
  std::vector<JobSort> sorts;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    const Json& json = mix[i];
    const std::string where = pointer + "/" + std::to_string(i);
    JobSort sort{.name = json["name"].get<std::string>(),
                 .weight = json.value("weight", std::int64_t{1}),
                 .shortest = from_seconds(json["shortest_s"].get<double>()),
                 .longest = from_seconds(json["longest_s"].get<double>())};
    sort.demand.cards = json.value("cards", 1);
    sort.demand.priority = json.value("priority", 0);
    sort.demand.batch = json.value("batch", std::int64_t{1});
    sort.busy_milli = busy_milli(json);
    if (json.contains("need_low") != json.contains("need_high") ||
        json.contains("need_low") == json.contains("model")) {
      throw InputError(where, "give either \"need_low\" and \"need_high\", or \"model\".");
    }
    if (json.contains("model")) {
      const Json none = Json::object();
      sort.model = models_.read(json["model"], where + "/model");
      const Point point = JobModels::point(*sort.model, sort.demand.batch,
                                           json.contains("at") ? json["at"] : none, nullptr, where + "/at");
      sort.step = JobModels::phase(*sort.model, point, 1);
      models_.measure(*sort.model, {sort.step}, sort.demand);
    } else {
      sort.need_low = size_value(json["need_low"]);
      sort.need_high = size_value(json["need_high"]);
    }
    if (sort.need_low > sort.need_high || sort.shortest > sort.longest || sort.shortest <= SimTime{0}) {
      throw InputError(where, "a low end lies above its high end, or a duration is 0.");
    }
    sorts.push_back(std::move(sort));
  }
  if (sorts.empty()) throw InputError(pointer, "the list is empty.");
  return sorts;
}

}  // namespace vramlab
