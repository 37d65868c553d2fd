#include "lab/oom/reasoning.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

// The three layouts print two of {allocated, idle, reserved}; the third follows.
bool read_own_memory(const OomMessage& message, OomSizes& sizes) {
  if (!message.allocated) return false;
  const SizeRange allocated = range_of(*message.allocated);
  if (message.private_pools) sizes.pool_idle = range_of(*message.private_pools);
  sizes.live = allocated - sizes.pool_idle;  // R4.12: the printed figure counts them
  if (message.idle) {
    sizes.idle = range_of(*message.idle);
    sizes.reserved = allocated + sizes.idle;
  } else if (message.reserved) {
    sizes.reserved = range_of(*message.reserved);
    sizes.idle = sizes.reserved - allocated;
  } else {
    return false;
  }
  return true;
}

SizeRange sum_of(const std::vector<OomMessage::Process>& processes) {
  SizeRange sum;
  for (const auto& process : processes) sum = sum + range_of(process.size);
  return sum;
}

// In a container the driver reports process numbers of the host, so PyTorch lists this process as "Process N"
// and prints no line of its own. It must be among the listed if the card has no room for it beside them: the
// smallest that can hold what PyTorch reserved.
void find_own_process(const OomMessage& message, OomSizes& sizes) {
  if (message.own_process || message.others.empty()) return;
  const SizeRange unlisted = sizes.total - sizes.free - sum_of(message.others);
  if (unlisted.high >= sizes.reserved.low) return;
  for (const auto& process : message.others) {
    const bool holds_it =
        process.size.high >= static_cast<Bytes>(std::max<std::int64_t>(sizes.reserved.low, 0));
    const bool smaller = !sizes.own_listed_as || process.size.bytes < sizes.own_listed_as->size.bytes;
    sizes.own_is_uncertain |= holds_it && sizes.own_listed_as.has_value();
    if (holds_it && smaller) sizes.own_listed_as = process;
  }
}

// Two or more other processes with as much as a context, alike to 5 %.
void find_small_equals(const std::vector<OomMessage::Process>& others, OomSizes& sizes) {
  std::vector<OomMessage::Process> small;
  for (const auto& process : others) {
    if (static_cast<std::int64_t>(process.size.bytes) <= kLargestLikelyContext) small.push_back(process);
  }
  if (small.size() < 2) return;
  const auto by_size = [](const auto& a, const auto& b) { return a.size.bytes < b.size.bytes; };
  const auto [least, most] = std::minmax_element(small.begin(), small.end(), by_size);
  if (most->size.bytes - least->size.bytes <= most->size.bytes / 20) sizes.small_equals = std::move(small);
}

// Nothing says whose the memory outside is: as much as a context is taken for this process's, and the rest
// for other processes' if no context is that large.
void assume_shares(OomSizes& sizes) {
  const SizeRange outside = sizes.outside.at_least_zero();
  if (outside.value <= kLargestLikelyContext) {
    sizes.own_context = outside;
    return;
  }
  sizes.own_context = {kLargestMeasuredContext, 0, kLargestLikelyContext};
  sizes.others = (outside - SizeRange::exactly(kLargestMeasuredContext)).at_least_zero();
}

void share_out_the_outside(const OomMessage& message, OomSizes& sizes) {
  sizes.outside = sizes.total - sizes.free - sizes.reserved;
  sizes.others_listed = !message.others.empty() || message.own_process.has_value();
  if (!sizes.others_listed) return assume_shares(sizes);
  find_own_process(message, sizes);
  std::vector<OomMessage::Process> others = message.others;
  const auto own_pid = sizes.own_listed_as ? std::optional{sizes.own_listed_as->pid} : std::nullopt;
  std::erase_if(others, [&](const auto& process) { return own_pid == process.pid; });
  sizes.others = sum_of(others);
  find_small_equals(others, sizes);
  const SizeRange outside = sizes.outside.at_least_zero();
  const auto own = message.own_process   ? message.own_process
                   : sizes.own_listed_as ? std::optional{sizes.own_listed_as->size}
                                         : std::nullopt;
  if (!own) {
    sizes.own_context = (outside - sizes.others).at_least_zero();
    return;
  }
  sizes.own_context = (range_of(*own) - sizes.reserved).at_least_zero();
  const SizeRange unlisted = outside - sizes.own_context - sizes.others;
  if (unlisted.low > kLeastOfOthers) {  // processes of other containers
    sizes.others = sizes.others + unlisted;
    sizes.others_listed = false;
  }
}

