#include "sim/runs/step_runner.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr std::uint64_t kEmptyCacheKey = 0;  // programs count from 1
constexpr std::size_t kMostStates = 1024;    // about 200 kB each for a step of 1,200 allocations
constexpr std::size_t kMostMisses = 64;      // misses in a row before states are remembered more rarely

}  // namespace

ExecutedStep run_with_additions(Allocator& allocator, StepExecutor& executor, const StepProgram& program,
                                std::uint64_t shape, const StepAdditions& additions) {
  std::optional<BlockId> besides;
  if (additions.besides > 0) {
    const AllocationResult held = allocator.allocate(additions.besides, kDefaultStream);
    if (!held) return {.result = StepResult::oom, .ops_done = 0, .oom = held.oom()};
    besides = held->block;
  }
  ExecutedStep step = executor.run(program, shape);
  if (besides) allocator.free(*besides);
  if (step.result != StepResult::ok || additions.left == 0) return step;
  const AllocationResult left = allocator.allocate(additions.left, kDefaultStream);
  if (!left) return {.result = StepResult::oom, .ops_done = step.ops_done, .oom = left.oom()};
  return step;
}

MemoryView view_of(const MemoryStats& stats, Bytes total, Bytes device_free) {
  const auto bytes = [](std::int64_t counter) { return static_cast<Bytes>(counter); };
  return {.allocated = bytes(stats.allocated_bytes.all().current),
          .peak_allocated = bytes(stats.allocated_bytes.all().peak),
          .reserved = bytes(stats.reserved_bytes.all().current),
          .peak_reserved = bytes(stats.reserved_bytes.all().peak),
          .total = total,
          .device_free = device_free,
          .alloc_retries = static_cast<std::uint64_t>(stats.num_alloc_retries),
          .allocator_ooms = static_cast<std::uint64_t>(stats.num_ooms)};
}

Observation reading_of(std::vector<MemoryView> cards, std::int64_t iteration, SimTime now, CardsRule rule) {
  Observation reading{
      .iteration = iteration, .time = now, .memory = view_of_cards(cards, rule), .reading = iteration};
  if (cards.size() > 1) reading.cards = std::move(cards);
  return reading;
}

SimTime time_done(const StepProgram& program, const ExecutedStep& step) {
  if (step.result == StepResult::ok) return program.duration;
  const double share = program.ops.empty()
                           ? 1.0
                           : static_cast<double>(step.ops_done) / static_cast<double>(program.ops.size());
  return SimTime{static_cast<std::int64_t>(static_cast<double>(program.duration.count()) * share)};
}

const StepPrograms::Program& StepPrograms::next(const Point& point, std::optional<std::size_t> visits) {
  const auto [entry, fresh] = shapes_.try_emplace(point);
  Shape& shape = entry->second;
  if (fresh) shape.id = shapes_.size();
  const std::size_t settled = model_.first_steps();
  const std::size_t variant = std::min(visits ? *visits : shape.visits++, settled);
  if (variant == shape.programs.size()) {
    shape.programs.push_back(
        {++programs_, shape.id, variant < settled ? model_.first_step(point, variant) : model_.step(point)});
  }
  return shape.programs[variant];
}

std::size_t StepCache::HashWords::operator()(const std::vector<std::uint64_t>& words) const {
  std::uint64_t hash = words.size();
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;  // multiplicative hashing with the golden ratio
    hash ^= hash >> 32;
  }
  return hash;
}

StepCache::StateId StepCache::enter(const SimulatedProcess& process) {
  const auto [entry, fresh] =
      ids_.try_emplace(process.canonical_state(), static_cast<StateId>(nodes_.size()));
  if (fresh) nodes_.push_back({process.save(), {}});
  return entry->second;
}

StepRunner::StepRunner(const WorkloadModel& model, const ProcessSetup& setup)
    : StepRunner(ProcessWork{model.build(), &model}, setup) {}

StepRunner::StepRunner(const ProcessWork& work, const ProcessSetup& setup)
    : setup_(setup),
      card_(setup.card_total, setup.context_bytes, setup.driver_times),
      process_(card_, setup.allocator,
               work.model != nullptr ? recorded_places(*work.model) : std::vector<SegmentPlace>{}) {
  // The history and the states that the cache compares are those of the caching allocator.
  if (setup_.listener != nullptr || !setup_.allocator.backend.is_native()) setup_.use_step_cache = false;
  process_.allocator().set_listener(setup_.listener);
  require_built(process_.executor().run(work.built));
  stats_ = process_.memory().stats();
  built_ = process_.executor().state();
  process_.executor().keep_failed(setup_.keep_failed && !setup_.use_step_cache);
  if (setup_.use_step_cache) state_ = cache_.enter(process_);
  if (work.model != nullptr) programs_.emplace(*work.model);
}

StepOutcome StepRunner::run(const Point& point, const StepAdditions& additions) {
  if (!programs_) throw InternalError("a process that is given its steps is asked for a point");
  if (others_ != others_wanted_) serve_others();
  const StepPrograms::Program& next = programs_->next(point);
  return perform({next.key, others_, additions.besides, additions.left},
                 [&] { return execute(next.program, next.shape, additions); });
}

