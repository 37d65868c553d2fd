#include "sim/runs/job_process.hpp"

#include <algorithm>
#include <utility>

namespace vramlab {
namespace {

constexpr Bytes kChunk = 512_MiB;
constexpr Bytes kPage = 2_MiB;  // R10.1

}  // namespace

const JobProgram& JobPrograms::build(const WorkloadModel& model) {
  const auto [entry, fresh] = builds_.try_emplace(&model);
  if (fresh) entry->second = {model.build(), ++keys_, 0};
  return entry->second;
}

const JobProgram& JobPrograms::step(const WorkloadModel& model, const Point& point, std::size_t visits) {
  const std::size_t variant = std::min(visits, model.first_steps());
  const auto shape = shapes_.try_emplace({&model, point}, shapes_.size() + 1).first->second;
  const auto [entry, fresh] = steps_.try_emplace({shape, variant});
  if (fresh) {
    const bool first = variant < model.first_steps();
    entry->second = {first ? model.first_step(point, variant) : model.step(point), ++keys_, shape};
  }
  return entry->second;
}

// The first block takes what is left of whole chunks: a small block would get a segment larger than itself
// (R2.2).
JobProgram JobPrograms::flat(Bytes bytes, Bytes card_total, SimTime duration) {
  const auto slots = static_cast<std::uint32_t>(card_total / kChunk + 1);
  const auto chunks = static_cast<std::uint32_t>(bytes / kChunk);
  const Bytes first = bytes / kPage * kPage - (chunks > 0 ? chunks - 1 : 0) * kChunk;
  StepProgram program{.ops = {}, .persistent_slots = slots, .slots = slots, .duration = duration};
  for (std::uint32_t slot = std::max(chunks, 1u); slot < slots; ++slot) {
    program.ops.push_back({.kind = MemoryOpKind::free, .slot = slot});
  }
  program.ops.push_back({.kind = MemoryOpKind::free, .slot = 0});
  if (first > 0) program.ops.push_back({.kind = MemoryOpKind::allocate, .slot = 0, .size = first});
  for (std::uint32_t slot = 1; slot < chunks; ++slot) {
    program.ops.push_back({.kind = MemoryOpKind::ensure, .slot = slot, .size = kChunk});
  }
  return {std::move(program), ++keys_, 0};
}

namespace {

// Small tensors can wander through the cache without ever meeting an old state again. In the shipped models
// that do (GPT-2, ResNet-50), no step after the fourth calls the driver.
constexpr int kPatience = 24;

}  // namespace

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
  const bool ok = process_.executor().run(program, shape).result == StepResult::ok;
  segments_ += card_.taken() - taken;  // wraps where it falls, as intended
  return {
      .ok = ok, .driver_time = process_.driver_time() - driver_time, .settled = ok && is_settled(key, calls)};
}

Holding JobProcess::holding() const {
  return {static_cast<Bytes>(process_.allocator().stats().allocated_bytes.all().current),
          (open_ ? context_bytes_ : 0) + segments_};
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
  if (quiet_steps_ == kPatience) return true;
  ++quiet_steps_;
  return !seen_.insert(process_.canonical_state()).second;
}

}  // namespace vramlab
