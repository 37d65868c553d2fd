#include "sim/runs/job_process.hpp"

#include <utility>

#include "sim/runs/step_runner.hpp"

namespace vramlab {

JobProcess::JobProcess(SimulatedCard& card, Bytes context_bytes, const AllocatorOptions& options)
    : card_(card), context_bytes_(context_bytes), process_(card, options) {}

JobProcess::~JobProcess() {
  if (open_) card_.close_context(context_bytes_);  // the segments go back by themselves
}

bool JobProcess::open() {
  open_ = open_ || card_.open_context(context_bytes_);
  return open_;
}

JobProcess::Step JobProcess::run(const StepProgram& program, std::uint64_t key, std::uint64_t shape) {
  const auto calls = driver_calls();
  ExecutedStep done;
  const SimTime driver_time = timed([&] { done = process_.executor().run(program, shape); });
  const bool ok = done.result == StepResult::ok;
  return {.ok = ok,
          .driver_time = driver_time,
          .done = time_done(program, done),
          .oom = done.oom,
          .refused = done.oom ? done.oom->segment : 0,
          .settled = ok && key != 0 && is_settled(key, calls)};
}

// Does `work`, counts what segments it takes or gives back, and returns the driver's time for them.
template <class Work>
SimTime JobProcess::timed(const Work& work) {
  const Bytes taken = card_.taken();
  const SimTime before = process_.driver_time();
  work();
  segments_ += card_.taken() - taken;  // wraps where it falls, as intended
  return process_.driver_time() - before;
}

SimTime JobProcess::empty_cache() {
  return timed([&] { process_.allocator().empty_cache(); });
}

MemoryView JobProcess::view() const {
  return view_of(process_.allocator().stats(), process_.allocator().limit().value_or(card_.total()),
                 card_.free());
}

Holding JobProcess::holding() const {
  return {total_of(process_.allocator().stats().allocated_bytes), (open_ ? context_bytes_ : 0) + segments_};
}

// Calls that fail count too: they are asked again as soon as the card may answer otherwise.
std::vector<std::int64_t> JobProcess::driver_calls() const {
  const MemoryStats& stats = process_.allocator().stats();
  return {stats.num_device_alloc, stats.num_device_free, stats.num_alloc_retries, stats.num_ooms,
          process_.driver_time().count()};
}

bool JobProcess::is_settled(std::uint64_t key, const std::vector<std::int64_t>& calls_before) {
  if (std::exchange(last_key_, key) != key || driver_calls() != calls_before) {
    seen_.clear();
    quiet_steps_ = 0;
  }
  if (quiet_steps_ == kSettledAfter) return true;
  ++quiet_steps_;
  return !seen_.insert(process_.canonical_state()).second;
}

}  // namespace vramlab
