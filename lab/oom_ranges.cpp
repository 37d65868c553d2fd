#include "lab/oom_ranges.hpp"

namespace vramlab {

SizeRange range_of(const PrintedSize& size) {
  return {static_cast<std::int64_t>(size.bytes), static_cast<std::int64_t>(size.low),
          static_cast<std::int64_t>(size.high)};
}

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

}  // namespace vramlab
