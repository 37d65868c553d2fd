// The admitters among the policies that another program answers for.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "capi/callbacks.hpp"

namespace vramlab {
namespace {

constexpr std::initializer_list<const char*> kQueueEvents{"submitted", "examine", "deadline", "oom"};
constexpr std::initializer_list<const char*> kAdmissions{"wait", "start",   "refuse",
                                                         "fail", "requeue", "to_back"};

// With the number of its quota, which only the policy of a queue sees.
Json asked_demand(const JobDemand& demand) {
  Json json = demand_json(demand, "cards");
  json["account"] = demand.account;
  return json;
}

Json time_json(SimTime time) { return time == SimTime::max() ? Json(nullptr) : Json(time.count()); }

QueueRules rules_of(const Json& made) {
  const Json json = made.value("rules", Json::object());
  QueueRules rules;
  const std::map<std::string, SimTime*> times{{"wait_timeout_s", &rules.wait_timeout},
                                              {"poll_s", &rules.poll},
                                              {"job_timeout_s", &rules.job_timeout},
                                              {"lease_s", &rules.lease}};
  for (const auto& [name, value] : json.items()) {
    constexpr double kMostSeconds = 1e9;
    const std::string where = "/rules/" + name;
    if (name == "per_phase" || name == "enforces_promise") {
      (name == "per_phase" ? rules.per_phase : rules.enforces_promise) = flag_or(json, name.c_str(), false);
    } else if (!times.contains(name)) {
      throw InputError(where,
                       "is no rule. Known: wait_timeout_s, poll_s, job_timeout_s, lease_s, per_phase, "
                       "enforces_promise.");
    } else if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > kMostSeconds) {
      throw InputError(where, "must be a number of seconds, 0 to 1e9.");
    } else {
      *times.at(name) = from_seconds(value.get<double>());
    }
  }
  return rules;
}

Bytes free_of(const CardView& card) { return card.total - std::min(card.total, card.held + card.foreign); }

Json cards_json(const ClusterView& cluster) {
  Json list = Json::array();
  for (CardId id = 0; id < cluster.cards.size(); ++id) {
    const CardView& card = cluster.cards[id];
    list.push_back({{"total", card.total},
                    {"free", free_of(card)},
                    {"allocated", card.allocated},
                    {"reserved", card.reserved},
                    {"foreign", card.foreign},
                    {"promised", card.promised},
                    {"held", card.held},
                    {"jobs", card.jobs},
                    {"node", cluster.index.node_of(id)}});
  }
  return list;
}

// Those who came first in front.
Json waiting_json(const WaitingJobs& waiting) {
  std::map<WaitingJob, GroupId> jobs;
  for (const GroupId group : waiting.occupied()) {
    for (const WaitingJob& job : waiting.jobs(group)) jobs.emplace(job, group);
  }
  Json list = Json::array();
  for (const auto& [job, group] : jobs) {
    list.push_back({{"job", job.job},
                    {"ticket", job.ticket},
                    {"since_ns", job.since.count()},
                    {"expected_ns", time_json(job.expected)},
                    {"demand", asked_demand(waiting.demand(group))}});
  }
  return list;
}

Json running_json(const ClusterView& cluster) {
  Json list = Json::array();
  for (NodeId node = 0; node < cluster.index.nodes().size(); ++node) {
    for (const RunningJob& job : cluster.running.on(node)) {
      list.push_back({{"job", job.job},
                      {"cards", job.cards},
                      {"promised", job.promised},
                      {"used", job.used},
                      {"expected_end_ns", time_json(job.expected_end)}});
    }
  }
  return list;
}

Json accounts_json(const ClusterView& cluster) {
  Json list = Json::array();
  for (const QuotaView& one : cluster.accounts) {
    list.push_back({{"quota", one.quota ? Json(*one.quota) : Json(nullptr)}, {"promised", one.promised}});
  }
  return list;
}

const JobDemand& demand_of(const WaitingJobs& waiting, JobId job) {
  for (const GroupId group : waiting.occupied()) {
    for (const WaitingJob& one : waiting.jobs(group)) {
      if (one.job == job) return waiting.demand(group);
    }
  }
  throw PolicyFault("named job " + std::to_string(job) + ", which does not wait");
}

// What the answer leaves out is as the job asked for it.
void say_how(const Json& json, const ClusterView& cluster, AdmitterAnswer& answer) {
  const JobDemand& whole = demand_of(cluster.waiting, answer.job);
  answer.cards = numbers_of<CardId>(json, "cards");
  for (const CardId card : answer.cards) {
    if (card >= cluster.cards.size())
      throw PolicyFault("named card " + std::to_string(card) + ", which there is not");
  }
  const std::int64_t variant = whole_number_or(json, "variant", 0);
  if (variant < 0 || variant > std::ssize(whole.variants)) {
    throw PolicyFault("named variant " + std::to_string(variant) + " of a job with " +
                      std::to_string(whole.variants.size()));
  }
  answer.split.variant = static_cast<std::size_t>(variant);
  answer.split.batch = whole_number_or(json, "batch", whole.batch);
  if (answer.split.batch < 1)
    throw PolicyFault("started a job at batch " + std::to_string(answer.split.batch));
  answer.split.accumulation =
      whole_number_or(json, "accumulation", std::max<std::int64_t>(1, whole.effective / answer.split.batch));
  const JobDemand demand = whole.as_variant(answer.split.variant);
  const Bytes total = answer.cards.empty() ? 0 : cluster.index.pool_of(answer.cards.front()).total;
  answer.need = bytes_or(json, "need", demand.need(answer.split.batch, total));
}

void change(const Json& json, JobDemand& demand) {
  demand.fixed = bytes_or(json, "need", demand.fixed);
  demand.per_sample = bytes_or(json, "per_sample", demand.per_sample);
  demand.share_milli = whole_number_or(json, "share_milli", demand.share_milli);
  demand.batch = whole_number_or(json, "batch", demand.batch);
  demand.overdue = flag_or(json, "overdue", demand.overdue);
  if (demand.share_milli < 0) throw PolicyFault("let a job wait again with a share below 0");
}

}  // namespace

