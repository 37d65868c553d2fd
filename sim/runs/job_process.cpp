#include "sim/runs/job_process.hpp"

#include <utility>

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
  const Bytes taken = card_.taken();
  const SimTime driver_time = process_.driver_time();
  const auto calls = driver_calls();
  const ExecutedStep done = process_.executor().run(program, shape);
  const bool ok = done.result == StepResult::ok;
  segments_ += card_.taken() - taken;  // wraps where it falls, as intended
  return {.ok = ok,
          .driver_time = process_.driver_time() - driver_time,
          .refused = done.oom ? done.oom->segment : 0,
          .settled = ok && is_settled(key, calls)};
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
