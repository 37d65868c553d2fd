#include "sim/workload/job_programs.hpp"

#include <algorithm>

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

}  // namespace vramlab
