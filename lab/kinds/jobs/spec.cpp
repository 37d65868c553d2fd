#include "lab/kinds/jobs/spec.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
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
#include "recordings/open.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

// Variables of the published manager, and the options that they set.
constexpr std::array<std::pair<const char*, const char*>, 5> kEnvironment{
    {{"USE_GPU", "use_gpu"},
     {"GPU_DEVICE", "gpu_device"},
     {"MAX_CONCURRENT_JOBS", "max_concurrent_jobs"},
     {"JOB_TIMEOUT", "job_timeout_s"},
     {"SAFETY_MARGIN_MB", "safety_margin_mb"}}};

// A number, a truth as shells write it, or else the text, which the option then refuses.
OptionValue environment_value(std::string_view option, const std::string& text) {
  if (option == "use_gpu" && (text == "0" || text == "1")) return text == "1";
  std::string lower = text;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const Json json = Json::parse(lower, nullptr, /*allow_exceptions=*/false);
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return text;
}

/// Turns a document whose fields passed their checks into a scenario.
class JobsReader {
 public:
  explicit JobsReader(const ScenarioDocument& document) : path_(document.file), problems_(path_) {
    read_file(document, jobs_file_table(), file_);
    file_.known = with_plugins(file_.plugins, path_, document.policies, problems_);
  }

  JobsScenario read() {
    file_.draws = file_.generate.has_value() || file_.estimate_error > 0;
    problems_.guarded("/cards", [&] { read_pools(); });
    read_quotas();
    allocator_ = allocator_options(file_.allocator, problems_);
    if (!allocator_.backend.is_native()) {
      problems_.add("/allocator/backend", "jobs run on PyTorch's own allocator only: native.");
    }
    const std::vector<std::string> of_allocator = allocator_notes(allocator_);
    file_.notes.insert(file_.notes.end(), of_allocator.begin(), of_allocator.end());
    read_jobs();
    if (file_.jobs.empty() && !file_.trace && !file_.generate) {
      problems_.add("/jobs", "there are none: give \"jobs\", \"generate\" or \"trace\".");
    }
    mark_assumed_contexts();
    if (file_.simulates_steps) {
      contexts_.resize(file_.setup.cluster.pools.size(), kAssumedContext);
      file_.setup.steps = StepFidelity{contexts_, allocator_};
    }
    spread_estimates();
    require_strangers();
    const auto& known = file_.known->admitters;
    PolicyList list = read_policy_list(
        file_.policy_sections, {find_in(known), [&](const PolicyChoice& choice) { known.make(choice); }},
        problems_);
    file_.policies = std::move(list.entries);
    read_environment();
    if (file_.objective != QueueObjective::none) read_objective(list);
    require_expectations(list);
    problems_.throw_if_any();
    return std::move(file_);
  }

 private:
  [[nodiscard]] bool from_openb() const { return file_.trace && file_.trace->nodes; }

  void read_pools() {
    if (file_.pools.has_value() == from_openb()) {
      throw InputError("/cards", from_openb() ? "the cards come from \"trace\"; leave these out."
                                              : "there are no cards: give \"cards\".");
    }
    if (from_openb()) return;
    ClusterSetup& cluster = file_.setup.cluster;
    CardId first = 0;
    for (std::size_t i = 0; i < file_.pools->size(); ++i) {
      const PoolSection& section = (*file_.pools)[i];
      const std::string pointer = "/cards/" + std::to_string(i);
      if (section.gpu.has_value() == section.total.has_value()) {
        problems_.add(pointer, "give either \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory).");
        continue;
      }
      const Gpu* gpu = section.gpu ? &find_gpu(*section.gpu, pointer + "/gpu") : nullptr;
      const Bytes total = gpu != nullptr ? gpu->total : *section.total;
      const Bytes usual = gpu != nullptr ? gpu->context : kAssumedContext;
      context_assumed_ |= !section.context && (gpu == nullptr || gpu->context_assumed());
      const Bytes reserve = section.reserve;
      if (section.context && *section.context > total) {
        problems_.add(pointer + "/context", "the context is larger than the card.");
        continue;
      }
      if (reserve >= total) {
        problems_.add(pointer + "/reserve", "leaves nothing of the card.");
        continue;
      }
      if (cluster.pools.size() == 64) {
        problems_.add(pointer, "64 kinds of cards are the most.");
        break;
      }
      const std::uint32_t count = section.count;
      const std::uint32_t per_node = section.per_node.value_or(std::min<std::uint32_t>(count, 1024));
      cluster.pools.push_back({total - reserve});
      contexts_.push_back(section.context.value_or(usual));
      const auto pool = static_cast<std::uint32_t>(cluster.pools.size() - 1);
      for (std::uint32_t done = 0; done < count; done += per_node) {
        const std::uint32_t cards = std::min(per_node, count - done);
        cluster.nodes.push_back({pool, first, cards});
        first += cards;
      }
    }
    if (file_.pools->empty()) problems_.add("/cards", "the list is empty; name at least one card.");
  }

