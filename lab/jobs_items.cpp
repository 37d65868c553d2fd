#include "lab/jobs_items.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "lab/field_table.hpp"
#include "models/job_estimate.hpp"

namespace vramlab {
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
