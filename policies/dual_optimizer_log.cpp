#include "policies/dual_optimizer_log.hpp"

#include "policies/figures.hpp"

namespace vramlab {
namespace {

std::string usage_text(Bytes part, const MemoryView& memory) {
  return fixed_point(share_of_total(part, memory), 3) + " (" + format_bytes(part) + ")";
}

std::string ratio(double value) { return fixed_point(value, 3); }

std::string pair_text(BatchAndLq pair) {
  return "(" + std::to_string(pair.batch) + ", " + std::to_string(pair.lq) + ")";
}

std::string change_text(BatchAndLq from, BatchAndLq to) {
  return "batch " + signed_number(to.batch - from.batch) + ", lq " + signed_number(to.lq - from.lq);
}

const char* read_from(const DualOptimizerOptions& o) {
  return o.usage_source == UsageSource::peak ? "peak usage " : "usage ";
}

}  // namespace

std::string start_line(const DualOptimizerOptions& o, const MemoryView& memory) {
  return "monitoring started: initial peak " + usage_text(memory.peak_allocated, memory) + ", a look every " +
         std::to_string(o.adjustment_frequency) + " iterations";
}

std::string warm_up_line(const DualOptimizerOptions& o) {
  return "initialisation phase: no adjustments before iteration " + std::to_string(o.adjustment_frequency);
}

std::string usage_line(const DualOptimizerOptions& o, const MemoryView& memory) {
  const double target = o.target_vram_usage * static_cast<double>(memory.total);
  return "usage now " + usage_text(memory.allocated, memory) + ", peak " +
         usage_text(memory.peak_allocated, memory) + ", target " + ratio(o.target_vram_usage) + " (" +
         format_bytes(static_cast<Bytes>(target)) + ")";
}

std::string warning_line(const DualOptimizerOptions& o, const MemoryView& memory) {
  return "warning: " + usage_text(memory.allocated, memory) + " is allocated after a step, above " +
         ratio(o.warning_usage);
}

std::string decision_line(double usage, BatchAndLq from, BatchAndLq to, const std::string& reason) {
  return "decision at " + ratio(usage) + ": " + change_text(from, to) + ", because " + reason;
}

std::string period_line(const DualOptimizerOptions& o, std::int64_t iteration) {
  return "period complete at iteration " + std::to_string(iteration) + "; the next look is " +
         std::to_string(o.adjustment_frequency + 1) + " iterations away";
}

std::string decision_reason(const DualOptimizerOptions& o, Wish wish, double usage, BatchAndLq from,
                            BatchAndLq to) {
  const double low = o.target_vram_usage - o.safety_margin;
  const double high = o.target_vram_usage + o.safety_margin;
  const std::string read = read_from(o) + ratio(usage);
  const std::string change = from == to ? "no change" : change_text(from, to);
  if (wish == Wish::grow) {
    return read + " is below " + ratio(low) + ": " + (from == to ? "no step fits, " : "") + change;
  }
  if (wish == Wish::shrink) {
    return read + " is above " + ratio(high) + ": " + (from == to ? "both are at their minimum, " : "") +
           change;
  }
  return read + " lies within " + ratio(low) + " to " + ratio(high) + ": no change";
}

std::string used_up_reason(const DualOptimizerOptions& o, double usage) {
  return read_from(o) + ratio(usage) + ": no change, all " + std::to_string(o.max_adjustments) +
         " adjustments are used up";
}

std::string snap_reason(const DualOptimizerOptions& o, BatchAndLq from, BatchAndLq to) {
  return "lq " + std::to_string(from.lq) + " is no multiple of " + std::to_string(o.lq_granularity) + ": " +
         change_text(from, to);
}

std::string recovery_reason(BatchAndLq from, const Recovery& way, std::int64_t cooldown) {
  if (from == way.target) {
    return "oom at " + pair_text(from) + ": nothing is left to shrink; no look for " +
           std::to_string(cooldown) + " iterations";
  }
  return "oom at " + pair_text(from) + ": " + way.how + " gives " + pair_text(way.target) + "; no look for " +
         std::to_string(cooldown) + " iterations";
}

std::string first_failure_reason(BatchAndLq pair) {
  return "oom at " + pair_text(pair) + ": the run ends with its first OOM (oom_ends_run)";
}

std::string recoveries_used_up_reason(const DualOptimizerOptions& o, BatchAndLq pair) {
  return "oom at " + pair_text(pair) + ": the run ends, all " + std::to_string(o.max_adjustments) +
         " recoveries are used up (max_adjustments)";
}

std::string floor_reason(const DualOptimizerOptions& o, BatchAndLq pair) {
  return "oom at " + pair_text(pair) + ": the run ends, nothing is left to shrink and " +
         std::to_string(o.oom_floor_limit) + " steps in a row have failed (oom_floor_limit)";
}

}  // namespace vramlab