  void read_quotas() {
    for (const QuotaSection& quota : file_.quotas) {
      accounts_[quota.name] = static_cast<std::uint32_t>(file_.setup.cluster.quotas.size());
      file_.setup.cluster.quotas.emplace_back(quota.bytes);
    }
  }

  [[nodiscard]] fs::path trace_file(const std::optional<std::string>& name, const char* key) const {
    return data_file(name.value(), path_, std::string{"/trace/"} + key);
  }

  void read_trace(const TraceSection& trace, JobItems& items) {
    const int given =
        int{trace.jobs.has_value()} + int{trace.pods.has_value()} + int{trace.gavel.has_value()};
    if (given != 1 || trace.pods.has_value() != trace.nodes.has_value() ||
        trace.gavel.has_value() != trace.throughputs.has_value()) {
      throw InputError("/trace",
                       "give one of \"jobs\", \"pods\" with \"nodes\", and \"gavel\" with \"throughputs\".");
    }
    if (trace.jobs) return read_list(trace_file(trace.jobs, "jobs"), items);
    if (trace.gavel) return read_gavel_trace(trace);
    read_openb_trace(trace);
  }

  void read_list(const fs::path& name, JobItems& items) {
    InputFile list(name);
    if (require_kind(list, {FileKind::job_table, FileKind::job_list}) == FileKind::job_table) {
      file_.setup.jobs = read_job_list(list);
      return;
    }
    const Json json = parse_json(list.rest(), list.name());
    require_fields(json, job_list_table(), list.name() + ": ");
    file_.setup.jobs =
        items.read(read_section(json, job_list_table()).jobs, list.name() + ": /jobs", 0, problems_);
  }

  void read_gavel_trace(const TraceSection& section) {
    const GavelOptions& options = section.gavel_options;
    GavelTrace trace = read_gavel(trace_file(section.gavel, "gavel"),
                                  trace_file(section.throughputs, "throughputs"), options);
    file_.setup.jobs = std::move(trace.jobs);
    file_.notes.push_back(std::to_string(trace.lines) + " jobs: duration is steps / throughput on " +
                          options.gpu + "; " + std::to_string(trace.without_throughput) +
                          " without a measured throughput left out.");
    file_.notes.push_back("Assumed: each takes " + std::to_string(options.share_milli) +
                          " thousandths of each of its cards; the trace does not say.");
  }

  void read_openb_trace(const TraceSection& section) {
    const OpenbOptions& options = section.openb;
    OpenbTrace trace =
        read_openb(trace_file(section.pods, "pods"), trace_file(section.nodes, "nodes"), options);
    trace.cluster.quotas = file_.setup.cluster.quotas;
    file_.setup.cluster = std::move(trace.cluster);
    file_.setup.jobs = std::move(trace.jobs);
    std::string kinds;
    for (const std::string& kind : trace.assumed) kinds.append(kinds.empty() ? "" : ", ").append(kind);
    file_.notes.push_back(std::to_string(trace.pods) + " pods: " + std::to_string(trace.without_gpu) +
                          " without a GPU left out, " + std::to_string(trace.never_scheduled) +
                          " never scheduled there (duration = deletion - creation), " +
                          std::to_string(trace.without_duration) + " of 0 s (run for 1 s).");
    if (!kinds.empty()) {
      file_.notes.push_back("Assumed: " + kinds + " cards have " + format_bytes(options.anonymous_card) +
                            ".");
    }
  }

  // Jobs may name models, so that these are known by the cards' contexts and the allocator's settings.
  JobItems items() {
    const auto& contexts = contexts_;
    const Bytes context =
        contexts.empty() ? kAssumedContext : *std::max_element(contexts.begin(), contexts.end());
    Bytes largest = 0;
    for (const CardPool& pool : file_.setup.cluster.pools) largest = std::max(largest, pool.total);
    return {JobModels{path_, context, allocator_},
            accounts_,
            {file_.known, file_.simulates_steps, file_.seed, largest, path_.string()}};
  }

