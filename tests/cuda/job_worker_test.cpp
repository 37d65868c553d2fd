// Jobs as processes of their own, without a card: what goes over the pipes, and other sides that fail.
#include "cuda/job_worker.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <ext/stdio_filebuf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/random.hpp"
#include "models/linear.hpp"
#include "tests/cli/scratch_folder.hpp"
#include "tests/runs/queue_rig.hpp"

namespace vramlab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr Bytes kContext = 512_MiB;
constexpr const char* kJob = "the process of a job";

/// A card of 64 GiB that is none, whose contexts are larger than a scenario's.
class StandInCard final : public SharedCard {
 public:
  const CardInfo& info() override { return info_; }
  void leave_free(Bytes bytes, Bytes needed) override {
    memory.set_others(0);
    if (memory.free() < needed) throw InputError("", "the stand-in is too small");
    memory.set_others(memory.free() - std::min(memory.free(), bytes));
  }
  // The books say what is free: others are a part of what is not.
  Bytes hold_for_others(Bytes bytes) override { return held = bytes; }

  SimulatedCard memory{64_GiB, 0};
  Bytes held = 0;

 private:
  CardInfo info_{.name = "stand-in", .context = 700_MiB};
};

class PretendedJob final : public JobStepper {
 public:
  PretendedJob(SimulatedCard& card, const AllocatorOptions& options) : card_(card), process_(card, options) {}
  ExecutedStep run(const StepProgram& program, std::uint64_t shape) override {
    return process_.executor().run(program, shape);
  }
  void empty_cache() override { process_.allocator().empty_cache(); }
  void reset_peak() override { process_.allocator().reset_peak_stats(); }
  [[nodiscard]] const MemoryStats& stats() const override { return process_.allocator().stats(); }
  [[nodiscard]] Bytes free() const override { return card_.free(); }
  [[nodiscard]] SimTime driver_time() const override { return process_.driver_time(); }

 private:
  SimulatedCard& card_;
  SimulatedProcess process_;
};

/// The sides of jobs, each in a thread of this process, at the other ends of pipes.
class PipedJobs {
 public:
  using Make = std::function<std::unique_ptr<JobStepper>(const AllocatorOptions&)>;
  explicit PipedJobs(Make make) : make_(std::move(make)) {}
  PipedJobs(const PipedJobs&) = delete;
  PipedJobs& operator=(const PipedJobs&) = delete;
  ~PipedJobs() {
    for (std::thread& side : sides_) side.join();
  }

  std::unique_ptr<ChildProcess> start() {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (pipe(in.data()) != 0 || pipe(out.data()) != 0) throw std::runtime_error("no pipes");
    sides_.emplace_back([this, from = in[0], to = out[1]] {
      __gnu_cxx::stdio_filebuf<char> reader(from, std::ios::in);
      __gnu_cxx::stdio_filebuf<char> writer(to, std::ios::out);
      std::istream input(&reader);
      std::ostream output(&writer);
      serve_job(input, output, make_);
    });
    return std::make_unique<ChildProcess>(in[1], out[0], kJob);
  }

 private:
  Make make_;
  std::vector<std::thread> sides_;
};

std::shared_ptr<const WorkloadModel> line() {
  LinearSpec spec{.fixed = 1000_MiB, .per_sample = 500_MiB, .resident = 200_MiB};
  spec.time.floor_seconds = 0.1;
  return std::make_shared<LinearWorkload>(spec);
}

JobSpec line_job(Bytes declared, std::int64_t batch, SimTime arrival) {
  JobSpec job = plain_job(declared, arrival, seconds{10});
  job.demand.batch = batch;
  job.model = JobModel{line(), 0};
  job.phases.front().steps = 100;
  job.phases.front().point = {batch};
  return job;
}

// One declares too little and runs out of memory beside the stranger; one has no model.
JobQueueSetup crowded_queue() {
  JobQueueSetup setup{.cluster = cards_of(8_GiB)};
  setup.jobs = {line_job(2_GiB, 8, SimTime{0}), line_job(3_GiB, 2, seconds{1}),
                plain_job(2_GiB, seconds{2}, seconds{5})};
  setup.strangers = {{.card = 0, .from = seconds{3}, .to = seconds{20}, .bytes = 1_GiB}};
  setup.steps = StepFidelity{.contexts = {kContext}, .allocator = {}};
  setup.keep_moments = true;
  return setup;
}

