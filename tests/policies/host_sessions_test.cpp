// What hosts of composers, searchers and queue policies refuse and keep, whatever the policy answers.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "policies/contract/batch_sessions.hpp"
#include "policies/contract/job_session.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using State = QueuedJob::State;

std::vector<Sample> samples_with(std::size_t count) {
  return std::vector<Sample>(count, Sample{.length = 10, .tokens = 10});
}

Observation card_of(Bytes total) { return {.memory = {.total = total}}; }

std::unique_ptr<Composer> batches_of(std::int64_t size, const OptionMap& more = {}) {
  return builtin_policies()->composers.make(
      {"planned-batches", "fixed", overlay({{"batch_size", size, {}}, {"guardian", true, {}}}, more), ""},
      {"T1"});
}

TEST(ComposerSession, PiecesOfAFailedBatchComeBeforeTheOtherSamples) {
  const auto composer = batches_of(4);
  const std::vector<Sample> samples = samples_with(8);
  ComposerSession session{*composer, {.samples = samples, .shuffle = false}};
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(session.left(), 4u);
  session.told(std::vector<SampleId>{0, 1, 2, 3}, {.result = StepResult::oom});
  EXPECT_EQ(session.left(), 8u);
  EXPECT_EQ(session.failed_in_a_row(), 1);
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(0, 1));
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(2, 3));
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(4, 5, 6, 7));
}

// A loader that fetches ahead has asked for the next batch when one fails: that one is halved, not the next.
TEST(ComposerSession, HalvesTheBatchThatFailedAndNotTheOneFetchedAhead) {
  const auto composer = batches_of(4);
  const std::vector<Sample> samples = samples_with(8);
  ComposerSession session{*composer, {.samples = samples, .shuffle = false}};
  const auto first = session.next(card_of(1_GiB)).batch;
  const auto second = session.next(card_of(1_GiB)).batch;
  session.told(first, {.result = StepResult::oom});
  EXPECT_FALSE(session.told(second, {}).skipped);
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(0, 1));
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(2, 3));
  EXPECT_EQ(session.left(), 0u);
}

TEST(ComposerSession, RefusesABatchThatDoesNotRun) {
  const auto composer = batches_of(4);
  const std::vector<Sample> samples = samples_with(8);
  ComposerSession session{*composer, {.samples = samples, .shuffle = false}};
  const auto batch = session.next(card_of(1_GiB)).batch;
  EXPECT_THROW(session.told(std::vector<SampleId>{0, 1}, {}), InputError);
  session.told(batch, {});
  EXPECT_THAT([&] { session.told(batch, {}); }, ThrowsMessage<InputError>(HasSubstr("told before")));
}

TEST(ComposerSession, AnEffectiveBatchIsExactOneBatchAtATime) {
  const auto composer = batches_of(4);
  const std::vector<Sample> samples = samples_with(12);
  ComposerSession session{*composer, {.samples = samples, .target_batch = 6, .shuffle = false}};
  const auto first = session.next(card_of(1_GiB)).batch;
  EXPECT_THAT([&] { session.next(card_of(1_GiB)); }, ThrowsMessage<InputError>(HasSubstr("num_workers=0")));
  EXPECT_FALSE(session.told(first, {}).steps);
  const auto second = session.next(card_of(1_GiB)).batch;
  EXPECT_THAT(second, ElementsAre(4, 5));
  EXPECT_TRUE(session.shape().accumulates);
  const BatchConsequence next = session.told(second, {});
  EXPECT_TRUE(next.steps);
  EXPECT_EQ(next.effective, 6);
}