  void read_jobs() {
    JobItems items = this->items();
    auto& jobs = file_.setup.jobs;
    const auto add = [&](std::vector<JobSpec> more) {
      std::move(more.begin(), more.end(), std::back_inserter(jobs));
    };
    if (file_.trace) problems_.guarded("/trace", [&] { read_trace(*file_.trace, items); });
    items.keep_names(jobs);
    add(items.read(file_.jobs, "/jobs", jobs.size(), problems_));
    if (!file_.generate) return;
    problems_.guarded("/generate", [&] {
      const GenerateSection& generate = *file_.generate;
      add(generate_jobs(items.read_mix(generate.mix, "/generate/mix"), generate.jobs,
                        from_seconds(generate.hours * 3600), file_.seed));
    });
  }

  // Only simulated processes have a context; the need of a job with a model has it in it.
  void mark_assumed_contexts() {
    const bool has_model = std::any_of(file_.setup.jobs.begin(), file_.setup.jobs.end(),
                                       [](const JobSpec& job) { return job.model.has_value(); });
    const bool assumed = context_assumed_ || contexts_.size() < file_.setup.cluster.pools.size();
    file_.context_assumed = assumed && (file_.simulates_steps || has_model);
  }

  void spread_estimates() {
    const double error = file_.estimate_error;
    if (error <= 0) return;
    Bytes largest = 0;
    for (const CardPool& pool : file_.setup.cluster.pools) largest = std::max(largest, pool.total);
    spread_use(file_.setup.jobs, std::llround(error * 1000), largest, file_.seed);
  }

  void require_strangers() {
    const std::size_t cards = file_.cards();
    for (std::size_t i = 0; i < file_.setup.strangers.size(); ++i) {
      const Stranger& stranger = file_.setup.strangers[i];
      const std::string pointer = "/strangers/" + std::to_string(i);
      if (stranger.to <= stranger.from) problems_.add(pointer, "\"to_s\" must be later than \"from_s\".");
      if (stranger.card >= cards) {
        problems_.add(pointer + "/card", "there is no card " + std::to_string(stranger.card) +
                                             "; there are " + std::to_string(cards) + ", counted from 0.");
      }
    }
  }

  // The published manager takes its settings from the environment. What an entry says itself stands.
  void read_environment() {
    const auto& known = file_.known->admitters;
    for (PolicyEntry& entry : file_.policies) {
      if (entry.choice.use != "job-queue" || entry.choice.profile != "faithful") continue;
      for (const auto& [variable, option] : kEnvironment) {
        const char* const text = std::getenv(variable);
        if (text == nullptr || *text == 0 || entry.choice.options.find(option) != nullptr) continue;
        entry.choice.options.set(option, environment_value(option, text),
                                 std::string{"environment:"} + variable);
        file_.notes.push_back(entry.label + ": " + variable + "=" + text + " of the environment sets " +
                              option + ".");
      }
      problems_.guarded(entry.choice.where, [&] { known.make(entry.choice); });
    }
  }

  // With an objective there is an oracle, which expectations may name.
  void read_objective(PolicyList& list) {
    if (!is_steered(file_.setup)) {
      problems_.add("/objective", "is of jobs with a \"tuner\" or a \"composer\"; there is none.");
    }
    for (const PolicyEntry& entry : file_.policies) {
      if (entry.label != "oracle") continue;
      problems_.add(entry.choice.where + "/label",
                    "\"oracle\" is the best fixed choice; choose another label.");
    }
    list.labels.insert("oracle");
  }

  void require_expectations(const PolicyList& list) {
    const std::vector<Expectation>& all = file_.expectations;
    require_metric_expectations(all, list.labels, list.complete, names_of(jobs_metric_table()), problems_);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].share == 1 || file_.seeds > 1) continue;
      problems_.add("/expect/" + std::to_string(i) + "/share",
                    "goes with the scenario's \"seeds\", which is not given.");
    }
  }

  fs::path path_;
  JobsFile file_;
  std::map<std::string, std::uint32_t> accounts_;
  std::vector<Bytes> contexts_;   ///< by pool
  bool context_assumed_ = false;  ///< of one of them
  AllocatorOptions allocator_;
  FileProblems problems_;
};

}  // namespace

std::size_t JobsScenario::cards() const {
  std::size_t cards = 0;
  for (const CardNode& node : setup.cluster.nodes) cards += node.count;
  return cards;
}

const std::vector<std::string>& queue_objective_names() {
  static const std::vector<std::string> names{"none", "completion", "samples_per_s", "pixels_per_s"};
  return names;
}

const RecordBase& jobs_table() { return jobs_file_table(); }

JobsScenario read_jobs(const ScenarioDocument& document) { return JobsReader{document}.read(); }

}  // namespace vramlab
