// Relations between the figures of a message, checked with what rounding leaves open.
#include <algorithm>

#include <fmt/format.h>

#include "lab/oom/reasoning.hpp"

namespace vramlab {
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
            is_paged(sizes) ? "paging: the driver of Windows has moved memory to the computer's"
                            : "more than the card has in use",
            is_paged(sizes));
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
            "both are of one card", is_paged(sizes));
  }
  if (message.others.empty() || !sizes.others_listed || is_paged(sizes)) return;
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
    check.remark = "a memory fraction, inferred: the message prints none";
  } else if (!refusal.is_explained()) {
    check.outcome = Outcome::open;
    check.remark = "more was free than was asked: see the possible causes";
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
