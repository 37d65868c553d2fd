#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "lab/data_files.hpp"
#include "lab/jobs_generator.hpp"
#include "lab/jobs_scenario.hpp"
#include "lab/scenario_parts.hpp"
#include "models/gpu_catalogue.hpp"
#include "models/job_estimate.hpp"
#include "policies/admitter_registry.hpp"
#include "sim/core/error.hpp"
#include "trace/input_file.hpp"
#include "trace/job_list.hpp"
#include "trace/openb_trace.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// Turns a document whose fields passed their checks into a scenario.
class JobsReader {
 public:
  JobsReader(const Json& json, const fs::path& file) : json_(json), file_(file), problems_(file) {}

  JobsScenario read() {
    scenario_.file = file_.string();
    scenario_.name = json_["name"].get<std::string>();
    scenario_.description = json_.value("description", std::string{});
    scenario_.seed = json_.value("seed", std::uint64_t{1});
    scenario_.setup.start_up = from_seconds(json_.value("start_up_s", 0.0));
    guarded("/cards", [&] { read_cards(); });
    read_quotas();
    if (json_.contains("trace")) guarded("/trace", [&] { read_trace(json_["trace"]); });
    const std::size_t from_file = scenario_.setup.jobs.size();
    if (json_.contains("jobs")) read_jobs(json_["jobs"]);
    if (json_.contains("generate")) generate(json_["generate"]);
    if (!json_.contains("trace") && scenario_.setup.jobs.empty() && from_file == 0) {
      problem("", "there are no jobs: give \"jobs\", \"generate\" or \"trace\".");
    }
    spread_estimates();
    if (json_.contains("strangers")) read_strangers(json_["strangers"]);
    read_policies(json_["policies"]);
    if (json_.contains("expect")) read_expectations(json_["expect"]);
    problems_.throw_if_any();
    return std::move(scenario_);
  }

 private:
  void problem(const std::string& pointer, const std::string& what) { problems_.add(pointer, what); }

  template <class Work>
  void guarded(const std::string& pointer, const Work& work) {
    problems_.guarded(pointer, work);
  }

  [[nodiscard]] bool from_openb() const {
    return json_.contains("trace") && json_["trace"].contains("nodes");
  }

  void read_cards() {
    if (json_.contains("cards") == from_openb()) {
      throw InputError("/cards", from_openb() ? "the cards come from \"trace\"; leave these out."
                                              : "there are no cards: give \"cards\".");
    }
    if (from_openb()) return;
    ClusterSetup& cluster = scenario_.setup.cluster;
    CardId first = 0;
    for (std::size_t i = 0; i < json_["cards"].size(); ++i) {
      const Json& json = json_["cards"][i];
      const std::string pointer = "/cards/" + std::to_string(i);
      if (json.contains("gpu") == json.contains("total")) {
        problem(pointer, "give either \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory).");
        continue;
      }
      const Bytes total = json.contains("gpu")
                              ? find_gpu(json["gpu"].get<std::string>(), pointer + "/gpu").total
                              : size_value(json["total"]);
      const Bytes reserve = json.contains("reserve") ? size_value(json["reserve"]) : 0;
      if (reserve >= total) {
        problem(pointer + "/reserve", "leaves nothing of the card.");
        continue;
      }
      if (cluster.pools.size() == 64) {
        problem(pointer, "64 kinds of cards are the most.");
        break;
      }
      const auto count = json.value("count", std::uint32_t{1});
      const auto per_node = json.value("per_node", std::min<std::uint32_t>(count, 1024));
      cluster.pools.push_back({total - reserve});
      const auto pool = static_cast<std::uint32_t>(cluster.pools.size() - 1);
      for (std::uint32_t done = 0; done < count; done += per_node) {
        const std::uint32_t cards = std::min(per_node, count - done);
        cluster.nodes.push_back({pool, first, cards});
        first += cards;
      }
    }
    if (json_["cards"].empty()) problem("/cards", "the list is empty; name at least one card.");
  }

