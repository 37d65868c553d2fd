#include "lab/oom_reasoning.hpp"

#include <array>
#include <cmath>

#include "sim/memory/oom_report.hpp"

namespace vramlab {

std::string size_text(const SizeRange& size) { return oom_size(size.bytes()); }

OomRefusal refusal_of(const OomSizes& sizes, OomLayout layout) {
  OomRefusal refusal;
  refusal.by_device = exceeds(sizes.tried, sizes.free);
  if (sizes.allowed) refusal.by_limit = exceeds(sizes.reserved + sizes.tried, *sizes.allowed);
  const bool knows_limits = layout != OomLayout::torch_cached;  // the fraction came after 1.4
  if (!sizes.allowed && knows_limits && refusal.by_device == Answer::no &&
      layout != OomLayout::cuda_malloc_async) {
    refusal.limit_is_deduced = true;
    refusal.by_limit = Answer::yes;
  }
  return refusal;
}

bool would_fit(const OomSizes& sizes, const OomRefusal& refusal, Remedy remedy) {
  const std::int64_t from_idle = remedy.idle ? sizes.all_idle().value : 0;
  const std::int64_t from_others = remedy.others ? sizes.others.value : 0;
  const std::int64_t on_device = sizes.free.value + from_idle + from_others;
  if (on_device < sizes.tried.value) return false;
  if (remedy.limit) return true;
  if (refusal.limit_is_deduced)
    return from_idle >= sizes.tried.value;  // how much was left below it is unknown
  if (!sizes.allowed) return true;
  return sizes.allowed->value - sizes.reserved.value + from_idle >= sizes.tried.value;
}

namespace {

struct Candidate {
  OomCause cause;
  Remedy remedy;
  std::int64_t withheld;
};

}  // namespace

OomCause cause_of(const OomSizes& sizes, const OomRefusal& refusal) {
  const std::array candidates{
      Candidate{OomCause::fraction_limit, {.limit = true}, sizes.free.value},
      Candidate{OomCause::fragmentation, {.idle = true}, sizes.all_idle().value},
      Candidate{OomCause::other_processes, {.others = true}, sizes.others.value},
  };
  const auto largest = [&](bool must_suffice) {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates) {
      if (candidate.cause == OomCause::fraction_limit && !refusal.limit_binds()) continue;
      if (must_suffice && !would_fit(sizes, refusal, candidate.remedy)) continue;
      if (best == nullptr || candidate.withheld > best->withheld) best = &candidate;
    }
    return best;
  };
  if (const Candidate* alone = largest(true)) return alone->cause;
  // Nothing alone would have done; is there enough if everything is imagined away?
  if (!would_fit(sizes, refusal, {.idle = true, .others = true, .limit = true})) return OomCause::too_big;
  return largest(false)->cause;
}

SizeRange shortfall(const OomSizes& sizes, const OomRefusal& refusal) {
  const SizeRange on_device = sizes.tried - sizes.free;
  if (refusal.limit_is_deduced) {
    const auto round = deduced_fraction(sizes).round;
    if (!round) return {0, 0, sizes.tried.high};
    const auto share = [&](std::int64_t n) {
      return static_cast<std::int64_t>(*round * static_cast<double>(n));
    };
    return sizes.reserved + sizes.tried -
           SizeRange{share(sizes.total.value), share(sizes.total.low), share(sizes.total.high)};
  }
  if (!sizes.allowed) return on_device;
  const SizeRange below_limit = sizes.reserved + sizes.tried - *sizes.allowed;
  return below_limit.value > on_device.value ? below_limit : on_device;
}

FractionRange deduced_fraction(const OomSizes& sizes) {
  FractionRange range;
  range.low = static_cast<double>(sizes.reserved.low) / static_cast<double>(sizes.total.high);
  range.high =
      static_cast<double>((sizes.reserved + sizes.tried).high) / static_cast<double>(sizes.total.low);
  const double step = std::ceil(range.low * 20);
  if (step / 20 <= range.high && step < 20) range.round = step / 20;
  return range;
}

}  // namespace vramlab
