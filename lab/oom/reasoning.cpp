#include "lab/oom/reasoning.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

SizeRange range_of(const PrintedSize& size) {
  return {static_cast<std::int64_t>(size.bytes), static_cast<std::int64_t>(size.low),
          static_cast<std::int64_t>(size.high)};
}

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

void share_out_the_outside(const OomMessage& message, OomSizes& sizes) {
  sizes.outside = sizes.total - sizes.free - sizes.reserved;
  for (const auto& process : message.others) sizes.others = sizes.others + range_of(process.size);
  sizes.others_listed = !message.others.empty() || message.own_process.has_value();
  const SizeRange outside = sizes.outside.at_least_zero();
  if (message.own_process) {
    sizes.own_context = (range_of(*message.own_process) - sizes.reserved).at_least_zero();
  } else if (sizes.others_listed) {
    sizes.own_context = (outside - sizes.others).at_least_zero();
  } else {
    const auto own = [](std::int64_t n) { return std::min(n, kLargestMeasuredContext); };
    sizes.own_context = {own(outside.value), own(outside.low), own(outside.high)};
    const auto rest = [](std::int64_t n) { return std::max<std::int64_t>(n - kLargestMeasuredContext, 0); };
    sizes.others = {rest(outside.value), rest(outside.low), rest(outside.high)};
  }
}

}  // namespace

std::optional<OomSizes> oom_sizes(const OomMessage& message) {
  if (!message.tried || !message.total || !message.free) return {};
  OomSizes sizes;
  sizes.tried = range_of(*message.tried);
  sizes.total = range_of(*message.total);
  sizes.free = range_of(*message.free);
  if (message.allowed) sizes.allowed = range_of(*message.allowed);
  if (message.layout == OomLayout::cuda_malloc_async) {  // prints no reserved figure: counts live bytes only
    if (!message.allocated) return {};
    sizes.live = sizes.reserved = range_of(*message.allocated);
    if (sizes.allowed && sizes.allowed->value >= sizes.total.value) sizes.allowed.reset();  // no limit is set
    sizes.own_context =
        (sizes.total - sizes.free - sizes.reserved).at_least_zero();  // with the driver's pool
    return sizes;
  }
  if (!read_own_memory(message, sizes)) return {};
  share_out_the_outside(message, sizes);
  return sizes;
}

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

// Relations between the figures of a message, checked with what rounding leaves open.
namespace {

using Outcome = FigureCheck::Outcome;

// Neighbours change while the message is put together: free memory is read first, then each process. The
// largest excess in 1,823 recorded messages was 250 MiB; more than this share of the card is not such a
// change.
constexpr std::int64_t kShareThatNeighboursMayMove = 16;

// `less` <= `more`; if not, `remark` says why it cannot be, or may be.
void at_most(std::vector<FigureCheck>& checks, const std::string& what, const SizeRange& less,
             const SizeRange& more, const char* remark, bool may_be = false) {
  FigureCheck check{.what = fmt::format("{}: {} <= {}", what, size_text(less), size_text(more)),
                    .outcome = Outcome::holds,
                    .remark = ""};
  if (exceeds(less, more) == Answer::yes) {
    check.outcome = may_be ? Outcome::explained : Outcome::broken;
    check.remark = remark;
  } else if (less.value > more.value) {
    check.outcome = Outcome::explained;
    check.remark = "by rounding to two decimals";
  }
  checks.push_back(std::move(check));
}

void check_own_memory(const OomMessage& message, const OomSizes& sizes, std::vector<FigureCheck>& checks) {
  if (message.reserved) {
    at_most(checks, "allocated <= reserved", range_of(*message.allocated), sizes.reserved,
            "tensors lie in reserved memory");
  }
  if (message.private_pools) {
    at_most(checks, "private pools <= allocated", sizes.pool_idle, range_of(*message.allocated),
            "the printed allocated figure includes them");
  }
  if (message.layout != OomLayout::cuda_malloc_async) {
    at_most(checks, "reserved <= total - free", sizes.reserved, sizes.total - sizes.free,
            "more than the card has in use; on Windows the driver may have moved memory to the computer");
  }
  if (message.own_process) {
    at_most(checks, "reserved <= this process", sizes.reserved, range_of(*message.own_process),
            "what PyTorch reserved is part of the process");
  }
}

void check_capacity(const OomMessage& message, const OomSizes& sizes, std::vector<FigureCheck>& checks) {
  at_most(checks, "free <= total", sizes.free, sizes.total, "a card has no more free than it has");
  if (message.own_process) {
    at_most(checks, "free + this process <= total", sizes.free + range_of(*message.own_process), sizes.total,
            "both are of one card");
  }
  if (message.others.empty()) return;
  const SizeRange parts = sizes.free + sizes.reserved + sizes.own_context + sizes.others;
  const SizeRange excess = parts - sizes.total;
  const bool may_be =
      excess.low <= std::min(sizes.total.value / kShareThatNeighboursMayMove, sizes.others.high);
  at_most(checks, "free + all processes <= total", parts, sizes.total,
          may_be ? "processes are read one after another while neighbours change"
                 : "more than neighbours can change while the message is put together",
          may_be);
}

void check_limit(const OomSizes& sizes, std::vector<FigureCheck>& checks) {
  if (!sizes.allowed) return;
  at_most(checks, "limit <= total", *sizes.allowed, sizes.total, "a fraction is at most 1");
  at_most(checks, "reserved <= limit", sizes.reserved, *sizes.allowed,
          "the limit was lowered at run time, or expandable segments mapped a whole page across it", true);
}

void check_refusal(const OomSizes& sizes, const OomRefusal& refusal, std::vector<FigureCheck>& checks) {
  FigureCheck check;
  check.what =
      fmt::format("something refused: asked {} > free {}", size_text(sizes.tried), size_text(sizes.free));
  if (sizes.allowed) {
    check.what += fmt::format(", or reserved + asked {} > limit {}", size_text(sizes.reserved + sizes.tried),
                              size_text(*sizes.allowed));
  }
  check.outcome = Outcome::holds;
  if (refusal.limit_is_deduced) {
    check.outcome = Outcome::explained;
    check.remark = "a memory fraction, which this version does not print";
  } else if (!refusal.is_explained()) {
    check.outcome = Outcome::broken;
    check.remark = "neither holds: memory became free between the refusal and the message";
  }
  checks.push_back(std::move(check));
}

}  // namespace

std::vector<FigureCheck> check_figures(const OomMessage& message, const OomSizes& sizes,
                                       const OomRefusal& refusal) {
  std::vector<FigureCheck> checks;
  check_capacity(message, sizes, checks);
  check_own_memory(message, sizes, checks);
  check_limit(sizes, checks);
  check_refusal(sizes, refusal, checks);
  return checks;
}

}  // namespace vramlab