/// Two cards of 64 GiB, and the processes on them.
class TwoCards {
 public:
  void put_to(StepFidelity& steps) {
    steps.make_card = [this](std::size_t card, Bytes total, Bytes context) {
      return std::make_unique<CardOfJobs>(total, context, cards.at(card),
                                          [this, card] { return jobs_.at(card).start(); });
    };
  }

  std::array<std::shared_ptr<StandInCard>, 2> cards{std::make_shared<StandInCard>(),
                                                    std::make_shared<StandInCard>()};

 private:
  PipedJobs::Make on(std::size_t card) {
    return [this, card](const AllocatorOptions& options) {
      return std::make_unique<PretendedJob>(cards[card]->memory, options);
    };
  }
  std::array<PipedJobs, 2> jobs_{PipedJobs{on(0)}, PipedJobs{on(1)}};
};

TEST(JobWorker, AQueueOverPipesComesOutAsOnAPretendedCard) {
  TwoCards real;
  const auto& card = real.cards[0];
  JobQueueSetup setup = crowded_queue();
  std::int64_t ooms = 0;
  for (const char* profile : {"best-effort", "no-admission"}) {
    setup.steps->make_card = nullptr;
    const JobQueueRun expected = run_queue(setup, profile);
    real.put_to(*setup.steps);
    const JobQueueRun run = run_queue(setup, profile);
    for (std::size_t i = 0; i < setup.jobs.size(); ++i) {
      EXPECT_EQ(run.jobs[i].outcome, expected.jobs[i].outcome) << profile << i;
      EXPECT_EQ(run.jobs[i].starts, expected.jobs[i].starts) << profile << i;
      EXPECT_EQ(run.jobs[i].ooms, expected.jobs[i].ooms) << profile << i;
      EXPECT_EQ(run.jobs[i].reason, expected.jobs[i].reason) << profile << i;
      // Times are the scenario's, those of the driver's calls too. Steps that repeat are counted from another
      // one on, and each is rounded to whole nanoseconds.
      EXPECT_NEAR(to_seconds(run.jobs[i].end), to_seconds(expected.jobs[i].end), 1e-6) << profile << i;
      ooms += run.jobs[i].ooms;
    }
    ASSERT_EQ(run.stays.size(), expected.stays.size()) << profile;
    for (std::size_t i = 0; i < run.stays.size(); ++i) {
      EXPECT_EQ(run.stays[i].job, expected.stays[i].job);
      EXPECT_EQ(run.stays[i].need, expected.stays[i].need);
      EXPECT_EQ(run.stays[i].most_used, expected.stays[i].most_used) << profile << i;
      EXPECT_EQ(run.stays[i].ran_out, expected.stays[i].ran_out);
    }
    EXPECT_EQ(card->memory.taken(), 0u) << profile;
  }
  EXPECT_GT(ooms, 0);
}

// Two jobs take both cards, one of them; and a stranger comes to the second.
TEST(JobWorker, EachCardOfAQueueIsOneOfTheMachines) {
  TwoCards real;
  JobQueueSetup setup{.cluster = cards_of(8_GiB, 2)};
  setup.jobs = {line_job(3_GiB, 2, SimTime{0}), line_job(3_GiB, 3, SimTime{0}),
                line_job(3_GiB, 2, seconds{1})};
  setup.jobs[0].demand.cards = setup.jobs[1].demand.cards = 2;
  setup.strangers = {{.card = 1, .from = seconds{2}, .to = seconds{4}, .bytes = 1_GiB}};
  setup.steps = StepFidelity{.contexts = {kContext}, .allocator = {}};
  setup.keep_moments = true;
  const JobQueueRun expected = run_queue(setup, "best-effort");
  real.put_to(*setup.steps);
  const JobQueueRun run = run_queue(setup, "best-effort");
  std::set<CardId> used;
  for (std::size_t i = 0; i < setup.jobs.size(); ++i) {
    EXPECT_EQ(run.jobs[i].outcome, JobOutcome::completed) << run.jobs[i].reason;
    EXPECT_EQ(run.jobs[i].cards, expected.jobs[i].cards) << i;
    EXPECT_EQ(run.jobs[i].most_used, expected.jobs[i].most_used) << i;
    used.insert(run.jobs[i].cards.begin(), run.jobs[i].cards.end());
  }
  EXPECT_EQ(used.size(), 2u);
}

struct Move {
  std::int64_t step = 0;
  TunedMoment::Kind kind = TunedMoment::Kind::start;
  Point point;
  std::string reason;

  friend bool operator==(const Move&, const Move&) = default;
};

