// What must hold for every queue policy, whatever the jobs and whatever goes wrong.
#include <algorithm>
#include <cstdlib>
#include <map>

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "tests/runs/queue_rig.hpp"

namespace vramlab {
namespace {

// The same cases in every run of the tests; a failure prints how to repeat it.
class FixedSeed final : public testing::Environment {
 public:
  void SetUp() override { setenv("RC_PARAMS", "seed=1 max_success=300", 0); }
};
const auto* const kFixedSeed = testing::AddGlobalTestEnvironment(new FixedSeed);

std::int64_t between(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high + 1); }
Bytes mib(std::int64_t low, std::int64_t high) { return static_cast<Bytes>(between(low, high)) * 1_MiB; }

// Up to five nodes of two kinds.
ClusterSetup any_cluster() {
  ClusterSetup cluster;
  cluster.pools = {{mib(4000, 9000)}, {mib(9000, 16000)}};
  CardId first = 0;
  for (std::uint32_t pool = 0; pool < 2; ++pool) {
    for (std::int64_t n = between(pool == 0 ? 1 : 0, 2); n > 0; --n) {
      const auto count = static_cast<std::uint32_t>(between(1, 4));
      cluster.nodes.push_back({pool, first, count});
      first += count;
    }
  }
  return cluster;
}

JobSpec any_job() {
  JobSpec job = plain_job(mib(0, 9000), seconds{between(0, 60)}, seconds{between(1, 40)});
  job.demand.cards = static_cast<std::int32_t>(between(0, 5) == 0 ? between(2, 4) : 1);
  job.demand.priority = static_cast<std::int32_t>(between(0, 2));
  if (between(0, 3) == 0) job.demand.pools = static_cast<PoolMask>(between(1, 3));
  if (between(0, 2) == 0) {
    job.demand.batch = between(1, 32);
    job.demand.per_sample = mib(1, 300);
  }
  if (between(0, 2) == 0) job.phases.push_back({.duration = seconds{between(1, 20)}, .need = mib(0, 4000)});
  for (JobPhase& phase : job.phases) {
    if (between(0, 2) == 0) phase.fixed_use = mib(0, 9000);  // not what was declared
  }
  if (between(0, 3) == 0) job.expected = seconds{between(1, 40)};  // and it lies about its end
  if (between(0, 7) == 0) job.crash_after = seconds{between(0, 30)};
  return job;
}

JobQueueSetup any_queue() {
  JobQueueSetup setup{.cluster = any_cluster()};
  setup.start_up = milliseconds{between(0, 1) * between(0, 3000)};
  for (std::int64_t n = between(1, 30); n > 0; --n) setup.jobs.push_back(any_job());
  for (std::int64_t n = between(0, 3); n > 0; --n) {
    const SimTime from = seconds{between(0, 60)};
    setup.strangers.push_back(
        {.card = 0, .from = from, .to = from + seconds{between(1, 60)}, .bytes = mib(0, 9000)});
  }
  setup.keep_moments = true;
  return setup;
}

OptionMap any_options() {
  const auto one_of = [](std::initializer_list<const char*> names) {
    return std::string{std::data(names)[between(0, static_cast<std::int64_t>(names.size()) - 1)]};
  };
  OptionMap options;
  options.set("placement", one_of({"first", "best", "worst", "fragments"}));
  options.set("degrade", one_of({"never", "wait-first", "degrade-first"}));
  options.set("on_oom", one_of({"fail", "requeue", "smaller"}));
  options.set("accumulation", one_of({"exact", "floor"}));
  options.set("safety_margin_mb", between(0, 1) * between(0, 1500));
  options.set("max_concurrent_jobs", between(0, 3));
  options.set("wait_timeout_s", static_cast<double>(between(1, 90)));
  options.set("job_timeout_s", static_cast<double>(between(0, 1) * between(1, 90)));
  options.set("ageing_s", static_cast<double>(between(0, 1) * between(1, 20)));
  options.set("lease_s", static_cast<double>(between(1, 30)));
  options.set("per_phase", between(0, 1) == 1);
  return options;
}

class EveryQueue : public testing::TestWithParam<std::string> {};
class ReservingQueue : public testing::TestWithParam<std::string> {};

TEST_P(EveryQueue, LosesNoJobAndRunsNoneTwice) {
  EXPECT_TRUE(rc::check([&] {
    const JobQueueSetup setup = any_queue();
    const JobQueueRun run = run_queue(setup, GetParam(), any_options());
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      const JobRecord& job = run.jobs[i];
      RC_ASSERT(job.outcome != JobOutcome::pending);
      RC_ASSERT(job.end >= setup.jobs[i].arrival);
      // Each start but the last ended in an OOM or, by phase, with a phase.
      const auto most = job.ooms * static_cast<std::int64_t>(setup.jobs[i].phases.size()) +
                        static_cast<std::int64_t>(setup.jobs[i].phases.size());
      RC_ASSERT(job.starts <= most);
      if (job.outcome == JobOutcome::refused) RC_ASSERT(job.starts == 0 && !job.reason.empty());
      if (job.outcome == JobOutcome::completed) {
        RC_ASSERT(job.end - setup.jobs[i].arrival >= setup.jobs[i].duration());
      }
    }
  }));
}

