#include "lab/kinds/jobs/spec.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "lab/kinds/jobs/items.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "models/gpu_catalogue.hpp"
#include "policies/contract/policy_set.hpp"
#include "recordings/input_file.hpp"
#include "recordings/jobs/job_lists.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kAssumedContext = 527_MiB;  // where a card is given by size alone; an H100's is 526.8 (R10.4)

/// Turns a document whose fields passed their checks into a scenario.
class JobsReader {
 public:
  explicit JobsReader(const ScenarioDocument& document)
      : document_(document), json_(document.json), file_(document.file), problems_(file_) {}

  JobsScenario read() {
    read_base(document_, scenario_, problems_);
    scenario_.draws = json_.contains("generate") || json_.value("estimate_error", 0.0) > 0;
    scenario_.setup.start_up = from_seconds(json_.value("start_up_s", 0.0));
    guarded("/cards", [&] { read_cards(); });
    read_quotas();
    allocator_.settings = allocator_settings(json_, problems_);
    read_jobs();
    const bool listed = json_.contains("jobs") && !json_["jobs"].empty();
    if (!listed && !json_.contains("trace") && !json_.contains("generate")) {
      problem("", "there are no jobs: give \"jobs\", \"generate\" or \"trace\".");
    }
    if (json_.value("fidelity", std::string{}) == "steps") {
      contexts_.resize(scenario_.setup.cluster.pools.size(), kAssumedContext);
      scenario_.setup.steps = StepFidelity{contexts_, allocator_};
    }
    spread_estimates();
    if (json_.contains("strangers")) read_strangers(json_["strangers"]);
    PolicyList list = read_policy_list(json_["policies"], family(), problems_);
    scenario_.policies = std::move(list.entries);
    scenario_.expectations =
        read_metric_expectations(json_, list.labels, list.complete, jobs_metric_names(), problems_);
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
      Bytes context =
          json.contains("gpu") ? find_gpu(json["gpu"].get<std::string>()).context : kAssumedContext;
      if (json.contains("context")) context = size_value(json["context"]);
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
      contexts_.push_back(context);
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
                     "there is no file " + name.dump() + " beside the scenario, here or in the data folder.");
  }

  void read_trace(const Json& json, JobItems& items) {
    const int given = int{json.contains("jobs")} + int{json.contains("pods")} + int{json.contains("gavel")};
    if (given != 1 || json.contains("pods") != json.contains("nodes") ||
        json.contains("gavel") != json.contains("throughputs")) {
      throw InputError("/trace",
                       "give one of \"jobs\", \"pods\" with \"nodes\", and \"gavel\" with \"throughputs\".");
    }
    if (json.contains("jobs")) return read_list(data_file(json["jobs"], "/trace/jobs"), items);
    if (json.contains("gavel")) return read_gavel_trace(json);
    read_openb_trace(json);
  }

  void read_list(const fs::path& list, JobItems& items) {
    if (!is_json_name(list)) {
      scenario_.setup.jobs = read_job_list(list);
      return;
    }
    const Json json = read_json_file(list);
    std::vector<Problem> problems;
    check_fields(json, job_list_fields(), /*open=*/false, "", problems);
    for (Problem& one : problems) one.where = list.string() + ": " + one.where;
    if (!problems.empty()) throw InputError(std::move(problems));
    scenario_.setup.jobs = items.read(json["jobs"], list.string() + ": /jobs", 0, problems_);
  }

  static bool is_json_name(const fs::path& file) {
    const std::string name = file.filename().string();
    return name.ends_with(".json") || name.ends_with(".json.gz");
  }

  void read_gavel_trace(const Json& json) {
    GavelOptions options;
    options.gpu = json.value("gpu", options.gpu);
    if (json.contains("share")) options.share_milli = std::llround(json["share"].get<double>() * 1000);
    GavelTrace trace = read_gavel(data_file(json["gavel"], "/trace/gavel"),
                                  data_file(json["throughputs"], "/trace/throughputs"), options);
    scenario_.setup.jobs = std::move(trace.jobs);
    scenario_.notes.push_back(std::to_string(trace.lines) + " jobs: duration is steps / throughput on " +
                              options.gpu + "; " + std::to_string(trace.without_throughput) +
                              " without a measured throughput left out.");
    scenario_.notes.push_back("Assumed: each takes " + std::to_string(options.share_milli) +
                              " thousandths of each of its cards; the trace does not say.");
  }

  void read_openb_trace(const Json& json) {
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

  // Jobs may name models, so that these are known by the cards' contexts and the allocator's settings.
  JobItems items() {
    const auto& contexts = contexts_;
    const Bytes context =
        contexts.empty() ? kAssumedContext : *std::max_element(contexts.begin(), contexts.end());
    return {JobModels{file_, context, allocator_}, accounts_};
  }

  void read_jobs() {
    JobItems items = this->items();
    auto& jobs = scenario_.setup.jobs;
    const auto add = [&](std::vector<JobSpec> more) {
      std::move(more.begin(), more.end(), std::back_inserter(jobs));
    };
    if (json_.contains("trace")) guarded("/trace", [&] { read_trace(json_["trace"], items); });
    if (json_.contains("jobs")) add(items.read(json_["jobs"], "/jobs", jobs.size(), problems_));
    if (!json_.contains("generate")) return;
    guarded("/generate", [&] {
      const Json& generate = json_["generate"];
      add(generate_jobs(items.read_mix(generate["mix"], "/generate/mix"),
                        generate["jobs"].get<std::int64_t>(),
                        from_seconds(generate["hours"].get<double>() * 3600), scenario_.seed));
    });
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
      stranger.busy_milli = static_cast<std::int32_t>(std::llround(json.value("busy", 0.0) * 1000));
      if (json.contains("to_s")) stranger.to = from_seconds(json["to_s"].get<double>());
      if (stranger.to <= stranger.from) problem(pointer, "\"to_s\" must be later than \"from_s\".");
      if (stranger.card >= cards) {
        problem(pointer + "/card", "there is no card " + std::to_string(stranger.card) + "; there are " +
                                       std::to_string(cards) + ", counted from 0.");
      }
      scenario_.setup.strangers.push_back(stranger);
    }
  }

  PolicyFamily family() {
    return {
        .find =
            [this](TunerChoice& choice) {
              const AdmitterEntry& admitter =
                  find_admitter(choice.use, choice.where + "/use", scenario_.known->admitters);
              choice.profile = full_profile_name(admitter, choice);
              return choice.profile.empty() ? admitter.name : choice.profile;
            },
        .try_out = [this](const TunerChoice& choice) { make_admitter(choice, scenario_.known->admitters); }};
  }

  const ScenarioDocument& document_;
  const Json& json_;
  fs::path file_;
  JobsScenario scenario_;
  std::map<std::string, std::uint32_t> accounts_;
  std::vector<Bytes> contexts_;  ///< by pool
  AllocatorOptions allocator_;
  FileProblems problems_;
};

}  // namespace

JobsScenario read_jobs(const ScenarioDocument& document) {
  require_fields(document, jobs_fields());
  return JobsReader{document}.read();
}

}  // namespace vramlab