// A sample of T1 takes 0.63 GiB by the published table, a step 0.27 beside them.
TEST(ComposerSession, ABudgetTakesThePlaceOfTheMarginAndOfTheComposersOwn) {
  const auto sampler = [](const OptionMap& more) {
    const OptionMap options = overlay({{"batch_size", std::int64_t{100}, {}}}, more);
    return builtin_policies()->composers.make({"memory-aware-sampler", "table", options, ""}, {"T1"});
  };
  const std::vector<Sample> samples = samples_with(100);
  const auto composer = sampler({});
  ComposerSession session{*composer, {.samples = samples, .shuffle = false}};
  EXPECT_EQ(session.next(card_of(10_GiB)).batch.size(), 13u);  // 0.1 of it is kept free
  session.set_limits({.budget = 3_GiB, .most_samples = {}});
  EXPECT_EQ(session.next(card_of(10_GiB)).batch.size(), 4u);
  session.set_limits({.budget = 10_GiB, .most_samples = {}});
  EXPECT_EQ(session.next(card_of(10_GiB)).batch.size(), 15u);
  session.set_limits({.budget = 100_GiB, .most_samples = {}});
  EXPECT_EQ(session.next(card_of(10_GiB)).batch.size(), 15u);  // there is no more than the card

  const auto own = sampler({{"max_memory_mb", std::int64_t{2048}, {}}});
  ComposerSession bounded{*own, {.samples = samples, .shuffle = false}};
  EXPECT_EQ(bounded.next(card_of(10_GiB)).batch.size(), 2u);
  bounded.set_limits({.budget = 3_GiB, .most_samples = {}});
  EXPECT_EQ(bounded.next(card_of(10_GiB)).batch.size(), 4u);
}

TEST(ComposerSession, NoBatchHasMoreSamplesThanTheHostAllows) {
  const auto composer = batches_of(8);
  EXPECT_FALSE(composer->obeys_budget());
  const std::vector<Sample> samples = samples_with(16);
  ComposerSession session{*composer, {.samples = samples, .shuffle = false}};
  session.set_limits({.budget = {}, .most_samples = 3});
  EXPECT_THAT(session.next(card_of(1_GiB)).batch, ElementsAre(0, 1, 2));
  session.set_limits({});
  EXPECT_EQ(session.next(card_of(1_GiB)).batch.size(), 8u);
}