// After the last job and the last lease nothing is held: every way a job can end gives its memory back.
TEST_P(EveryQueue, LeavesNothingBehind) {
  EXPECT_TRUE(rc::check([&] {
    const JobQueueRun run = run_queue(any_queue(), GetParam(), any_options());
    std::map<CardId, CardMoment> last;
    for (const CardMoment& moment : run.moments) {
      RC_ASSERT(moment.jobs >= 0);
      last[moment.card] = moment;
    }
    for (const auto& [card, moment] : last) {
      RC_ASSERT(moment.used == 0);
      RC_ASSERT(moment.promised == 0);
      RC_ASSERT(moment.jobs == 0);
    }
  }));
}

TEST_P(EveryQueue, EveryWaitEndsInTime) {
  EXPECT_TRUE(rc::check([&] {
    const JobQueueSetup setup = any_queue();
    const auto timeout = between(1, 90);
    OptionMap options = any_options();
    options.set("wait_timeout_s", static_cast<double>(timeout));
    const JobQueueRun run = run_queue(setup, GetParam(), options);
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      const std::int64_t waits = run.jobs[i].starts + 1;
      RC_ASSERT(run.jobs[i].waited <= seconds{timeout} * waits);
      if (run.jobs[i].outcome == JobOutcome::wait_timeout) RC_ASSERT(!run.jobs[i].reason.empty());
    }
  }));
}

TEST_P(EveryQueue, EqualRunsAreEqual) {
  EXPECT_TRUE(rc::check([&] {
    const JobQueueSetup setup = any_queue();
    const OptionMap options = any_options();
    const JobQueueRun one = run_queue(setup, GetParam(), options);
    const JobQueueRun other = run_queue(setup, GetParam(), options);
    RC_ASSERT(one.end == other.end && one.overcommits == other.overcommits);
    for (std::size_t i = 0; i < one.jobs.size(); ++i) {
      RC_ASSERT(one.jobs[i].end == other.jobs[i].end && one.jobs[i].cards == other.jobs[i].cards);
    }
  }));
}

// Without ageing only groups that may fit are looked at, in an order that the queue keeps. An ageing of 30
// years changes no turn, but every group is looked at in every pass.
void passes_over_only_what_does_not_fit(const JobQueueSetup& setup, const std::string& profile) {
  OptionMap options = any_options();
  options.set("ageing_s", 0.0);
  const JobQueueRun some = run_queue(setup, profile, options);
  options.set("ageing_s", 1e9);
  const JobQueueRun all = run_queue(setup, profile, options);
  RC_ASSERT(some.end == all.end && some.ended_early == all.ended_early);
  RC_ASSERT(some.stays.size() == all.stays.size());
  for (std::size_t i = 0; i < some.stays.size(); ++i) {
    const JobStay& one = some.stays[i];
    const JobStay& other = all.stays[i];
    RC_ASSERT(one.job == other.job && one.cards == other.cards && one.from == other.from);
    RC_ASSERT(one.to == other.to && one.need == other.need);
  }
  for (std::size_t i = 0; i < some.jobs.size(); ++i) {
    RC_ASSERT(some.jobs[i].outcome == all.jobs[i].outcome && some.jobs[i].end == all.jobs[i].end);
    RC_ASSERT(some.jobs[i].reason == all.jobs[i].reason);
  }
}

TEST_P(EveryQueue, PassesOverOnlyWhatDoesNotFit) {
  EXPECT_TRUE(rc::check([&] { passes_over_only_what_does_not_fit(any_queue(), GetParam()); }));
}