StepOutcome StepRunner::run_program(const StepProgram& program, std::uint64_t shape,
                                    const StepAdditions& additions) {
  if (setup_.use_step_cache) throw InternalError("a step without a number of its own is to be remembered");
  if (others_ != others_wanted_) serve_others();
  return perform({}, [&] { return execute(program, shape, additions); });
}

// Every step is counted from peaks of its own, then carried over to the counters that the policy resets.
template <class Work>
StepOutcome StepRunner::perform(StepCache::Action action, const Work& work) {
  if (state_) {
    if (const StepCache::Edge* edge = cache_.find(*state_, action)) {
      stats_.repeat(edge->step.before, edge->step.after);
      state_ = edge->to;
      process_is_current_ = false;
      misses_in_a_row_ = 0;
      ++cache_hits_;
      return edge->step.outcome;
    }
    catch_up();
  }
  const CountedStep step = count_step(process_.memory(), work);
  stats_.repeat(step.before, step.after);
  if (setup_.use_step_cache) remember(action, step);
  return step.outcome;
}

template <class Work>
SimTime StepRunner::empty_cache_after(const Work& work) {
  return perform({kEmptyCacheKey, others_},
                 [&] {
                   const SimTime before = process_.driver_time();
                   work();
                   process_.memory().empty_cache();
                   return StepOutcome{.duration = process_.driver_time() - before};
                 })
      .duration;
}

SimTime StepRunner::empty_cache() {
  return empty_cache_after([] {});
}

SimTime StepRunner::forget_steps(bool held_stay) {
  if (setup_.use_step_cache) throw InternalError("steps are forgotten while they are remembered");
  if (programs_) programs_->forget();
  return empty_cache_after([&] {
    if (!held_stay) process_.executor().release_failed();
    process_.executor().release_since(built_);
  });
}

void StepRunner::use_share(double share) {
  if (setup_.use_step_cache) throw InternalError("a limit is moved while steps are remembered");
  if (!setup_.allocator.backend.is_native()) {
    throw InputError("allocator.backend", "only the native allocator has a limit that moves. Write native.");
  }
  const Bytes whole = setup_.allocator.limit.value_or(setup_.card_total);
  const bool all = share >= 1;
  process_.allocator().set_limit(all ? setup_.allocator.limit
                                     : static_cast<Bytes>(share * static_cast<double>(whole)));
}

void StepRunner::catch_up() {
  if (process_is_current_) return;
  card_.set_others(0);  // until the restored state has taken its own
  process_.restore(cache_.state(*state_));
  card_.set_others(others_);
  process_is_current_ = true;
}

// Small tensors can wander through a large cache of free blocks without ever meeting an old state again.
// Then it is cheaper to look only now and then; two steps in a row, since an edge has two ends.
void StepRunner::remember(const StepCache::Action& action, const CountedStep& step) {
  ++misses_in_a_row_;
  if (misses_in_a_row_ >= kMostMisses && misses_in_a_row_ % kMostMisses >= 2) return state_.reset();
  if (cache_.size() >= kMostStates) {
    cache_.clear();
    state_.reset();
  }
  const StepCache::StateId to = cache_.enter(process_);
  if (state_) cache_.insert(*state_, action, {to, step});
  state_ = to;
}

StepOutcome StepRunner::execute(const StepProgram& program, std::uint64_t shape,
                                const StepAdditions& additions) {
  const SimTime before = process_.driver_time();
  const ExecutedStep step =
      run_with_additions(process_.memory(), process_.executor(), program, shape, additions);
  return {.result = step.result,
          .duration = time_done(program, step) + process_.driver_time() - before,
          .oom = step.oom};
}

// The same the allocator does (R8.5), on the counters that outlive cached steps.
void StepRunner::reset_peak() { stats_.reset_peaks(); }

void StepRunner::set_others(Bytes bytes) {
  others_wanted_ = bytes;
  serve_others();
}

// Others get what the process leaves them. Where the process is behind, its remembered state says how much
// that is: to put that back for it would take longer than most steps.
void StepRunner::serve_others() {
  if (process_is_current_) {
    others_ = card_.set_others(others_wanted_);
  } else {
    const Bytes taken = cache_.state(*state_).segments.taken;
    others_ = std::min(others_wanted_, setup_.card_total - setup_.context_bytes - taken);
  }
}

// Only with the cache off is the card where the run is, too.
Bytes StepRunner::available() const {
  const Bytes reserved = total_of(stats_.reserved_bytes);
  const Bytes limit = setup_.allocator.limit.value_or(setup_.card_total);
  return std::min(card_.free(), limit - std::min(limit, reserved));
}

MemoryView StepRunner::view() const {
  const Bytes used = setup_.context_bytes + others_ + total_of(stats_.reserved_bytes);
  return view_of(stats_, setup_.allocator.limit.value_or(setup_.card_total),
                 setup_.card_total - std::min(setup_.card_total, used));
}

}  // namespace vramlab
