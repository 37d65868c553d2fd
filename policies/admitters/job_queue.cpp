// `job-queue`: several jobs share cards. Admission, order, degradation and recovery by options.
#include <algorithm>
#include <cmath>

#include "policies/admitters/queue_rules.hpp"

namespace vramlab {
namespace {

using Action = AdmitterAnswer::Action;

std::string degraded(const JobDemand& demand, Bytes need, const BatchSplit& split, Bytes total) {
  return format_bytes(demand.need(demand.batch, total)) + " for batch " + std::to_string(demand.batch) +
         " did not fit: runs " +
         (split.variant > 0 ? "as " + demand.variants[split.variant - 1].name + " " : "") + "at batch " +
         std::to_string(split.batch) + " with " + format_bytes(need) + " and " +
         std::to_string(split.accumulation) + " accumulation steps.";
}

Bytes raised(Bytes size, double factor) {
  return static_cast<Bytes>(std::llround(static_cast<double>(size) * factor));
}

/// How many needs seen so far are above a size: what memory left over is useless for.
class SeenNeeds {
 public:
  void add(Bytes need) {
    const auto at = std::lower_bound(counts_.begin(), counts_.end(), std::pair{need, std::int64_t{0}});
    if (at != counts_.end() && at->first == need) {
      ++at->second;
    } else {
      counts_.insert(at, {need, 1});
    }
  }

  /// Memory, in MiB times needs seen, that `need` of `available` bytes makes useless or useful again.
  [[nodiscard]] std::int64_t cost(Bytes available, Bytes need) const {
    return useless(available - need) - useless(available);
  }

 private:
  [[nodiscard]] std::int64_t useless(Bytes free) const {
    std::int64_t above = 0;
    for (auto at = counts_.rbegin(); at != counts_.rend() && at->first > free; ++at) above += at->second;
    return static_cast<std::int64_t>(free / 1_MiB) * above;
  }

  std::vector<std::pair<Bytes, std::int64_t>> counts_;  ///< by need
};

class JobQueue final : public Admitter {
 public:
  explicit JobQueue(const QueueOptions& options) : options_(options) {}

  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& observation) override {
    switch (question.event) {
      case QueueEvent::submitted:
        return submitted(question);
      case QueueEvent::deadline:
        return deadline(question);
      case QueueEvent::oom:
        return after_oom(question);
      case QueueEvent::examine:
        break;
    }
    return examine(question, observation.time);
  }

  [[nodiscard]] QueueRules rules() const override {
    return {.wait_timeout = from_seconds(options_.patience_s()),
            .poll = from_seconds(options_.poll_s),
            .job_timeout = from_seconds(options_.job_timeout_s),
            .lease = from_seconds(options_.lease_s),
            .per_phase = options_.per_phase,
            .placement = options_.placement,
            .enforces_promise = options_.enforce_promise};
  }

  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    return free_bytes(options_, card);
  }

  [[nodiscard]] CardStatus status(const CardView& card) const override {
    return card_status(card.total, taken_bytes(options_, card), options_.margin());
  }

  [[nodiscard]] std::string why_waiting(GroupId group, const ClusterView& cluster) const override {
    return why_it_waits(options_, cluster.waiting.demand(group), cluster);
  }

 private:
  /// A group at its first job; higher priority first, then the lower ticket.
  struct Turn {
    std::int64_t priority = 0;
    std::uint64_t ticket = 0;
    GroupId group = 0;
    friend bool operator<(const Turn& a, const Turn& b) {  // for a heap whose front goes first
      return a.priority != b.priority ? a.priority < b.priority : a.ticket > b.ticket;
    }
  };

  AdmitterAnswer submitted(const AdmitterQuestion& question) {
    const JobDemand& demand = question.cluster.waiting.demand(question.group);
    if (options_.placement == FitRule::fragments) {
      seen_.add(demand.need(demand.batch, question.cluster.index.largest_total(demand)));
    }
    if (const auto why = never_fits(options_, demand, question.cluster)) {
      return {.action = Action::refuse, .job = question.job, .reason = *why};
    }
    return {};
  }

  AdmitterAnswer examine(const AdmitterQuestion& question, SimTime now) {
    const ClusterView& cluster = question.cluster;
    if (question.pass != pass_) begin_pass(question, now);
    if (started_ && options_.order == QueueOrder::two_fifos) collect_turned_away(cluster);
    if (!to_back_.empty()) {
      const JobId job = to_back_.back();
      to_back_.pop_back();
      return {.action = Action::to_back, .job = job, .reason = "did not fit and goes to the back"};
    }
    while (!turns_.empty()) {
      std::pop_heap(turns_.begin(), turns_.end());
      const Turn turn = turns_.back();
      const GroupId group = turn.group;
      turns_.pop_back();
      auto answer = head_ ? pass_over(cluster, group, now) : place(cluster, group, {});
      if (answer) {
        come_again(cluster, group, answer->job, now);
        started_ = turn;
        return *std::move(answer);
      }
      if (options_.order == QueueOrder::strict) return {};
      if (options_.order == QueueOrder::backfill && !head_) head_ = group;
    }
    return {};
  }