// Most of 100 jobs wait at once, and some ask for the same.
TEST(LongQueues, ArePassedOverOnlyWhereNothingFits) {
  EXPECT_TRUE(rc::check([] {
    JobQueueSetup setup = any_queue();
    while (setup.jobs.size() < 100) {
      setup.jobs.push_back(between(0, 3) == 0 ? setup.jobs.back() : any_job());
      setup.jobs.back().phases[0].duration = seconds{between(1, 200)};
    }
    passes_over_only_what_does_not_fit(setup, between(0, 2) == 0 ? "best-effort" : "backfill");
  }));
}

/// Hands every question on, and keeps what the index of cards has counted.
class Counting final : public Admitter {
 public:
  explicit Counting(std::unique_ptr<Admitter> policy) : policy_(std::move(policy)) {}
  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& observation) override {
    AdmitterAnswer answer = policy_->decide(question, observation);
    searches_ = question.cluster.index.searches();
    return answer;
  }
  [[nodiscard]] QueueRules rules() const override { return policy_->rules(); }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    return policy_->available(card);
  }
  [[nodiscard]] Bytes least_need(const JobDemand& demand) const override {
    return policy_->least_need(demand);
  }
  [[nodiscard]] std::size_t searches() const { return searches_; }

 private:
  std::unique_ptr<Admitter> policy_;
  std::size_t searches_ = 0;
};

// Searches for a place among 32 cards, while nearly all of `jobs` wait; each asks for something else.
double searches_a_job(const std::string& profile, std::size_t jobs, std::int32_t most_cards) {
  JobQueueSetup setup{.cluster = {.pools = {{16000_MiB}}}};
  for (CardId card = 0; card < 32; card += 4) setup.cluster.nodes.push_back({0, card, 4});
  std::uint64_t draw = 1;
  for (std::size_t i = 0; i < jobs; ++i) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    setup.jobs.push_back(plain_job(2_GiB + (draw >> 34) * 12, seconds{0}, seconds{10 + (draw >> 20) % 100}));
    setup.jobs.back().demand.cards = 1 + static_cast<std::int32_t>(i) % most_cards;
  }
  Counting policy{queue_policy(profile)};
  run_job_queue(setup, policy);
  return static_cast<double>(policy.searches()) / static_cast<double>(jobs);
}

// Work is counted, not timed: however many wait, a job that starts costs a few searches.
TEST(LongQueues, TakeAsManySearchesAJobHoweverLongTheyAre) {
  for (const char* profile : {"strict-fifo", "best-effort", "backfill"}) {
    for (const std::int32_t cards : {1, 4}) {
      const double some = searches_a_job(profile, 500, cards);
      EXPECT_LT(searches_a_job(profile, 2000, cards), some * 1.1) << profile << ' ' << cards;
      EXPECT_LT(some, 5) << profile << ' ' << cards;
    }
  }
}

// The ledger, less what a stranger brought after the promise was made.
TEST_P(ReservingQueue, NeverPromisesMoreThanACardHas) {
  EXPECT_TRUE(rc::check([&] {
    const JobQueueSetup setup = any_queue();
    const JobQueueRun run = run_queue(setup, GetParam(), any_options());
    RC_ASSERT(run.overcommits == 0);
    std::vector<Bytes> totals;
    for (const CardNode& node : setup.cluster.nodes) {
      totals.insert(totals.end(), node.count, setup.cluster.pools[node.pool].total);
    }
    for (const CardMoment& moment : run.moments) RC_ASSERT(moment.promised <= totals[moment.card]);
  }));
}

// Whether anything that could let a waiting job start came at `now`: memory or a promise given back on some
// card, or a job that left the queue and had stood in the way.
bool something_was_given_back(const JobQueueRun& run, SimTime now) {
  std::map<CardId, CardMoment> before;
  for (const CardMoment& moment : run.moments) {
    const CardMoment& last = before[moment.card];
    const bool less = moment.used < last.used || moment.promised < last.promised ||
                      moment.foreign < last.foreign || moment.jobs < last.jobs;
    if (moment.time == now && less) return true;
    before[moment.card] = moment;
  }
  return std::any_of(run.jobs.begin(), run.jobs.end(), [&](const JobRecord& job) {
    return job.end == now && job.outcome != JobOutcome::pending;
  });
}

class PromptQueue : public testing::TestWithParam<std::string> {};