std::vector<Move> moves_of(const JobRecord& job) {
  std::vector<Move> moves;
  for (const TunedMoment& one : job.tuning.value_or(JobTuning{}).course) {
    moves.push_back({one.step, one.kind, one.point, one.reason});
  }
  return moves;
}

JobSpec tuned_job(const PolicyChoice& choice, SimTime arrival) {
  JobSpec job = line_job(3_GiB, 2, arrival);
  const ParameterSpace bounds = job.model->workload->parameters();
  job.tuner = JobTuner{choice.use, [=] { return builtin_policies()->tuners.make(choice, bounds); }, bounds};
  return job;
}

JobSpec composed_job(const PolicyChoice& choice, SimTime arrival) {
  JobSpec job = plain_job(3_GiB, arrival, seconds{10});
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < 200; ++i) {
    const std::int64_t length = 50 + i * 37 % 400;
    samples.push_back({.length = length, .tokens = length});
  }
  const auto kept = std::make_shared<const std::vector<Sample>>(std::move(samples));
  job.composer = JobComposer{
      .name = choice.use,
      .make = [=] { return builtin_policies()->composers.make(choice, {"T1"}); },
      .model = std::make_shared<SampleSizeModel>(SampleSizes{.resident = 100_MiB, .per_token = 1_MiB}),
      .checkpointed = nullptr,
      .samples = kept,
      .data = {.samples = *kept, .target_batch = 16}};
  return job;
}