  void read_quotas() {
    if (!json_.contains("quotas")) return;
    for (const Json& quota : json_["quotas"]) {
      accounts_[quota["name"].get<std::string>()] =
          static_cast<std::uint32_t>(scenario_.setup.cluster.quotas.size());
      scenario_.setup.cluster.quotas.emplace_back(size_value(quota["bytes"]));
    }
  }

  fs::path data_file(const Json& name, const std::string& pointer) const {
    const auto path = find_data_file(name.get<std::string>(), file_);
    if (path) return *path;
    throw InputError(pointer,
                     "there is no file " + name.dump() + " beside the scenario, in the data folder or here.");
  }

  void read_trace(const Json& json) {
    if (json.contains("jobs") == json.contains("pods") || json.contains("pods") != json.contains("nodes")) {
      throw InputError("/trace", "give either \"jobs\", or \"pods\" and \"nodes\".");
    }
    if (json.contains("jobs")) {
      scenario_.setup.jobs = read_job_list(data_file(json["jobs"], "/trace/jobs"));
      return;
    }
    OpenbOptions options;
    if (json.contains("anonymous_card")) options.anonymous_card = size_value(json["anonymous_card"]);
    OpenbTrace trace =
        read_openb(data_file(json["pods"], "/trace/pods"), data_file(json["nodes"], "/trace/nodes"), options);
    trace.cluster.quotas = scenario_.setup.cluster.quotas;
    scenario_.setup.cluster = std::move(trace.cluster);
    scenario_.setup.jobs = std::move(trace.jobs);
    std::string kinds;
    for (const std::string& kind : trace.assumed) kinds.append(kinds.empty() ? "" : ", ").append(kind);
    scenario_.notes.push_back(std::to_string(trace.pods) + " pods: " + std::to_string(trace.without_gpu) +
                              " without a GPU left out, " + std::to_string(trace.never_scheduled) +
                              " never scheduled there (duration = deletion - creation), " +
                              std::to_string(trace.without_duration) + " of 0 s (run for 1 s).");
    if (!kinds.empty()) {
      scenario_.notes.push_back("Assumed: " + kinds + " cards have " + format_bytes(options.anonymous_card) +
                                ".");
    }
  }