TEST(ComposerSession, GoesOnInAnotherProcessWithBatchesThatRanAtTheEnd) {
  const auto composer = batches_of(4);
  const std::vector<Sample> samples = samples_with(12);
  const EpochData data{.samples = samples, .shuffle = false};
  ComposerSession session{*composer, data};
  session.told(session.next(card_of(1_GiB)).batch, {});
  session.next(card_of(1_GiB));  // runs while the state is taken
  const ComposerState state = session.save();
  const auto again = batches_of(4);
  ComposerSession next{*again, data};
  next.restore_books(state);
  again->restore(state.composer);
  EXPECT_EQ(next.left(), 8u);
  EXPECT_THAT(next.next(card_of(1_GiB)).batch, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(next.next(card_of(1_GiB)).batch, ElementsAre(8, 9, 10, 11));
}

TEST(SearchSession, KeepsToItsRangeAndToTheOrderOfCalls) {
  const auto searcher = builtin_policies()->searchers.make({.use = "power"});
  SearchSession session{*searcher, 4, 6};
  EXPECT_EQ(session.next({}).batch, 4);  // it begins with 2
  EXPECT_THAT([&] { session.next({}); }, ThrowsMessage<InputError>(HasSubstr("was not told")));
  EXPECT_THROW(session.told({.batch = 5}), InputError);
  session.told({.batch = 4, .cards = {{.peak = 1, .total = 100}}});
  EXPECT_EQ(session.next({}).batch, 6);
  EXPECT_THROW((SearchSession{*searcher, 3, 2}), InputError);
}

std::unique_ptr<Admitter> queue_of(const OptionMap& options, const char* profile = "best-effort") {
  return builtin_policies()->admitters.make(
      {"job-queue", profile, overlay({{"safety_margin_mb", std::int64_t{0}, {}}}, options), ""});
}

QueuedJob job_of(Bytes need, std::string name = "job") {
  return {.name = std::move(name), .demand = {.fixed = need}};
}

TEST(AdmitterSession, StartsWhatFitsAndTheNextWhenOneLeaves) {
  AdmitterSession session{queue_of({}), {10_GiB}};
  const JobId first = session.submit(job_of(6_GiB), seconds{1});
  const JobId second = session.submit(job_of(6_GiB), seconds{2});
  session.examine(seconds{2});
  EXPECT_EQ(session.job(first).state, State::runs);
  EXPECT_THAT(session.job(first).cards, ElementsAre(0));
  EXPECT_EQ(session.job(second).state, State::waits);
  EXPECT_EQ(session.cards()[0].promised, 6_GiB);
  session.leave(first);
  session.examine(seconds{3});
  EXPECT_EQ(session.job(second).state, State::runs);
  EXPECT_THROW((void)session.job(first), InputError);
}

TEST(AdmitterSession, StrangersAndUseBeyondThePromiseCount) {
  AdmitterSession session{queue_of({}), {10_GiB}};
  session.set_foreign(0, 5_GiB);
  const JobId first = session.submit(job_of(2_GiB), seconds{1});
  session.examine(seconds{1});
  session.set_used(first, 4_GiB);
  const JobId second = session.submit(job_of(2_GiB), seconds{2});
  session.examine(seconds{2});
  EXPECT_EQ(session.job(second).state, State::waits);
  session.set_foreign(0, 0);
  session.examine(seconds{3});
  EXPECT_EQ(session.job(second).state, State::runs);
}

TEST(AdmitterSession, AWaitEndsWithItsPatience) {
  AdmitterSession session{queue_of({}), {10_GiB}};
  session.submit(job_of(8_GiB), seconds{0});
  QueuedJob patient = job_of(4_GiB);
  patient.patience = seconds{30};
  const JobId waiting = session.submit(patient, seconds{0});
  session.examine(seconds{29});
  EXPECT_EQ(session.job(waiting).state, State::waits);
  session.examine(seconds{30});
  EXPECT_EQ(session.job(waiting).state, State::failed);
  EXPECT_THAT(session.job(waiting).reason, HasSubstr("within 30.0 s"));
}

TEST(AdmitterSession, AnImpatientJobShrinksBeforeItGivesUp) {
  AdmitterSession session{queue_of({{"degrade", "wait-first"}}), {10_GiB}};
  session.submit(job_of(7_GiB), seconds{0});
  QueuedJob job{.demand = {.per_sample = 1_GiB, .batch = 4}, .patience = seconds{30}};
  const JobId waiting = session.submit(job, seconds{0});
  session.examine(seconds{29});
  EXPECT_EQ(session.job(waiting).state, State::waits);
  session.examine(seconds{30});
  EXPECT_EQ(session.job(waiting).state, State::runs);
  EXPECT_EQ(session.job(waiting).split.batch, 2);
  EXPECT_EQ(session.job(waiting).need, 2_GiB);
}

TEST(AdmitterSession, AFailedJobWaitsAgainWithMore) {
  AdmitterSession session{queue_of({}), {10_GiB}};
  const JobId job = session.submit(job_of(4_GiB), seconds{0});
  session.examine(seconds{0});
  session.out_of_memory(job, seconds{5});
  EXPECT_EQ(session.job(job).state, State::waits);
  EXPECT_EQ(session.job(job).demand.fixed, 6_GiB);  // oom_raise 1.5
  session.examine(seconds{5});
  EXPECT_EQ(session.job(job).need, 6_GiB);
  EXPECT_EQ(session.cards()[0].promised, 6_GiB);
  EXPECT_THROW(session.out_of_memory(job + 1, seconds{6}), InputError);
}

TEST(AdmitterSession, GoesOnFromTheBooksOfAnotherProcess) {
  AdmitterSession session{queue_of({}), {10_GiB, 10_GiB}};
  session.set_foreign(1, 3_GiB);
  for (const Bytes need : {6_GiB, 7_GiB, 5_GiB}) session.submit(job_of(need), seconds{1});
  session.examine(seconds{1});
  AdmitterSession next{queue_of({}), {10_GiB, 10_GiB}};
  next.restore(session.books());
  for (JobId id = 0; id < 3; ++id) {
    EXPECT_EQ(next.job(id).state, session.job(id).state) << id;
    EXPECT_EQ(next.job(id).cards, session.job(id).cards) << id;
  }
  EXPECT_EQ(next.cards()[1].foreign, 3_GiB);
  next.leave(0);
  next.examine(seconds{2});
  EXPECT_EQ(next.job(2).state, State::runs);
  EXPECT_EQ(next.submit(job_of(1_GiB), seconds{3}), 3u);
}

TEST(AdmitterSession, GoesStepByStep) {
  AdmitterSession session{queue_of({{"degrade", "wait-first"}, {"wait_timeout_s", 30.0}}), {10_GiB}};
  session.submit(job_of(7_GiB), seconds{0});
  const JobId second = session.submit({.demand = {.per_sample = 1_GiB, .batch = 4}}, seconds{0});
  const JobId third = session.submit(job_of(9_GiB), seconds{0});
  session.begin_look();
  EXPECT_EQ(session.look(seconds{0}), JobId{0});
  EXPECT_EQ(session.job(0).state, State::runs);
  EXPECT_EQ(session.look(seconds{0}), std::nullopt);
  EXPECT_THAT(session.why_waiting(third), HasSubstr("needs 9.0 GiB"));
  EXPECT_EQ(session.end_wait(second, seconds{30}), WaitEnd::asks_anew);  // and may shrink now
  EXPECT_EQ(session.job(second).state, State::waits);
  EXPECT_EQ(session.end_wait(third, seconds{30}), WaitEnd::over);
  EXPECT_EQ(session.job(third).state, State::failed);
  session.begin_look();
  EXPECT_EQ(session.look(seconds{30}), second);
  EXPECT_EQ(session.job(second).split, (BatchSplit{.batch = 2, .accumulation = 2}));
}

/// A host whose jobs ask by phase, and that hears of every promise.
class Phases final : public QueueHost {
 public:
  [[nodiscard]] bool asks_otherwise(const QueuedJob& /*job*/, JobDemand& demand) const override {
    demand.fixed = need;
    return true;
  }
  void promise_changed(const QueuedJob& job, bool given) override {
    heard.push_back((given ? "+" : "-") + std::to_string(job.need / 1_GiB));
  }

  Bytes need = 2_GiB;
  std::vector<std::string> heard;
};

TEST(AdmitterSession, AHostMaySayWhatAJobAsksForInEachPhase) {
  const auto policy = queue_of({});
  Phases host;
  AdmitterSession session{
      *policy, {.pools = {{10_GiB}}, .nodes = {{.pool = 0, .first = 0, .count = 2}}}, host};
  session.submit_as(7, {.demand = {.fixed = 9_GiB}}, seconds{0});
  session.examine(seconds{0});
  EXPECT_EQ(session.job(7).need, 2_GiB);
  session.set_holding(7, 0, {.allocated = 1_GiB, .reserved = 3_GiB});
  EXPECT_EQ(session.cards()[0].held, 3_GiB);
  host.need = 5_GiB;
  session.wait_again(7, {.fixed = 9_GiB}, seconds{10});
  EXPECT_EQ(session.cards()[0].held, 0u);
  EXPECT_EQ(session.cards()[0].allocated, 0u);
  session.examine(seconds{10});
  session.out_of_memory(7, seconds{20});
  session.examine(seconds{20});
  session.leave(7);
  EXPECT_THAT(host.heard, ElementsAre("+2", "-2", "+5", "-5", "+5", "-5"));
  EXPECT_EQ(session.submit_as(9, {.demand = {.fixed = 9_GiB}}, seconds{30}).id, 9u);
  EXPECT_EQ(session.submit(job_of(1_GiB), seconds{30}), 10u);
}

/// Sends what waits to the back, again and again, or lets it wait again with a demand that cannot be.
class Endless final : public Admitter {
 public:
  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& /*observation*/) override {
    using Action = AdmitterAnswer::Action;
    if (question.event == QueueEvent::deadline) return {.action = Action::requeue, .demand = {.batch = -1}};
    if (question.event != QueueEvent::examine || question.cluster.waiting.empty()) return {};
    return {.action = Action::to_back, .job = 0};
  }
  [[nodiscard]] QueueRules rules() const override { return {}; }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override { return card.total; }
};