// A tuner and a composer grow into each other on one card; held to their promise they do not. Every decision
// is that of a pretended card: what they read of memory comes over the pipe.
TEST(JobWorker, JobsWithPoliciesDecideAsOnAPretendedCard) {
  const PolicyChoice threshold{"threshold-step",
                               "",
                               {{"step", std::int64_t{2}, {}}, {"adjustment_frequency", std::int64_t{5}, {}}},
                               ""};
  TwoCards real;
  std::int64_t failed = 0;
  std::size_t moves = 0;
  for (const PolicyChoice& tuner : {threshold, PolicyChoice{"dual-optimizer", "settled", {}, ""},
                                    PolicyChoice{"predictive", "", {}, ""}}) {
    for (const OptionMap& options : {OptionMap{}, OptionMap{{"enforce_promise", true, {}}}}) {
      JobQueueSetup setup{.cluster = cards_of(8_GiB)};
      setup.jobs = {tuned_job(tuner, SimTime{0}),
                    composed_job({"memory-aware-sampler", "dense", {}, ""}, seconds{1})};
      setup.strangers = {{.card = 0, .from = seconds{2}, .to = seconds{3}, .bytes = 1_GiB}};
      setup.steps = StepFidelity{.contexts = {kContext}, .allocator = {}};
      const JobQueueRun expected = run_queue(setup, "best-effort", options);
      real.put_to(*setup.steps);
      const JobQueueRun run = run_queue(setup, "best-effort", options);
      for (std::size_t i = 0; i < setup.jobs.size(); ++i) {
        EXPECT_EQ(moves_of(run.jobs[i]), moves_of(expected.jobs[i])) << tuner.use << i;
        EXPECT_EQ(run.jobs[i].outcome, expected.jobs[i].outcome) << tuner.use << i;
        EXPECT_EQ(run.jobs[i].end, expected.jobs[i].end) << tuner.use << i;  // every step is performed
        EXPECT_EQ(run.jobs[i].most_used, expected.jobs[i].most_used) << tuner.use << i;
        EXPECT_EQ(run.jobs[i].tuning->samples, expected.jobs[i].tuning->samples) << tuner.use << i;
        failed += run.jobs[i].tuning->failed_steps;
        moves += moves_of(run.jobs[i]).size();
      }
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(moves, 100u);
  EXPECT_EQ(real.cards[0]->memory.taken(), 0u);
}

// The times that the simulator gives to the same calls.
TEST(ModelledSegments, CountWhatTheSimulatorCounts) {
  for (const char* conf :
       {"", "expandable_segments:True", "max_split_size_mb:64,garbage_collection_threshold:0.6"}) {
    SimulatedCard card{6_GiB, 0};
    SimSegments simulated{card};
    ModelledSegments counted{simulated};
    AllocatorOptions options;
    options.settings = parse_allocator_settings(conf, {});
    CachingAllocator allocator{counted, options};
    Random random{7};
    std::vector<BlockId> blocks;
    for (int i = 0; i < 400; ++i) {
      const Bytes size = Bytes{1} << random.between(9, 29);
      if (const auto got = allocator.allocate(size, kDefaultStream)) blocks.push_back(got->block);
      if (blocks.size() > 12) {
        allocator.free(blocks[static_cast<std::size_t>(i) % blocks.size()]);
        blocks.erase(blocks.begin() + i % std::ssize(blocks));
      }
      if (i % 50 == 49) allocator.empty_cache();
    }
    EXPECT_EQ(counted.driver_time(), simulated.driver_time()) << conf;
    EXPECT_GT(counted.driver_time(), SimTime{0}) << conf;
  }
}

TEST(JobWorker, OthersAreHeldAsTheBooksSay) {
  const auto card = std::make_shared<StandInCard>();
  CardOfJobs jobs{8_GiB, kContext, card, nullptr};
  EXPECT_EQ(card->memory.free(), 8_GiB);
  jobs.set_others(3_GiB);
  EXPECT_EQ(card->held, 3_GiB);
  jobs.set_others(20_GiB);  // no more than there is
  EXPECT_EQ(card->held, 8_GiB);
  const auto job = jobs.start({});
  EXPECT_FALSE(job->open());  // no process is started where its context does not fit
}

class Spy final : public JobStepper {
 public:
  explicit Spy(std::vector<StepProgram>& seen) : seen_(seen) {}
  ExecutedStep run(const StepProgram& program, std::uint64_t shape) override {
    EXPECT_EQ(shape, 7u);
    seen_.push_back(program);
    return {};
  }
  void empty_cache() override {}
  void reset_peak() override {}
  [[nodiscard]] Bytes free() const override { return 0; }
  [[nodiscard]] SimTime driver_time() const override { return SimTime{0}; }
  [[nodiscard]] const MemoryStats& stats() const override { return stats_; }

 private:
  std::vector<StepProgram>& seen_;
  MemoryStats stats_;
};

TEST(JobWorker, ASettingAndAStepArriveAsTheyWereSent) {
  ProgramWriter writer{2};
  writer.make_persistent({.slot = 0, .size = 3_MiB});
  writer.ensure({.slot = 1, .size = 5});
  writer.drop(writer.make(40_GiB));
  writer.use_workspace(64_MiB, writer.know_attempts({.kernel = 9, .sizes = {64_MiB, 16_MiB, 1}}));
  writer.use_workspace(32_MiB);
  StepProgram program = writer.finish();
  program.workspace_refusals = 3;

  AllocatorOptions options;
  options.settings = parse_allocator_settings("max_split_size_mb:128, expandable_segments:True",
                                              {.torch = parse_torch_version("2.6")});
  options.limit = 5_GiB;
  std::vector<StepProgram> seen;
  AllocatorOptions told;
  PipedJobs jobs{[&](const AllocatorOptions& given) {
    told = given;
    return std::make_unique<Spy>(seen);
  }};
  const auto card = std::make_shared<StandInCard>();
  CardOfJobs shared{8_GiB, kContext, card, [&] { return jobs.start(); }};
  const auto job = shared.start(options);
  ASSERT_TRUE(job->open());
  EXPECT_TRUE(job->run(program, 1, 7).ok);
  EXPECT_TRUE(told.settings == options.settings);
  EXPECT_EQ(told.limit, options.limit);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].ops, program.ops);
  EXPECT_EQ(seen[0].attempts, program.attempts);
  EXPECT_EQ(seen[0].persistent_slots, program.persistent_slots);
  EXPECT_EQ(seen[0].slots, program.slots);
  EXPECT_EQ(seen[0].workspace_refusals, 3u);
  EXPECT_EQ(job->holding().reserved, kContext);
}

// The same step without a call of the driver: after 24 more of them it needs no more looking at.
TEST(JobWorker, SettlesAfterStepsWithoutACallOfTheDriver) {
  std::vector<StepProgram> seen;
  PipedJobs jobs{[&](const AllocatorOptions&) { return std::make_unique<Spy>(seen); }};
  CardOfJobs shared{8_GiB, kContext, std::make_shared<StandInCard>(), [&] { return jobs.start(); }};
  const auto job = shared.start({});
  ASSERT_TRUE(job->open());
  for (int i = 0; i <= kSettledAfter; ++i) {
    EXPECT_EQ(job->run({}, 1, 7).settled, i == kSettledAfter) << i;
  }
  EXPECT_FALSE(job->run({}, 2, 7).settled);  // another step
}

