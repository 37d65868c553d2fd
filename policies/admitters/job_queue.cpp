// `job-queue`: several jobs share cards. Admission, order, degradation and recovery by options.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

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
  void add(Bytes need) { needs_.insert({need, needs_.size()}); }

  /// Memory, in MiB times needs seen, that `need` of `available` bytes makes useless or useful again.
  [[nodiscard]] std::int64_t cost(Bytes available, Bytes need) const {
    return useless(available - need) - useless(available);
  }

 private:
  [[nodiscard]] std::int64_t useless(Bytes free) const {
    const std::size_t above = needs_.size() - needs_.order_of_key({free + 1, 0});
    return static_cast<std::int64_t>(free / 1_MiB) * static_cast<std::int64_t>(above);
  }

  /// Needs with their numbers; counts those below another in O(log n).
  __gnu_pbds::tree<std::pair<Bytes, std::size_t>, __gnu_pbds::null_type, std::less<>, __gnu_pbds::rb_tree_tag,
                   __gnu_pbds::tree_order_statistics_node_update>
      needs_;
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

  // Of all the ways in which place() may try it.
  [[nodiscard]] Bytes least_need(const JobDemand& demand) const override {
    if (demand.share_milli > 0) return 0;
    const bool shrinks = options_.may_shrink(demand);
    Bytes least = demand.need(shrinks ? 1 : demand.batch, 0);
    for (std::size_t i = 1; shrinks && i <= demand.variants.size(); ++i)
      least = std::min(least, demand.as_variant(i).need(1, 0));
    return least;
  }

  [[nodiscard]] CardStatus status(const CardView& card) const override {
    return card_status(card.total, taken_bytes(options_, card), options_.margin());
  }

  [[nodiscard]] std::string why_waiting(GroupId group, const ClusterView& cluster) const override {
    return why_it_waits(options_, cluster.waiting.demand(group), cluster);
  }

 private:
  static bool goes_later(const GroupTurn& a, const GroupTurn& b) { return b < a; }  // of a heap

  /// Before and behind all turns.
  static constexpr GroupTurn kFirst{std::numeric_limits<std::int64_t>::max(), 0, 0};
  static constexpr GroupTurn kLast{std::numeric_limits<std::int64_t>::min(), ~std::uint64_t{0}, 0};

  /// One look at the queue, and what can be given away in it.
  struct Look {
    const ClusterView& cluster;
    SimTime now;
    Room room;
    // With a first job that does not fit:
    std::optional<Reservation> reserved = {};
    std::optional<Room> beside = {};  ///< what is reserved
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
    set_touched_aside(cluster);
    if (started_ && options_.order == QueueOrder::two_fifos) collect_turned_away(cluster);
    if (!to_back_.empty()) {
      const JobId job = to_back_.back();
      to_back_.pop_back();
      return {.action = Action::to_back, .job = job, .reason = "did not fit and goes to the back"};
    }
    Look look{.cluster = cluster, .now = now, .room = {options_, cluster, nullptr}};
    while (const auto turn = next_turn(look)) {
      const GroupId group = turn->group;
      auto answer = head_ ? pass_over(look, group) : place(cluster, group, {});
      if (answer) {
        come_again(cluster, group, answer->job, now);
        started_ = *turn;
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
    touched_.clear();
    touched_seen_ = 0;
    in_time_.clear();
    in_time_for_ = SimTime{-1};
    reached_ = ages() ? kLast : kFirst;
    if (!ages()) return;  // the queue itself keeps the order
    for (const GroupId group : question.cluster.waiting.occupied()) {
      turns_.push_back(turn_of(question.cluster, group, *question.cluster.waiting.jobs(group).begin(), now));
    }
    std::make_heap(turns_.begin(), turns_.end(), goes_later);
  }

  [[nodiscard]] bool ages() const { return from_seconds(options_.ageing_s) > SimTime{0}; }

  // A pass sees every group as it was when it began. One whose first job has changed since keeps the turn
  // that it had, if that is still to come.
  void set_touched_aside(const ClusterView& cluster) {
    const auto touched = cluster.waiting.touched();
    for (; !ages() && touched_seen_ < touched.size(); ++touched_seen_) {
      const auto& [group, ticket] = touched[touched_seen_];
      if (!touched_.insert(group).second || !ticket) continue;
      const GroupTurn turn{cluster.waiting.demand(group).priority, *ticket, group};
      if (!(turn < reached_)) add_turn(turn);
    }
  }

  void add_turn(const GroupTurn& turn) {
    turns_.push_back(turn);
    std::push_heap(turns_.begin(), turns_.end(), goes_later);
  }

  // Of the groups not looked at in this pass the first; those that need more than any card has are passed
  // over where being the first that does not fit means nothing.
  std::optional<GroupTurn> next_turn(Look& look) {
    std::optional<GroupTurn> next;
    if (head_) {
      const bool some_fit = !turns_.empty() || look.cluster.waiting.next(reached_, std::ref(look.room));
      if (!some_fit || !reserve(look)) return std::nullopt;
      next = next_untouched(look, std::ref(*look.beside));
      if (!in_time_.empty() && (!next || in_time_.back() < *next)) next = in_time_.back();
    } else if (options_.order == QueueOrder::strict || options_.order == QueueOrder::backfill) {
      next = next_untouched(look, [](const CardsAsked&) { return std::numeric_limits<Bytes>::max(); });
    } else {
      next = next_untouched(look, std::ref(look.room));
    }
    if (!turns_.empty() && (!next || turns_.front() < *next)) {
      std::pop_heap(turns_.begin(), turns_.end(), goes_later);
      next = turns_.back();
      turns_.pop_back();
      return next;
    }
    reached_ = next ? behind(*next) : kLast;
    return next;
  }
  [[nodiscard]] std::optional<GroupTurn> next_untouched(const Look& look,
                                                        const WaitingJobs::Most& most) const {
    auto next = look.cluster.waiting.next(reached_, most);
    while (next && touched_.contains(next->group)) next = look.cluster.waiting.next(behind(*next), most);
    return next;
  }

  // Finds when the first can start and, where that is later than it was in this pass, who ends before that.
  // False if it is not expected ever to start: then nobody passes it.
  bool reserve(Look& look) {
    if (!look.beside) {
      look.reserved = earliest_.find(options_, look.cluster, *head_, look.now);
      if (!look.reserved) return false;
      look.beside.emplace(options_, look.cluster, &*look.reserved);
      const SimTime left = look.reserved->at - look.now;
      if (left > in_time_for_ && !ages()) {
        in_time_for_ = left;
        in_time_ = look.cluster.waiting.shorter(left, std::ref(look.room));
        std::sort(in_time_.begin(), in_time_.end(), goes_later);
      }
    }
    const auto is_over = [&](const GroupTurn& turn) {  // or, as memory shrinks within a pass, needs too much
      const JobDemand& demand = look.cluster.waiting.demand(turn.group);
      return turn < reached_ || touched_.contains(turn.group) ||
             least_need(demand) > look.room({demand.cards, demand.pools});
    };
    while (!in_time_.empty() && is_over(in_time_.back())) in_time_.pop_back();
    return true;
  }
  static GroupTurn behind(const GroupTurn& turn) { return {turn.priority, turn.ticket + 1, 0}; }

  [[nodiscard]] GroupTurn turn_of(const ClusterView& cluster, GroupId group, const WaitingJob& first,
                                  SimTime now) const {
    std::int64_t priority = cluster.waiting.demand(group).priority;
    if (ages()) priority += (now - first.since) / from_seconds(options_.ageing_s);
    return {priority, first.ticket, group};
  }

  // The job behind the one that starts takes its turn later in this pass.
  void come_again(const ClusterView& cluster, GroupId group, JobId starting, SimTime now) {
    const auto& jobs = cluster.waiting.jobs(group);
    if (jobs.size() == 1) return;
    add_turn(turn_of(cluster, group, jobs.begin()->job == starting ? *std::next(jobs.begin()) : *jobs.begin(),
                     now));
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
    const GroupTurn stopped_at = *started_;
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
    reached_ = kLast;
  }

  // EASY: a job may pass the first one where it leaves the reserved cards their room, or if it ends in time.
  [[nodiscard]] std::optional<AdmitterAnswer> pass_over(const Look& look, GroupId group) {
    if (group == *head_) return std::nullopt;
    const Reservation& reserved = *look.reserved;
    const auto keeps_clear = [&](CardId card, Bytes need) { return need <= reserved.most_on(card); };
    if (auto answer = place(look.cluster, group, keeps_clear)) return answer;
    const SimTime left = reserved.at - look.now;
    std::int64_t looked_at = 0;
    for (const WaitingJob& job : look.cluster.waiting.jobs(group)) {
      if (looked_at++ == options_.backfill_depth) break;
      if (job.expected > left) continue;
      auto answer = place(look.cluster, group, {});
      if (answer) answer->job = job.job;
      return answer;
    }
    return std::nullopt;
  }

  QueueOptions options_;
  SeenNeeds seen_;
  EarliestStart earliest_;
  std::uint64_t pass_ = ~std::uint64_t{0};
  // In this pass:
  GroupTurn reached_ = kFirst;        ///< the groups before it have been looked at
  std::vector<GroupTurn> turns_;      ///< heap of those set aside, not yet found unfit
  std::set<GroupId> touched_;         ///< those set aside, ever
  std::size_t touched_seen_ = 0;      ///< of WaitingJobs::touched
  std::vector<GroupTurn> in_time_;    ///< of those whose jobs may end before the first can start; last first
  SimTime in_time_for_{-1};           ///< that is this long from now
  std::optional<GroupTurn> started_;  ///< last (two FIFOs)
  std::vector<JobId> to_back_;        ///< looked at before it and not fitting; last one first
  std::optional<GroupId> head_;       ///< of the first, which does not fit: the rest may only pass it
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
