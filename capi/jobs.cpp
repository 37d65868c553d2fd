// Admitters behind C functions: the queue of the jobs that share the cards of a machine.
#include <optional>
#include <string>
#include <utility>

#include "capi/description.hpp"
#include "policies/contract/job_session.hpp"

namespace vramlab {
namespace {

constexpr const char* kSavedQueue = "queue-1";
constexpr std::initializer_list<const char*> kStates{"waits", "runs", "refused", "failed"};

// Numbers of a demand that only part of 64 bits may hold.
std::int32_t small_number_or(const Json& json, const char* key, std::int32_t otherwise,
                             const std::string& where) {
  const std::int64_t number = whole_number_or(json, key, otherwise, where);
  if (number == static_cast<std::int32_t>(number)) return static_cast<std::int32_t>(number);
  throw InputError(where + "/" + key, "is out of range: " + std::to_string(number) + ".");
}

std::vector<DemandVariant> variants_of(const Json& json, const std::string& where) {
  if (!json.contains("variants")) return {};
  if (!json["variants"].is_array()) throw InputError(where + "/variants", "must be a list.");
  std::vector<DemandVariant> variants;
  for (const Json& one : json["variants"]) {
    const std::string place = where + "/variants/" + std::to_string(variants.size());
    if (!one.is_object()) throw InputError(place, "must have a name and a need.");
    variants.push_back({.name = text_of(one, "name", place),
                        .fixed = bytes_or(one, "need", 0, place),
                        .per_sample = bytes_or(one, "per_sample", 0, place),
                        .least_batch = whole_number_or(one, "least_batch", 1, place)});
  }
  return variants;
}

JobDemand demand_of(const Json& json, const char* cards, const std::string& where = {}) {
  const std::int64_t batch = whole_number_or(json, "batch", 1, where);
  return {.fixed = bytes_or(json, "need", 0, where),
          .per_sample = bytes_or(json, "per_sample", 0, where),
          .least_batch = whole_number_or(json, "least_batch", 1, where),
          .share_milli = whole_number_or(json, "share_milli", 0, where),
          .batch = batch,
          .effective = whole_number_or(json, "effective", batch, where),
          .cards = small_number_or(json, cards, 1, where),
          .priority = small_number_or(json, "priority", 0, where),
          .overdue = flag_or(json, "overdue", false),
          .variants = variants_of(json, where)};
}

SimTime time_or(const Json& json, const char* key, SimTime otherwise, const std::string& where = {}) {
  const std::int64_t time = whole_number_or(json, key, otherwise.count(), where);
  if (time < 0) throw InputError(where + "/" + key, "is below 0.");
  return SimTime{time};
}

Json job_json(const QueuedJob& job) {
  return {{"id", job.id},
          {"name", job.name},
          {"state", word_for(job.state, kStates)},
          {"cards", job.cards},
          {"need", job.need},
          {"used", job.used},
          {"batch", job.split.batch},
          {"accumulation", job.split.accumulation},
          {"variant", job.split.variant == 0 ? "" : job.demand.variants[job.split.variant - 1].name},
          {"variant_number", job.split.variant},
          {"reason", job.reason},
          {"demand", demand_json(job.demand, "cards_wanted")},
          {"attempts", job.attempts},
          {"submitted_ns", job.submitted.count()},
          {"since_ns", job.since.count()},
          {"expected_ns", job.expected.count()},
          {"patience_ns", job.patience.count()},
          {"ticket", job.ticket},
          {"reconsidered", job.reconsidered},
          {"asked", job.asked}};
}

QueuedJob job_of(const Json& json, const std::string& where) {
  if (!json.is_object() || !json.contains("demand") || !json["demand"].is_object()) {
    throw InputError(where, "is not a job with a demand.");
  }
  QueuedJob job{
      .id = static_cast<JobId>(small_number_or(json, "id", 0, where)),
      .name = text_of(json, "name", where),
      .demand = demand_of(json["demand"], "cards_wanted", where + "/demand"),
      .state = value_of<QueuedJob::State>(text_of(json, "state", where), kStates, where + "/state"),
      .submitted = time_or(json, "submitted_ns", SimTime{0}, where),
      .since = time_or(json, "since_ns", SimTime{0}, where),
      .expected = time_or(json, "expected_ns", SimTime::max(), where),
      .patience = time_or(json, "patience_ns", SimTime{0}, where),
      .ticket = static_cast<std::uint64_t>(whole_number(json, "ticket", where)),
      .reconsidered = flag_or(json, "reconsidered", false),
      .asked = flag_or(json, "asked", false),
      .attempts = small_number_or(json, "attempts", 0, where),
      .cards = numbers_of<CardId>(json, "cards"),
      .need = bytes_or(json, "need", 0, where),
      .used = bytes_or(json, "used", 0, where),
      .split = {whole_number_or(json, "batch", 1, where), whole_number_or(json, "accumulation", 1, where),
                static_cast<std::size_t>(bytes_or(json, "variant_number", 0, where))},
      .reason = text_of(json, "reason", where)};
  return job;
}

QueueBooks books_of(const Json& json) {
  if (text_of(json, "saved") != kSavedQueue || !json.contains("jobs") || !json["jobs"].is_array()) {
    throw InputError("", "this is not a saved queue. Give the text that was saved, unchanged.");
  }
  QueueBooks books{.foreign = numbers_of<Bytes>(json, "foreign"),
                   .next_id = static_cast<JobId>(small_number_or(json, "next_id", 0, "")),
                   .next_ticket = static_cast<std::uint64_t>(whole_number(json, "next_ticket", ""))};
  for (const Json& job : json["jobs"]) {
    books.jobs.push_back(job_of(job, "/jobs/" + std::to_string(books.jobs.size())));
  }
  return books;
}

std::string books_text(const QueueBooks& books) {
  Json jobs = Json::array();
  for (const QueuedJob& job : books.jobs) jobs.push_back(job_json(job));
  return Json{{"saved", kSavedQueue},
              {"next_id", books.next_id},
              {"next_ticket", books.next_ticket},
              {"foreign", books.foreign},
              {"jobs", std::move(jobs)}}
      .dump();
}

// What takes a host that is also the jobs' program.
std::unique_ptr<Admitter> admitter_for_programs(std::unique_ptr<Admitter> policy) {
  const QueueRules rules = policy->rules();
  if (rules.per_phase) throw InputError("", "a policy that admits by phase is for simulated queues.");
  if (rules.enforces_promise) {
    throw InputError("", "a policy that enforces promises is for simulated queues; a program limits itself.");
  }
  return policy;
}

SimTime checked_time(std::int64_t now_ns) {
  if (now_ns >= 0) return SimTime{now_ns};
  throw InputError("now_ns", "is below 0.");
}

}  // namespace
}  // namespace vramlab