/// A job whose process is `script`, and what is said of it.
class FailingJob : public testing::Test {
 protected:
  std::string told(const std::string& script) {
    const std::string file = folder.file("job");
    std::ofstream{file} << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    CardOfJobs shared{8_GiB, kContext, std::make_shared<StandInCard>(),
                      [&] { return std::make_unique<ChildProcess>(file, kJobVerb, kJob); }};
    try {
      const auto job = shared.start({});
      if (!job->open()) return "not opened";
      const JobOnCard::Step step = job->run({}, 1, 0);
      return step.ok ? "ok" : "oom of " + std::to_string(step.refused);
    } catch (const InputError& error) {
      return error.what();
    }
  }

  ScratchFolder folder;
};

TEST_F(FailingJob, ThatWorksIsOne) {
  EXPECT_EQ(told("read a; echo open; read b; echo ok 0 0 0 0 5 1 2 2 3 4 5 6 7 8"), "ok");
  EXPECT_EQ(told("read a; echo open; read b; echo oom 3 99 98 97 5 1 2 2 3 4 5 6 7 8"), "oom of 99");
}

TEST_F(FailingJob, ThatDiesIsNamed) {
  const std::string ended = "the process of a job has ended (its own message stands above, if it had one).";
  EXPECT_EQ(told("exit 3"), ended);
  EXPECT_EQ(told("read a; echo open; kill -9 $$"), ended);
  EXPECT_EQ(told("read a; echo open; read b; exit 0"), ended);
}

TEST_F(FailingJob, ThatTalksGarbageIsQuoted) {
  EXPECT_EQ(told("read a; echo banana"),
            "the process of a job answered \"banana\" when it was to open the card.");
  for (const char* answer : {"", "ok", "ok 0 0 0 0 5 1 2 2 3 4 5 6 7", "ok 0 0 0 0 5 1 2 2 3 4 5 6 7 8 9",
                             "ok 0 0 0 0 5 1 -2x 2 3 4 5 6 7 8", "fine 0 0 0 0 5 1 2 2 3 4 5 6 7 8",
                             "ok 0 0 0 0 5 99999999999999999999999 2 2 3 4 5 6 7 8"}) {
    EXPECT_EQ(told(std::string{"read a; echo open; read b; echo '"} + answer + "'"),
              std::string{"the process of a job answered \""} + answer +
                  "\", which does not say how its step went.");
  }
  EXPECT_THAT(told("read a; echo open; read b; echo ok 0 0 0 0 5 1 2 9000000000 3 4 5 6 7 8"),
              HasSubstr("says that it holds 8.9 GiB, more than the card has."));
  EXPECT_THAT(told("read a; yes '' | tr '\\n' x"), HasSubstr("answered with more than a line: \"xxxx"));
}

TEST_F(FailingJob, ThatHangsIsGivenUpAndKilled) {
  const std::string file = folder.file("job");
  std::ofstream{file} << "#!/bin/sh\nexec sleep 600\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  const auto begin = std::chrono::steady_clock::now();
  {
    ChildProcess process{file, kJobVerb, kJob};
    EXPECT_THROW(process.ask("step\n", milliseconds{50}), InputError);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds{60});
  EXPECT_THROW(ChildProcess("/nowhere/at/all", kJobVerb, kJob), InputError);
}

TEST(ServedJob, RefusesWhatIsNoRequest) {
  const auto answer = [](const std::string& requests) {
    std::istringstream in{requests};
    std::ostringstream out;
    std::vector<StepProgram> seen;
    serve_job(in, out, [&](const AllocatorOptions&) { return std::make_unique<Spy>(seen); });
    return out.str();
  };
  EXPECT_EQ(answer(""), "");
  const std::string zeros = "ok 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
  EXPECT_EQ(answer("allocator 2.11 - \nstep 7 0 0 1 0 0\nlook\nempty\nreset\n"),
            "open\n" + zeros + zeros + zeros + zeros);
  for (const char* requests :
       {"dance\n", "look\n", "step 7 0 0 1 0 0\n", "allocator 2.11 - \nallocator 2.11 - \n", "allocator 2.11",
        "allocator 2.11 - \nstep 7 0 0 1 1 0\n", "allocator 2.11 - \nstep 7 0 1 1 1 0\n9 0 5 0\n",
        "allocator 2.11 - \nstep 7 0 0 1 0 1\n3 2 5\n"}) {
    EXPECT_THROW(answer(requests), InternalError) << requests;
  }
}

}  // namespace
}  // namespace vramlab
