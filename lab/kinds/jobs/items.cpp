#include "lab/kinds/jobs/items.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "core/random.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/scenario/file.hpp"
#include "models/job_estimate.hpp"
#include "models/measured.hpp"
#include "sim/runs/job_process.hpp"
#include "sim/runs/step_runner.hpp"

namespace vramlab {
namespace {

// First an octave between the two, then evenly within it: logarithms without floating point.
SimTime any_duration(Random& random, SimTime shortest, SimTime longest) {
  std::int64_t octaves = 0;
  while (shortest.count() << (octaves + 1) <= longest.count()) ++octaves;
  const std::int64_t low = shortest.count() << random.between(0, octaves);
  return SimTime{random.between(low, std::min(2 * low, longest.count()))};
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

constexpr Bytes kEndless = 1024_GiB * 1024;
constexpr int kMostSteps = 16;  // after the first ones at a point; memory has settled long before

std::vector<std::string> names_of(const ParameterSpace& space) {
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters) names.push_back(parameter.name);
  return names;
}

// The point with `batch` and the other parameters from `values` or, where they are not there, from `base`
// (may be null). Throws InputError at `pointer` for unknown, missing and unfit ones.
Point point_of(const JobModel& model, std::int64_t batch, const NamedIntegers& values, const Point* base,
               const std::string& pointer) {
  const ParameterSpace& space = model.workload->parameters();
  std::vector<Problem> problems;
  Point point = base != nullptr ? *base : Point(space.size());
  std::vector<bool> given(space.size(), base != nullptr);
  for (const auto& [key, value] : values) {
    const auto index = space.find(key);
    if (!index || *index == model.batch) {
      problems.push_back({pointer + "/" + key,
                          index ? "the batch is the job's \"batch\"."
                                : "the model has no such parameter." + suggest_name(key, names_of(space))});
      continue;
    }
    point[*index] = value;
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

// What takes longer would not fit the clock of the simulation.
constexpr SimTime kLongestSpan{static_cast<std::int64_t>(kLongestTime) * std::nano::den};
constexpr const char* kTooLong = "takes longer than 1000000000 seconds (31 years), the most that a job may.";

// A phase of `steps` steps at `point`: its duration is that of the steps, alone on a card. Throws InputError.
JobPhase steps_of(const JobModel& model, const Point& point, std::int64_t steps) {
  const SimTime step = model.workload->step(point).duration;
  if (step > kLongestSpan / steps) throw InputError("", kTooLong);
  JobPhase phase{.duration = step * steps};
  phase.steps = steps;
  phase.point = point;
  return phase;
}

// Does `read`, and puts the problems that it finds in the workload and the policy of an epoch, a scenario
// that `file` names, at the job's "epoch" and "composer".
template <class Read>
auto at_place(const std::string& file, const std::string& pointer, const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& one : problems) {
      if (one.where.starts_with(file + ": ")) one.where.erase(0, file.size() + 2);
      for (const std::string_view from : {"/workload", "/policies/0"}) {
        if (!one.where.starts_with(from)) continue;
        one.where = pointer + (from == "/workload" ? "/epoch" : "/composer") + one.where.substr(from.size());
        break;
      }
    }
    throw InputError(problems);
  }
}

bool says_use(const SpanSection& span) { return span.use.has_value() || span.use_per_sample > 0; }

JobPhase plain_phase(const SpanSection& span, const std::string& pointer) {
  if (!span.duration || span.steps || span.set) {
    throw InputError(pointer, "a job without a model needs \"duration_s\", and has no \"steps\" or \"set\".");
  }
  JobPhase phase{.duration = *span.duration, .use_per_sample = span.use_per_sample};
  if (says_use(span)) phase.fixed_use = span.use.value_or(0);
  return phase;
}

JobPhase model_phase(const SpanSection& span, const std::string& pointer, const JobSpec& job,
                     const Point& base) {
  if (!span.steps || span.duration || says_use(span)) {
    throw InputError(pointer, "a job with a model needs \"steps\"; time and use come from the model.");
  }
  const Point point =
      span.set ? point_of(*job.model, job.demand.batch, *span.set, &base, pointer + "/set") : base;
  return steps_of(*job.model, point, *span.steps);
}

}  // namespace

std::vector<JobSpec> generate_jobs(const std::vector<JobSort>& mix, std::int64_t count, SimTime span,
                                   std::uint64_t seed) {
  Random random{seed};
  std::vector<JobSpec> jobs;
  for (std::int64_t i = 0; i < count; ++i) {
    const JobSort& sort = random.one_of(mix, &JobSort::weight);
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
    if (!job.variants.empty()) continue;
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

JobModel JobModels::read(const Json& json, const std::string& pointer) {
  std::shared_ptr<const WorkloadModel> workload;
  if (json.is_object()) {
    workload = scenario_model(json, scenario_, pointer);
  } else {
    auto& known = models_[json.get<std::string>()];
    if (!known) known = scenario_model(json, scenario_, pointer);
    workload = known;
  }
  if (dynamic_cast<const MeasuredModel*>(workload.get()) != nullptr ||
      dynamic_cast<const LargestBatches*>(workload.get()) != nullptr) {
    throw InputError(pointer,
                     "measured points are for searches: they have no times, which a job's steps need.");
  }
  const auto batch = workload->parameters().find("batch");
  if (!batch) throw InputError(pointer, "the model has no parameter \"batch\", which a queue could set.");
  return {std::move(workload), *batch};
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
  SimulatedCard card{kEndless, 0};
  JobProcess process{card, context_, allocator_};
  StepPrograms programs{*model.workload};
  Bytes most = 0;
  const auto run = [&](const StepPrograms::Program& program) {
    const JobProcess::Step step = process.run(program.program, program.key, program.shape);
    if (!step.ok) throw InputError("", "the model takes more than a card can have.");
    most = std::max(most, process.holding().reserved);
    return step.settled;
  };
  if (!process.open()) throw InternalError("a context does not fit an empty card");
  run({.program = model.workload->build()});
  for (const Point& point : points) {
    const auto first = static_cast<int>(model.workload->first_steps());
    for (int i = 0; i < first + kMostSteps; ++i) {
      if (run(programs.next(point, static_cast<std::size_t>(i)))) break;
    }
  }
  return entry->second = most;
}

std::vector<JobSpec> JobItems::read(const std::vector<JobSection>& sections, const std::string& pointer,
                                    std::size_t first, FileProblems& problems) {
  std::vector<JobSpec> jobs;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const JobSection& section = sections[i];
    const std::string where = pointer + "/" + std::to_string(i);
    problems.guarded(where, [&] {
      if (section.every > kLongestSpan / section.count) {
        throw InputError(where + "/every_s", "the last of these jobs comes later than 31 years.");
      }
      const JobSpec job = read_job(section, where, first + jobs.size(), problems);
      for (std::int64_t n = 0; n < section.count; ++n) {
        jobs.push_back(job);
        jobs.back().arrival += section.every * n;
        if (section.count > 1) jobs.back().name.append(" ").append(std::to_string(n + 1));
        const std::string& name = jobs.back().name;
        if (names_.insert(name).second) continue;
        throw InputError(where + "/name",
                         "is that of an earlier job (\"" + name + "\"); names tell jobs apart.");
      }
    });
  }
  return jobs;
}

JobSpec JobItems::read_job(const JobSection& section, const std::string& pointer, std::size_t number,
                           FileProblems& problems) {
  JobSpec job = section;
  if (job.name.empty()) job.name = "job " + std::to_string(number);
  if (section.quota) job.demand.account = account_of(*section.quota, pointer + "/quota");
  read_phases(section, pointer, job);
  read_demand(section, pointer, job);
  read_variants(section, pointer, job, problems);
  if (section.epoch && !section.composer_section) {
    throw InputError(pointer + "/epoch", "goes with \"composer\", which is not given.");
  }
  if (section.composer_section) read_composer(section, pointer, job);
  if (section.tuner_section) read_tuner(section, pointer + "/tuner", job, problems);
  return job;
}

// It is read as the scenario of kind epoch that it would be on its own, and so are its problems; only their
// places are others.
void JobItems::read_composer(const JobSection& section, const std::string& pointer, JobSpec& job) const {
  if (!context_.simulates_steps) {
    throw InputError(pointer + "/composer",
                     "puts simulated batches together; set the scenario's \"fidelity\" to \"steps\".");
  }
  if (!section.epoch) {
    throw InputError(pointer + "/composer",
                     "goes with \"epoch\", its model and its data, which is not given.");
  }
  if (job.model || section.spans || !section.ways.empty() || section.tuner_section) {
    throw InputError(
        pointer + "/composer",
        "goes with none of \"model\", \"phases\", \"variants\" and \"tuner\"; what it trains is in "
        "\"epoch\".");
  }
  if (section.composer_section->json->contains("tuner")) {
    throw InputError(pointer + "/composer/tuner", "a composer in a job has no tuner of its own.");
  }
  const Json json{{"version", 1},
                  {"kind", "epoch"},
                  {"name", job.name},
                  {"seed", context_.seed},
                  {"device", {{"total", context_.card_total}}},
                  {"workload", *section.epoch->json},
                  {"policies", Json::array({*section.composer_section->json})}};
  EpochScenario epoch = at_place(context_.file, pointer, [&] {
    return read_epoch({.file = context_.file, .json = json, .kind = "epoch", .policies = context_.known});
  });
  EpochSetup& setup = epoch.setup;
  if (!setup.phases.empty() || setup.loss.balance || !epoch.model->timed()) {
    throw InputError(pointer + "/epoch",
                     "in a job it has neither \"phases\" nor losses, and its model's steps have times.");
  }
  const PolicyChoice choice = epoch.policies.front().choice;
  job.composer = JobComposer{.name = epoch.policies.front().label,
                             .make = [known = context_.known, choice,
                                      tasks = setup.tasks] { return known->composers.make(choice, tasks); },
                             .model = epoch.model,
                             .checkpointed = epoch.checkpointed,
                             .samples = std::make_shared<const std::vector<Sample>>(std::move(setup.samples)),
                             .epochs = setup.epochs};
  job.composer->data = {.samples = *job.composer->samples,
                        .target_batch = setup.target_batch,
                        .seed = setup.seed,
                        .shuffle = setup.shuffle,
                        .packs = setup.packs};
}

// Bad options are reported here, with the file's other problems, and not when the job begins.
void JobItems::read_tuner(const JobSection& section, const std::string& pointer, JobSpec& job,
                          FileProblems& problems) const {
  if (!context_.simulates_steps) {
    throw InputError(pointer, "moves simulated steps; set the scenario's \"fidelity\" to \"steps\".");
  }
  if (!job.model) throw InputError(pointer, "goes with \"model\", which is not given.");
  if (section.spans || !section.ways.empty()) {
    throw InputError(pointer, "goes with neither \"phases\" nor \"variants\".");
  }
  const JobTunerSection& tuner = *section.tuner_section;
  ParameterSpace bounds = job.model->workload->parameters();
  read_bounds(tuner.bounds, pointer + "/bounds", bounds, problems);
  const Point& start = job.phases.front().point;
  for (std::size_t i = 0; i < start.size(); ++i) {
    const Parameter& one = bounds.parameters[i];
    if (start[i] >= one.low && start[i] <= one.high) continue;
    problems.add(pointer + "/bounds", "the job starts at " + one.name + " " + std::to_string(start[i]) +
                                          ", outside [" + std::to_string(one.low) + ", " +
                                          std::to_string(one.high) + "].");
  }
  PolicyChoice choice{
      .use = tuner.use, .profile = tuner.profile.value_or(""), .options = {}, .where = pointer};
  choice.options = policy_options(*tuner.json, job_tuner_table(), pointer, problems);
  const std::string name = find_in(context_.known->tuners, /*names_both=*/true)(choice);
  const auto make = [known = context_.known, choice, bounds] { return known->tuners.make(choice, bounds); };
  make();
  job.tuner = JobTuner{name, make, bounds};
}

// A variant is read as the job that it would be on its own.
void JobItems::read_variants(const JobSection& section, const std::string& pointer, JobSpec& job,
                             FileProblems& problems) {
  if (!section.ways.empty() && (section.spans || job.demand.share_milli > 0)) {
    throw InputError(pointer + "/variants", "goes with neither \"phases\" nor \"share\".");
  }
  for (std::size_t i = 0; i < section.ways.size(); ++i) {
    const VariantSection& way = section.ways[i];
    JobSection as = section;
    as.ways.clear();
    as.tuner_section.reset();
    as.composer_section.reset();
    as.epoch.reset();
    as.name = way.name;
    as.estimate.reset();
    as.need = way.need;
    as.demand.per_sample = way.per_sample;
    as.whole.use = way.whole.use;
    as.whole.use_per_sample = way.whole.use_per_sample;
    if (way.model_json != nullptr) as.model_json = way.model_json;
    if (way.at) as.at = way.at;
    if (way.whole.duration) as.whole.duration = way.whole.duration;
    JobSpec one = read_job(as, pointer + "/variants/" + std::to_string(i), 0, problems);
    job.demand.variants.push_back(
        {one.name, one.demand.fixed, one.demand.per_sample, one.demand.least_batch});
    job.variants.push_back({std::move(one.phases), std::move(one.model)});
  }
}

void JobItems::read_phases(const JobSection& section, const std::string& pointer, JobSpec& job) {
  const bool has_model = section.model_json != nullptr;
  const bool whole = has_model ? section.whole.steps.has_value() : section.whole.duration.has_value();
  if (whole == section.spans.has_value()) {
    throw InputError(
        pointer, "give either \"" + std::string{has_model ? "steps" : "duration_s"} + "\" or \"phases\".");
  }
  Point base;
  if (has_model) {
    job.model = models_.read(*section.model_json, pointer + "/model");
    base = point_of(*job.model, job.demand.batch, section.at.value_or(NamedIntegers{}), nullptr,
                    pointer + "/at");
  } else if (section.at) {
    throw InputError(pointer + "/at", "goes with \"model\", which is not given.");
  }
  SimTime whole_time{0};
  const auto read = [&](const SpanSection& span, const std::string& where) {
    job.phases.push_back(has_model ? model_phase(span, where, job, base) : plain_phase(span, where));
    if (job.phases.back().duration <= SimTime{0}) {
      throw InputError(
          where, has_model ? "the model's steps were never timed, so that they take no time; \"vramlab fit "
                             "--times\" makes a model that has them."
                           : "a duration must be above 0.");
    }
    whole_time += job.phases.back().duration;
    if (whole_time > kLongestSpan) throw InputError(where, kTooLong);
  };
  if (!section.spans) return read(section.whole, pointer);
  for (std::size_t i = 0; i < section.spans->size(); ++i) {
    const SpanSection& span = (*section.spans)[i];
    read(span, pointer + "/phases/" + std::to_string(i));
    job.phases.back().need = span.need;
  }
  if (job.phases.empty()) throw InputError(pointer + "/phases", "the list is empty.");
}

void JobItems::read_demand(const JobSection& section, const std::string& pointer, JobSpec& job) {
  JobDemand& demand = job.demand;
  const bool bytes = section.need.has_value() || demand.per_sample > 0;
  const int given = int{bytes} + int{demand.share_milli > 0} + int{section.estimate.has_value()};
  if (given == 0 && job.model) return models_.measure(*job.model, job.phases, demand);
  if (given != 1) {
    throw InputError(pointer,
                     "give one of \"need\" (with \"per_sample\" or not), \"share\" and \"estimate\".");
  }
  demand.fixed = section.need.value_or(0);
  if (!section.estimate) return;
  JobEstimate one = *section.estimate;
  one.batch = 1;
  demand.per_sample = estimated_bytes(one, pointer + "/estimate");
}

std::uint32_t JobItems::account_of(const std::string& name, const std::string& pointer) const {
  const auto account = accounts_.find(name);
  if (account != accounts_.end()) return account->second;
  std::vector<std::string> names;
  for (const auto& [known, id] : accounts_) names.push_back(known);
  throw InputError(pointer, "no quota is called \"" + name + "\"." + suggest_name(name, names));
}

std::vector<JobSort> JobItems::read_mix(const std::vector<MixSection>& sections, const std::string& pointer) {
  std::vector<JobSort> sorts;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const MixSection& section = sections[i];
    const std::string where = pointer + "/" + std::to_string(i);
    const bool has_model = section.model_json != nullptr;
    if (section.low.has_value() != section.high.has_value() || section.low.has_value() == has_model) {
      throw InputError(where, "give either \"need_low\" and \"need_high\", or \"model\".");
    }
    JobSort sort = section;
    if (has_model) {
      sort.model = models_.read(*section.model_json, where + "/model");
      const Point point = point_of(*sort.model, sort.demand.batch, section.at.value_or(NamedIntegers{}),
                                   nullptr, where + "/at");
      sort.step = steps_of(*sort.model, point, 1);
      models_.measure(*sort.model, {sort.step}, sort.demand);
    } else {
      sort.need_low = *section.low;
      sort.need_high = *section.high;
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