  void read_jobs(const Json& jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::string pointer = "/jobs/" + std::to_string(i);
      guarded(pointer, [&] {
        const JobSpec job = read_job(jobs[i], pointer);
        const auto count = jobs[i].value("count", std::int64_t{1});
        const SimTime every = from_seconds(jobs[i].value("every_s", 0.0));
        for (std::int64_t n = 0; n < count; ++n) {
          scenario_.setup.jobs.push_back(job);
          scenario_.setup.jobs.back().arrival += every * n;
          if (count > 1) scenario_.setup.jobs.back().name.append(" ").append(std::to_string(n + 1));
        }
      });
    }
  }

  JobSpec read_job(const Json& json, const std::string& pointer) {
    JobSpec job;
    job.name = json.value("name", "job " + std::to_string(scenario_.setup.jobs.size()));
    job.arrival = from_seconds(json.value("arrival_s", 0.0));
    job.demand = read_demand(json, pointer);
    if (json.contains("expected_s")) job.expected = from_seconds(json["expected_s"].get<double>());
    if (json.contains("crash_after_s")) job.crash_after = from_seconds(json["crash_after_s"].get<double>());
    if (json.contains("duration_s") == json.contains("phases")) {
      throw InputError(pointer, "give either \"duration_s\" or \"phases\".");
    }
    if (json.contains("phases")) {
      for (const Json& phase : json["phases"]) job.phases.push_back(read_phase(phase));
    } else {
      job.phases = {read_phase(json)};
      job.phases.front().need.reset();  // the job's own
    }
    if (job.phases.empty()) throw InputError(pointer + "/phases", "the list is empty.");
    for (const JobPhase& phase : job.phases) {
      if (phase.duration <= SimTime{0}) throw InputError(pointer, "a duration must be above 0.");
    }
    return job;
  }

  static JobPhase read_phase(const Json& json) {
    JobPhase phase{.duration = from_seconds(json["duration_s"].get<double>())};
    if (json.contains("use") || json.contains("use_per_sample")) {
      phase.fixed_use = json.contains("use") ? size_value(json["use"]) : 0;
    }
    if (json.contains("use_per_sample")) phase.use_per_sample = size_value(json["use_per_sample"]);
    if (json.contains("need")) phase.need = size_value(json["need"]);
    return phase;
  }

  JobDemand read_demand(const Json& json, const std::string& pointer) {
    JobDemand demand;
    demand.batch = json.value("batch", std::int64_t{1});
    demand.cards = json.value("cards", 1);
    demand.priority = json.value("priority", 0);
    const bool bytes = json.contains("need") || json.contains("per_sample");
    if (int{bytes} + int{json.contains("share")} + int{json.contains("estimate")} != 1) {
      throw InputError(pointer,
                       "give one of \"need\" (with \"per_sample\" or not), \"share\" and \"estimate\".");
    }
    if (json.contains("need")) demand.fixed = size_value(json["need"]);
    if (json.contains("per_sample")) demand.per_sample = size_value(json["per_sample"]);
    if (json.contains("share")) {
      demand.share_milli = std::max<std::int64_t>(1, std::llround(json["share"].get<double>() * 1000));
    }
    if (json.contains("estimate")) {
      const Json& table = json["estimate"];
      demand.per_sample = estimated_bytes({.type = table["type"].get<std::string>(),
                                           .size = table.value("size", std::string{"medium"}),
                                           .batch = 1,
                                           .sequence = table.value("sequence", std::int64_t{512}),
                                           .training = table.value("training", true)},
                                          pointer + "/estimate");
    }
    if (json.contains("quota")) {
      const auto account = accounts_.find(json["quota"].get<std::string>());
      if (account == accounts_.end()) {
        std::vector<std::string> names;
        for (const auto& [name, id] : accounts_) names.push_back(name);
        throw InputError(pointer + "/quota", "no quota is called " + json["quota"].dump() + "." +
                                                 suggest_name(json["quota"].get<std::string>(), names));
      }
      demand.account = account->second;
    }
    return demand;
  }

  void generate(const Json& json) {
    std::vector<JobSort> mix;
    for (std::size_t i = 0; i < json["mix"].size(); ++i) {
      const Json& sort = json["mix"][i];
      JobSort read{.name = sort["name"].get<std::string>(),
                   .weight = sort.value("weight", std::int64_t{1}),
                   .need_low = size_value(sort["need_low"]),
                   .need_high = size_value(sort["need_high"]),
                   .shortest = from_seconds(sort["shortest_s"].get<double>()),
                   .longest = from_seconds(sort["longest_s"].get<double>())};
      read.demand.cards = sort.value("cards", 1);
      read.demand.priority = sort.value("priority", 0);
      read.demand.batch = sort.value("batch", std::int64_t{1});
      if (read.need_low > read.need_high || read.shortest > read.longest || read.shortest <= SimTime{0}) {
        problem("/generate/mix/" + std::to_string(i),
                "a low end lies above its high end, or a duration is 0.");
        return;
      }
      mix.push_back(std::move(read));
    }
    if (mix.empty()) return problem("/generate/mix", "the list is empty.");
    auto drawn = generate_jobs(mix, json["jobs"].get<std::int64_t>(),
                               from_seconds(json["hours"].get<double>() * 3600), scenario_.seed);
    std::move(drawn.begin(), drawn.end(), std::back_inserter(scenario_.setup.jobs));
  }

  void spread_estimates() {
    const double error = json_.value("estimate_error", 0.0);
    if (error <= 0) return;
    Bytes largest = 0;
    for (const CardPool& pool : scenario_.setup.cluster.pools) largest = std::max(largest, pool.total);
    spread_use(scenario_.setup.jobs, std::llround(error * 1000), largest, scenario_.seed);
  }

  void read_strangers(const Json& strangers) {
    std::size_t cards = 0;
    for (const CardNode& node : scenario_.setup.cluster.nodes) cards += node.count;
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      const Json& json = strangers[i];
      const std::string pointer = "/strangers/" + std::to_string(i);
      Stranger stranger{.card = json["card"].get<CardId>(),
                        .from = from_seconds(json.value("from_s", 0.0)),
                        .to = SimTime::max(),
                        .bytes = size_value(json["bytes"])};
      if (json.contains("to_s")) stranger.to = from_seconds(json["to_s"].get<double>());
      if (stranger.to <= stranger.from) problem(pointer, "\"to_s\" must be later than \"from_s\".");
      if (stranger.card >= cards) {
        problem(pointer + "/card", "there is no card " + std::to_string(stranger.card) + "; there are " +
                                       std::to_string(cards) + ", counted from 0.");
      }
      scenario_.setup.strangers.push_back(stranger);
    }
  }

  void read_policies(const Json& policies) {
    if (policies.empty()) problem("/policies", "the list is empty; name at least one policy.");
    for (std::size_t i = 0; i < policies.size(); ++i) {
      const std::string pointer = "/policies/" + std::to_string(i);
      const std::size_t before = scenario_.policies.size();
      guarded(pointer, [&] { read_policy(policies[i], pointer); });
      all_policies_read_ = all_policies_read_ && scenario_.policies.size() == before + 1;
    }
  }

  void read_policy(const Json& json, const std::string& pointer) {
    PolicyEntry entry;
    entry.choice.use = json["use"].get<std::string>();
    entry.choice.profile = json.value("profile", std::string{});
    entry.choice.where = pointer;
    const AdmitterEntry& admitter = find_admitter(entry.choice.use, pointer + "/use");
    entry.choice.profile = find_profile(admitter, entry.choice.profile, pointer + "/profile").name;
    entry.label = json.value("label", entry.choice.profile);
    if (!labels_.insert(entry.label).second) {
      problem(pointer,
              "the label \"" + entry.label + "\" is taken. Give this policy a \"label\" of its own.");
    }
    static const std::set<std::string> kOwnKeys{"use", "profile", "label"};
    entry.choice.options = policy_options(json, kOwnKeys, pointer, problems_);
    make_admitter(entry.choice);  // bad options are reported here, with the file's other problems
    scenario_.policies.push_back(std::move(entry));
  }

  void read_expectations(const Json& expectations) {
    for (std::size_t i = 0; i < expectations.size(); ++i) {
      const Json& json = expectations[i];
      const std::string pointer = "/expect/" + std::to_string(i);
      Expectation expectation{.policy = json["policy"].get<std::string>(),
                              .name = json["metric"].get<std::string>()};
      if (all_policies_read_) {
        require_expected_labels(json, "policy", pointer, {labels_.begin(), labels_.end()}, problems_);
      }
      const auto names = jobs_metric_names();
      if (std::find(names.begin(), names.end(), expectation.name) == names.end()) {
        problem(pointer + "/metric",
                "\"" + expectation.name + "\" is no metric." + suggest_name(expectation.name, names));
      }
      read_expected_bounds(json, pointer, expectation, problems_);
      if (json.contains("share") && !json_.contains("seeds")) {
        problem(pointer + "/share", "goes with the scenario's \"seeds\", which is not given.");
      }
      scenario_.expectations.push_back(std::move(expectation));
    }
  }

  const Json& json_;
  const fs::path& file_;
  JobsScenario scenario_;
  std::map<std::string, std::uint32_t> accounts_;
  std::set<std::string> labels_;
  bool all_policies_read_ = true;  ///< else a label may be that of a policy with another fault
  FileProblems problems_;
};

}  // namespace

JobsScenario parse_jobs_scenario(const std::string& text, const fs::path& file) {
  const Json json = parse_json(text, file.string());
  std::vector<Problem> problems;
  check_fields(json, jobs_fields(), /*open=*/false, "", problems);
  for (Problem& problem : problems) problem.where = file.string() + ": " + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
  return JobsReader{json, file}.read();
}

JobsScenario read_jobs_scenario(const fs::path& file) {
  return parse_jobs_scenario(read_input_file(file), file);
}

}  // namespace vramlab