// A job that waited begins in a moment in which something came back: had it fitted earlier, a card was idle
// that it could have had. Fails as soon as a release, a timeout or a lease is not followed by a look.
TEST_P(PromptQueue, AWaitEndsInTheMomentThatMakesRoom) {
  EXPECT_TRUE(rc::check([&] {
    const JobQueueSetup setup = any_queue();
    OptionMap options = any_options();
    options.set("ageing_s", 0.0);
    options.set("degrade", std::string{"degrade-first"});
    const JobQueueRun run = run_queue(setup, GetParam(), options);
    std::vector<SimTime> free_since;  // when each job could have begun to wait
    for (const JobSpec& job : setup.jobs) free_since.push_back(job.arrival);
    for (const JobStay& stay : run.stays) {
      RC_ASSERT(stay.from == free_since[stay.job] || something_was_given_back(run, stay.from));
      free_since[stay.job] = stay.to;
    }
  }));
}

// A second eye on every look at the queue: where the order does not poll, the first does not wait while a
// card could take it.
class Watcher final : public Admitter {
 public:
  /// `margin`: kept free beside jobs.
  Watcher(std::unique_ptr<Admitter> policy, Bytes margin) : policy_(std::move(policy)), margin_(margin) {}
  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& observation) override {
    AdmitterAnswer answer = policy_->decide(question, observation);
    // A job that ran out of memory as it started may go on within the same moment, in the next pass.
    idle_ = idle_ || (suspect_ && observation.time > looked_at_);
    if (question.event != QueueEvent::examine || answer.action != AdmitterAnswer::Action::wait) return answer;
    suspect_ = false;
    looked_at_ = observation.time;
    const WaitingJobs& waiting = question.cluster.waiting;
    const GroupId* first = nullptr;
    const auto key = [&](GroupId group) {
      return std::pair{-waiting.demand(group).priority, waiting.jobs(group).begin()->ticket};
    };
    for (const GroupId& group : waiting.occupied()) {
      if (first == nullptr || key(group) < key(*first)) first = &group;
    }
    if (first == nullptr) return answer;
    const JobDemand& demand = waiting.demand(*first);
    for (const CardNode& node : question.cluster.index.nodes()) {
      if ((demand.pools >> node.pool & 1) == 0) continue;
      const Bytes need = demand.need(demand.batch, question.cluster.index.pools()[node.pool].total);
      std::int32_t room = 0;
      for (CardId card = node.first; card < node.first + node.count; ++card) {
        const CardView& view = question.cluster.cards[card];
        const auto available = policy_->available(view);
        room += available && *available >= need + (view.jobs > 0 ? margin_ : 0) ? 1 : 0;
      }
      suspect_ = suspect_ || room >= demand.cards;
    }
    return answer;
  }
  [[nodiscard]] QueueRules rules() const override { return policy_->rules(); }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    return policy_->available(card);
  }
  [[nodiscard]] bool saw_an_idle_card() const { return idle_ || suspect_; }

 private:
  std::unique_ptr<Admitter> policy_;
  Bytes margin_;
  bool suspect_ = false;  ///< as the queue stood when it was last looked at
  SimTime looked_at_{0};
  bool idle_ = false;
};

TEST_P(ReservingQueue, NoCardIsIdleThatTheFirstOfTheQueueFits) {
  EXPECT_TRUE(rc::check([&] {
    OptionMap options = any_options();
    options.set("ageing_s", 0.0);
    const auto margin = std::get<std::int64_t>(options.find("safety_margin_mb")->value);
    Watcher watcher{queue_policy(GetParam(), options), static_cast<Bytes>(margin) * 1_MiB};
    run_job_queue(any_queue(), watcher);
    RC_ASSERT(!watcher.saw_an_idle_card());
  }));
}

std::vector<std::string> profiles() {
  std::vector<std::string> names;
  for (const PolicyProfile& profile : builtin_policies()->admitters.find("job-queue").profiles)
    names.push_back(profile.name);
  return names;
}

std::string name_of(const testing::TestParamInfo<std::string>& profile) {
  std::string name = profile.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Profiles, EveryQueue, testing::ValuesIn(profiles()), name_of);
INSTANTIATE_TEST_SUITE_P(Profiles, PromptQueue, testing::Values("strict-fifo", "best-effort", "exclusive"),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Profiles, ReservingQueue,
                         testing::Values("strict-fifo", "best-effort", "backfill", "exclusive"), name_of);

}  // namespace
}  // namespace vramlab