TEST(AdmitterSession, APolicyThatComesToNoEndIsStopped) {
  AdmitterSession session{std::make_unique<Endless>(), {10_GiB}};
  session.submit(job_of(1_GiB), seconds{0});
  EXPECT_THAT([&] { session.examine(seconds{0}); }, ThrowsMessage<PolicyFault>(HasSubstr("without an end")));
  EXPECT_THAT([&] { session.end_wait(0, seconds{0}); },
              ThrowsMessage<PolicyFault>(HasSubstr("wait again whose batch is out of range")));
}

/// Starts job 0 on the cards that it is told.
class Names final : public Admitter {
 public:
  explicit Names(std::vector<CardId> cards) : cards_(std::move(cards)) {}

  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation& /*observation*/) override {
    if (question.event != QueueEvent::examine || question.cluster.waiting.empty()) return {};
    return {.action = AdmitterAnswer::Action::start, .job = 0, .cards = cards_, .need = 1_GiB};
  }
  [[nodiscard]] QueueRules rules() const override { return {}; }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override { return card.total; }

 private:
  std::vector<CardId> cards_;
};

TEST(AdmitterSession, AJobStartsOnAsManyDifferentCardsAsItTakes) {
  const auto start = [](std::vector<CardId> cards) {
    AdmitterSession session{std::make_unique<Names>(std::move(cards)), {10_GiB, 10_GiB}};
    QueuedJob job;
    job.demand.fixed = 1_GiB;
    session.submit(job, SimTime{0});
    session.examine(SimTime{0});
    return session.job(0).cards;
  };
  EXPECT_EQ(start({1}), std::vector<CardId>{1});
  for (const std::vector<CardId>& wrong : {std::vector<CardId>{}, {0, 0}, {0, 1}, {7}}) {
    EXPECT_THROW(start(wrong), PolicyFault);
  }
}

TEST(AdmitterSession, RefusesWhatCannotBe) {
  EXPECT_THROW((AdmitterSession{queue_of({}), {}}), InputError);
  EXPECT_THROW((AdmitterSession{queue_of({}), {10_GiB, 0}}), InputError);
  AdmitterSession session{queue_of({}), {10_GiB}};
  EXPECT_THROW(session.submit({}, seconds{0}), InputError);  // needs nothing
  QueuedJob wide = job_of(1_GiB);
  wide.demand.cards = 2;
  EXPECT_THROW(session.submit(wide, seconds{0}), InputError);
  EXPECT_THROW(session.set_foreign(1, 0), InputError);
  EXPECT_EQ(session.job(session.submit(job_of(11_GiB), seconds{0})).state, State::refused);
  QueueBooks books{.jobs = {job_of(1_GiB)}, .foreign = {0}, .next_id = 1, .next_ticket = 1};
  books.jobs[0].state = State::runs;  // on no card
  AdmitterSession other{queue_of({}), {10_GiB}};
  EXPECT_THAT([&] { other.restore(books); }, ThrowsMessage<InputError>(HasSubstr("/jobs/0")));
}

}  // namespace
}  // namespace vramlab