// XPU prints no free memory: at most what PyTorch here has not reserved.
bool read_card(const OomMessage& message, OomSizes& sizes) {
  if (!message.tried || !message.total) return false;
  sizes.tried = range_of(*message.tried);
  sizes.total = range_of(*message.total);
  sizes.free_is_bound = !message.free;
  if (message.free) sizes.free = range_of(*message.free);
  if (message.allowed) sizes.allowed = range_of(*message.allowed);
  return true;
}

}  // namespace

SizeRange range_of(const PrintedSize& size) {
  return {static_cast<std::int64_t>(size.bytes), static_cast<std::int64_t>(size.low),
          static_cast<std::int64_t>(size.high)};
}

std::optional<OomSizes> oom_sizes(const OomMessage& message) {
  OomSizes sizes;
  if (!read_card(message, sizes)) return {};
  if (message.layout == OomLayout::cuda_malloc_async) {  // prints no reserved figure: counts live bytes only
    if (!message.allocated || !message.free) return {};
    sizes.live = sizes.reserved = range_of(*message.allocated);
    if (sizes.allowed && sizes.allowed->value >= sizes.total.value) sizes.allowed.reset();  // no limit is set
    sizes.driver_pool = true;
    sizes.own_context =
        (sizes.total - sizes.free - sizes.reserved).at_least_zero();  // with the driver's pool
    return sizes;
  }
  if (!read_own_memory(message, sizes)) return {};
  if (sizes.free_is_bound) sizes.free = (sizes.total - sizes.reserved).at_least_zero();
  share_out_the_outside(message, sizes);
  return sizes;
}

std::string shortfall_text(const SizeRange& missing) {
  if (missing.low > 0) return size_text(missing);
  return fmt::format("less than the printed rounding (at most {})", size_text({missing.high, 0, 0}));
}

std::string size_text(const SizeRange& size) { return oom_size(size.bytes()); }

bool is_paged(const OomSizes& sizes) { return sizes.reserved.low > sizes.total.high; }

SizeRange excess_outside(const OomSizes& sizes) {
  const bool known = sizes.driver_pool || sizes.others_listed || sizes.own_listed_as;
  if (!known || sizes.own_context.value <= kLargestLikelyContext) return {};
  return sizes.own_context - SizeRange::exactly(kLargestMeasuredContext);
}

SizeRange unassigned(const OomSizes& sizes) {
  const bool assumed = !sizes.others_listed && !sizes.driver_pool && sizes.others.value == 0;
  if (!assumed || sizes.own_context.value <= kLargestMeasuredContext) return {};
  return sizes.own_context - SizeRange::exactly(kLargestMeasuredContext);
}

OomRefusal refusal_of(const OomSizes& sizes, OomLayout layout) {
  OomRefusal refusal;
  refusal.by_device = exceeds(sizes.tried, sizes.free);
  if (sizes.allowed) refusal.by_limit = exceeds(sizes.reserved + sizes.tried, *sizes.allowed);
  // The fraction came after 1.4. A round one in a wide interval, or none at all, explains nothing.
  const bool may_have_one = (layout == OomLayout::torch_reserved || layout == OomLayout::torch_sentences) &&
                            !sizes.allowed && !sizes.free_is_bound;
  if (may_have_one && refusal.by_device == Answer::no) {
    const FractionRange fraction = deduced_fraction(sizes);
    refusal.limit_is_deduced = fraction.round && fraction.high - fraction.low <= 0.01;
    if (refusal.limit_is_deduced) refusal.by_limit = Answer::yes;
  }
  return refusal;
}

bool would_fit(const OomSizes& sizes, const OomRefusal& refusal, Remedy remedy) {
  const std::int64_t from_idle = remedy.idle ? sizes.all_idle().value : 0;
  const std::int64_t from_others = remedy.others ? sizes.others.value : 0;
  const std::int64_t from_outside = remedy.outside ? excess_outside(sizes).value : 0;
  const std::int64_t on_device = sizes.free.value + from_idle + from_others + from_outside;
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
      Candidate{sizes.driver_pool ? OomCause::driver_pool : OomCause::outside_pytorch,
                {.outside = true},
                excess_outside(sizes).value},
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
  if (is_paged(sizes) && sizes.live.low > sizes.total.high) return OomCause::too_big;
  if (const Candidate* alone = largest(true)) return alone->cause;
  // Nothing alone would have done; is there enough if everything is imagined away?
  if (!would_fit(sizes, refusal, {.idle = true, .others = true, .limit = true, .outside = true}))
    return OomCause::too_big;
  return largest(false)->cause;
}

SizeRange shortfall(const OomSizes& sizes, const OomRefusal& refusal) {
  const SizeRange on_device = sizes.tried - sizes.free;
  if (refusal.limit_is_deduced) {
    const auto round = deduced_fraction(sizes).round;
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
  if (step / 20 <= range.high && step >= 1 && step < 20) range.round = step / 20;
  return range;
}

}  // namespace vramlab