struct vramlab_admitter {
  std::optional<vramlab::AdmitterSession> session;
  std::string text;
};

namespace {

using vramlab::guarded;
using vramlab::parse_object;
using vramlab::require;
using vramlab::text_from;

}  // namespace

vramlab_admitter* vramlab_admitter_create(const char* json) {
  vramlab_admitter* result = nullptr;
  guarded([&] {
    const vramlab::Json described = parse_object(json, "the admitter's description");
    auto made = std::make_unique<vramlab_admitter>();
    const auto choice = vramlab::read_choice(described, {"cards"});
    made->session.emplace(
        vramlab::admitter_for_programs(vramlab::policies_for(described)->admitters.make(choice)),
        vramlab::numbers_of<vramlab::Bytes>(described, "cards"));
    result = made.release();
  });
  return result;
}

void vramlab_admitter_destroy(vramlab_admitter* admitter) { delete admitter; }

const char* vramlab_admitter_save(vramlab_admitter* admitter) {
  return text_from(admitter, "the admitter", [&] { return vramlab::books_text(admitter->session->books()); });
}

int vramlab_admitter_load(vramlab_admitter* admitter, const char* saved) {
  return guarded([&] {
    require(admitter, "the admitter");
    admitter->session->restore(vramlab::books_of(parse_object(saved, "the saved queue")));
  });
}

int vramlab_admitter_submit(vramlab_admitter* admitter, const char* json, int64_t now_ns, uint32_t* job) {
  return guarded([&] {
    require(admitter, "the admitter");
    require(job, "the place for the job's number");
    const vramlab::Json described = parse_object(json, "the job");
    *job = admitter->session->submit(
        {.name = vramlab::text_of(described, "name"),
         .demand = vramlab::demand_of(described, "cards"),
         .expected = vramlab::time_or(described, "expected_ns", vramlab::SimTime::max()),
         .patience = vramlab::time_or(described, "patience_ns", vramlab::SimTime{0})},
        vramlab::checked_time(now_ns));
  });
}

int vramlab_admitter_examine(vramlab_admitter* admitter, int64_t now_ns) {
  return guarded([&] {
    require(admitter, "the admitter");
    admitter->session->examine(vramlab::checked_time(now_ns));
  });
}

const char* vramlab_admitter_job(vramlab_admitter* admitter, uint32_t job) {
  return text_from(admitter, "the admitter",
                   [&] { return vramlab::job_json(admitter->session->job(job)).dump(); });
}

int vramlab_admitter_out_of_memory(vramlab_admitter* admitter, uint32_t job, int64_t now_ns) {
  return guarded([&] {
    require(admitter, "the admitter");
    admitter->session->out_of_memory(job, vramlab::checked_time(now_ns));
  });
}

int vramlab_admitter_leave(vramlab_admitter* admitter, uint32_t job) {
  return guarded([&] {
    require(admitter, "the admitter");
    admitter->session->leave(job);
  });
}

int vramlab_admitter_used(vramlab_admitter* admitter, uint32_t job, uint64_t bytes) {
  return guarded([&] {
    require(admitter, "the admitter");
    admitter->session->set_used(job, bytes);
  });
}

int vramlab_admitter_foreign(vramlab_admitter* admitter, uint32_t card, uint64_t bytes) {
  return guarded([&] {
    require(admitter, "the admitter");
    admitter->session->set_foreign(card, bytes);
  });
}
