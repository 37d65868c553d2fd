// Relations between the figures of a message, checked with what rounding leaves open.
#include <fmt/format.h>

#include "lab/oom_reasoning.hpp"

namespace vramlab {
namespace {

using Outcome = FigureCheck::Outcome;

// Neighbours change while the message is put together: free memory is read first, then each process. The
// largest excess in 1,823 recorded messages was 250 MiB; more than this share of the card is no such change.
constexpr std::int64_t kShareThatNeighboursMayMove = 16;

class Checks {
 public:
  std::vector<FigureCheck> all;

  /// `less` <= `more`; if not, `remark` says why it cannot be, or may be.
  void at_most(const std::string& what, const SizeRange& less, const SizeRange& more, const char* remark,
               bool may_be = false) {
    FigureCheck check;
    check.what = fmt::format("{}: {} <= {}", what, size_text(less), size_text(more));
    check.outcome = exceeds(less, more) != Answer::yes ? Outcome::holds
                    : may_be                           ? Outcome::explained
                                                       : Outcome::broken;
    if (check.outcome != Outcome::holds) check.remark = remark;
    if (check.outcome == Outcome::holds && less.value > more.value) {
      check.outcome = Outcome::explained;
      check.remark = "by rounding to two decimals";
    }
    all.push_back(std::move(check));
  }
};

void check_own_memory(const OomMessage& message, const OomSizes& sizes, Checks& checks) {
  if (message.reserved) {
    checks.at_most("allocated <= reserved", range_of(*message.allocated), sizes.reserved,
                   "tensors lie in reserved memory");
  }
  if (message.private_pools) {
    checks.at_most("private pools <= allocated", sizes.pool_idle, range_of(*message.allocated),
                   "the printed allocated figure includes them");
  }
  if (message.layout != OomLayout::cuda_malloc_async) {
    checks.at_most(
        "reserved <= total - free", sizes.reserved, sizes.total - sizes.free,
        "more than the card has in use; on Windows the driver may have moved memory to the computer");
  }
  if (message.own_process) {
    checks.at_most("reserved <= this process", sizes.reserved, range_of(*message.own_process),
                   "what PyTorch reserved is part of the process");
  }
}

void check_capacity(const OomMessage& message, const OomSizes& sizes, Checks& checks) {
  checks.at_most("free <= total", sizes.free, sizes.total, "a card has no more free than it has");
  if (message.own_process) {
    checks.at_most("free + this process <= total", sizes.free + range_of(*message.own_process), sizes.total,
                   "both are of one card");
  }
  if (message.others.empty()) return;
  const SizeRange parts = sizes.free + sizes.reserved + sizes.own_context + sizes.others;
  const SizeRange excess = parts - sizes.total;
  const bool may_be =
      excess.low <= std::min(sizes.total.value / kShareThatNeighboursMayMove, sizes.others.high);
  checks.at_most("free + all processes <= total", parts, sizes.total,
                 may_be ? "processes are read one after another while neighbours change"
                        : "more than neighbours can change while the message is put together",
                 may_be);
}

void check_limit(const OomSizes& sizes, Checks& checks) {
  if (!sizes.allowed) return;
  checks.at_most("limit <= total", *sizes.allowed, sizes.total, "a fraction is at most 1");
  checks.at_most("reserved <= limit", sizes.reserved, *sizes.allowed,
                 "the limit was lowered at run time, or expandable segments mapped a whole page across it",
                 true);
}

void check_refusal(const OomSizes& sizes, const OomRefusal& refusal, Checks& checks) {
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
  checks.all.push_back(std::move(check));
}

}  // namespace

std::vector<FigureCheck> check_figures(const OomMessage& message, const OomSizes& sizes,
                                       const OomRefusal& refusal) {
  Checks checks;
  check_capacity(message, sizes, checks);
  check_own_memory(message, sizes, checks);
  check_limit(sizes, checks);
  check_refusal(sizes, refusal, checks);
  return std::move(checks.all);
}

}  // namespace vramlab