  // A job that may shrink after its wait is looked at once more in its turn; then it fails, or waits on where
  // waiting has no limit.
  AdmitterAnswer deadline(const AdmitterQuestion& question) {
    const ClusterView& cluster = question.cluster;
    JobDemand demand = cluster.waiting.demand(question.group);
    if (options_.degrade == Degrade::wait_first && demand.shrinks() && !demand.overdue) {
      demand.overdue = true;
      return {.action = Action::requeue,
              .job = question.job,
              .demand = demand,
              .reason = "its wait is over: a smaller batch will do"};
    }
    if (options_.wait_timeout_s <= 0) return {};
    const auto waited = static_cast<std::int64_t>(options_.wait_timeout_s);
    return {.action = Action::fail,
            .job = question.job,
            .reason = "no memory within " + std::to_string(waited) +
                      " s: " + why_it_waits(options_, demand, cluster) + "."};
  }

  AdmitterAnswer after_oom(const AdmitterQuestion& question) const {
    JobDemand demand = question.cluster.waiting.demand(question.group);
    if (options_.on_oom == OnOom::fail || question.attempts > options_.oom_retries) {
      return {.action = Action::fail,
              .job = question.job,
              .reason = "ran out of memory in attempt " + std::to_string(question.attempts) + "."};
    }
    AdmitterAnswer answer{.action = Action::requeue, .job = question.job};
    demand.overdue = false;
    if (options_.on_oom == OnOom::smaller && question.batch > 1) {
      demand.batch = question.batch / 2;
      answer.reason = "ran out of memory at batch " + std::to_string(question.batch) + "; goes on at " +
                      std::to_string(demand.batch) + ".";
    } else {
      demand.fixed = raised(demand.fixed, options_.oom_raise);
      demand.per_sample = raised(demand.per_sample, options_.oom_raise);
      for (DemandVariant& variant : demand.variants) {
        variant.fixed = raised(variant.fixed, options_.oom_raise);
        variant.per_sample = raised(variant.per_sample, options_.oom_raise);
      }
      demand.share_milli = std::min<std::int64_t>(
          1000, std::llround(static_cast<double>(demand.share_milli) * options_.oom_raise));
      answer.reason = "ran out of memory; waits again with its need raised";
      if (never_fits(options_, demand, question.cluster)) {  // then it gets a whole card
        const Bytes largest = question.cluster.index.largest_total(demand);
        const Bytes margin = margin_on(options_, {}, demand);
        demand.fixed = largest > margin ? largest - margin : 0;
        demand.per_sample = 0;
        demand.share_milli = 0;
        demand.variants.clear();
        answer.reason += " to a whole card";
      }
      answer.reason += ".";
    }
    answer.demand = demand;
    return answer;
  }

  void begin_pass(const AdmitterQuestion& question, SimTime now) {
    pass_ = question.pass;
    head_.reset();
    started_.reset();
    to_back_.clear();
    turns_.clear();
    for (const GroupId group : question.cluster.waiting.occupied()) {
      turns_.push_back(turn_of(question.cluster, group, *question.cluster.waiting.jobs(group).begin(), now));
    }
    std::make_heap(turns_.begin(), turns_.end());
  }

  [[nodiscard]] Turn turn_of(const ClusterView& cluster, GroupId group, const WaitingJob& first,
                             SimTime now) const {
    std::int64_t priority = cluster.waiting.demand(group).priority;
    const SimTime ageing = from_seconds(options_.ageing_s);  // less than half a nanosecond is none
    if (ageing > SimTime{0}) priority += (now - first.since) / ageing;
    return {priority, first.ticket, group};
  }

  // The job behind the one that starts takes its turn later in this pass.
  void come_again(const ClusterView& cluster, GroupId group, JobId starting, SimTime now) {
    const auto& jobs = cluster.waiting.jobs(group);
    if (jobs.size() == 1) return;
    turns_.push_back(turn_of(cluster, group,
                             jobs.begin()->job == starting ? *std::next(jobs.begin()) : *jobs.begin(), now));
    std::push_heap(turns_.begin(), turns_.end());
  }