CallbackAdmitter::CallbackAdmitter(const Callback& callback, const OptionMap& options)
    : instance_(callback, {{"options", options_json(options)}}), rules_(rules_of(instance_.made())) {}

AdmitterAnswer CallbackAdmitter::decide(const AdmitterQuestion& question, const Observation& observation) {
  const ClusterView& cluster = question.cluster;
  Json asked{{"event", word_for(question.event, kQueueEvents)},
             {"now_ns", observation.time.count()},
             {"pass", question.pass},
             {"cards", cards_json(cluster)},
             {"waiting", waiting_json(cluster.waiting)},
             {"running", running_json(cluster)},
             {"accounts", accounts_json(cluster)}};
  const bool about_one = question.event != QueueEvent::examine;
  if (about_one) {
    asked["job"] = question.job;
    asked["demand"] = asked_demand(cluster.waiting.demand(question.group));
  }
  if (question.event == QueueEvent::oom) {
    asked["batch"] = question.batch;
    asked["attempts"] = question.attempts;
  }
  const Json json = instance_.ask("decide", std::move(asked));
  AdmitterAnswer answer{.reason = text_of(json, "reason")};
  if (!json.contains("action")) return answer;
  answer.action = value_of<AdmitterAnswer::Action>(text_of(json, "action"), kAdmissions, "/action");
  if (answer.action == AdmitterAnswer::Action::wait) return answer;
  const std::int64_t job =
      about_one ? whole_number_or(json, "job", question.job) : whole_number(json, "job", "");
  if (!std::in_range<JobId>(job))
    throw PolicyFault("named job " + std::to_string(job) + ", which there is not");
  answer.job = static_cast<JobId>(job);
  if (answer.action == AdmitterAnswer::Action::start) say_how(json, cluster, answer);
  if (answer.action == AdmitterAnswer::Action::requeue) {
    answer.demand =
        about_one ? cluster.waiting.demand(question.group) : demand_of(cluster.waiting, answer.job);
    change(json, answer.demand);
  }
  return answer;
}

std::optional<Bytes> CallbackAdmitter::available(const CardView& card) const { return free_of(card); }

}  // namespace vramlab