  // A place for the first job of `group` at its batch or, if it may shrink, at the largest that fits, in the
  // first of its variants that does.
  [[nodiscard]] std::optional<AdmitterAnswer> place(const ClusterView& cluster, GroupId group,
                                                    const CardIndex::Accept& may_use) {
    const JobDemand& demand = cluster.waiting.demand(group);
    const bool shrinks = options_.may_shrink(demand);
    for (std::int64_t batch = demand.batch; batch >= 1; batch /= 2) {
      for (std::size_t variant = 0; variant <= (shrinks ? demand.variants.size() : 0); ++variant) {
        if (auto answer = place_as(cluster, group, batch, variant, may_use)) return answer;
      }
      if (!shrinks) break;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<AdmitterAnswer> place_as(const ClusterView& cluster, GroupId group,
                                                       std::int64_t batch, std::size_t variant,
                                                       const CardIndex::Accept& may_use) {
    const JobDemand& whole = cluster.waiting.demand(group);
    const JobDemand demand = whole.as_variant(variant);
    const QuotaView& account = cluster.accounts[demand.account];
    CardIndex::Cost cost;
    if (options_.placement == FitRule::fragments) {
      cost = [this](Bytes available, Bytes need) { return seen_.cost(available, need); };
    }
    const CardIndex::Accept accept = [&](CardId card, Bytes need) {
      return can_take(options_, card, cluster.cards[card], demand, need) && (!may_use || may_use(card, need));
    };
    auto found = cluster.index.find(demand, batch, accept, cost);
    if (!found) return std::nullopt;
    const Bytes sum = found->need * static_cast<Bytes>(demand.cards);
    if (account.quota && account.promised + sum > *account.quota) return std::nullopt;
    BatchSplit split = options_.accumulation == SplitRule::exact ? exact_split(demand.effective, batch)
                                                                 : halved_split(demand.effective, batch);
    split.variant = variant;
    const Bytes total = cluster.index.pool_of(found->cards.front()).total;
    AdmitterAnswer answer{.action = Action::start,
                          .job = cluster.waiting.jobs(group).begin()->job,
                          .cards = std::move(found->cards),
                          .need = demand.need(split.batch, total),
                          .split = split};
    if (batch < demand.batch || variant > 0) answer.reason = degraded(whole, answer.need, split, total);
    return answer;
  }

  // Two FIFOs: a worker takes the first job, and puts it at the back if it does not fit. Once no card takes a
  // further job it stops, and those it has looked at stay at the back.
  void collect_turned_away(const ClusterView& cluster) {
    const Turn stopped_at = *started_;
    started_.reset();
    for (CardId card = 0; card < cluster.cards.size(); ++card) {
      if (cluster.index.available(card)) return;
    }
    std::vector<WaitingJob> seen;
    for (const GroupId group : cluster.waiting.occupied()) {
      if (cluster.waiting.demand(group).priority != stopped_at.priority) continue;
      for (const WaitingJob& job : cluster.waiting.jobs(group)) {
        if (job.ticket < stopped_at.ticket) seen.push_back(job);
      }
    }
    std::sort(seen.begin(), seen.end(), [](const WaitingJob& a, const WaitingJob& b) { return b < a; });
    for (const WaitingJob& job : seen) to_back_.push_back(job.job);
    turns_.clear();
  }

  // EASY: a job may pass the first one where it leaves the reserved cards their room, or if it ends in time.
  [[nodiscard]] std::optional<AdmitterAnswer> pass_over(const ClusterView& cluster, GroupId group,
                                                        SimTime now) {
    if (group == *head_) return std::nullopt;
    const auto reserved = earliest_.find(options_, cluster, *head_, now);
    if (!reserved) return std::nullopt;
    const auto keeps_clear = [&](CardId card, Bytes need) { return reserved->allows(card, need); };
    if (auto answer = place(cluster, group, keeps_clear)) return answer;
    const SimTime left = reserved->at - now;
    std::int64_t looked_at = 0;
    for (const WaitingJob& job : cluster.waiting.jobs(group)) {
      if (looked_at++ == options_.backfill_depth) break;
      if (job.expected > left) continue;
      auto answer = place(cluster, group, {});
      if (answer) answer->job = job.job;
      return answer;
    }
    return std::nullopt;
  }

  QueueOptions options_;
  SeenNeeds seen_;
  EarliestStart earliest_;
  std::uint64_t pass_ = ~std::uint64_t{0};
  std::vector<Turn> turns_;      ///< heap of the groups not yet found unfit in this pass
  std::optional<Turn> started_;  ///< in this pass, last (two FIFOs)
  std::vector<JobId> to_back_;   ///< looked at before it and not fitting; last one first
  std::optional<GroupId> head_;  ///< of the first, which does not fit: the rest may only pass it
};

}  // namespace

AdmitterEntry job_queue_entry() {
  return {.name = "job-queue",
          .summary = "admits jobs to shared cards: ledger, order, degradation, recovery",
          .options = queue_option_table().describe(),
          .profiles = queue_profiles(),
          .default_profile = "backfill",
          .make = maker<JobQueue>(queue_option_table())};
}

}  // namespace vramlab
