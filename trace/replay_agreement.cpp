#include "trace/replay_agreement.hpp"

#include <algorithm>

namespace vramlab {
namespace {

bool equal_blocks(const BlockView& a, const BlockView& b) {
  return a.address == b.address && a.size == b.size && a.requested == b.requested && a.state == b.state;
}

bool equal_layouts(const std::vector<SegmentView>& a, const std::vector<SegmentView>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SegmentView& x, const SegmentView& y) {
    return x.base == y.base && x.size == y.size && x.stream == y.stream && x.pool == y.pool &&
           std::equal(x.blocks.begin(), x.blocks.end(), y.blocks.begin(), y.blocks.end(), equal_blocks);
  });
}

}  // namespace

ReplayAgreement compare_replays(const ReplayedProgram& card, const ReplayedProgram& simulated,
                                bool compare_addresses) {
  ReplayAgreement agreement;
  agreement.actions = card.actions.size();
  const std::size_t both = std::min(card.actions.size(), simulated.actions.size());
  for (std::size_t i = 0; i < both; ++i) {
    const ReplayedAction& real = card.actions[i];
    const ReplayedAction& pretended = simulated.actions[i];
    const bool equal_address = real.address == pretended.address || !compare_addresses;
    agreement.allocations += real.address != 0 ? 1 : 0;
    agreement.equal_addresses += real.address != 0 && real.address == pretended.address ? 1 : 0;
    agreement.ooms += real.failed ? 1 : 0;
    agreement.any_ooms += real.failed || pretended.failed ? 1 : 0;
    agreement.equal_ooms += real.failed && pretended.failed ? 1 : 0;
    agreement.equal_reserved += real.reserved == pretended.reserved ? 1 : 0;
    agreement.equal_segments += real.segments == pretended.segments ? 1 : 0;
    const bool equal = equal_address && real.failed == pretended.failed &&
                       real.reserved == pretended.reserved && real.allocated == pretended.allocated &&
                       real.segments == pretended.segments;
    if (!equal && !agreement.first_difference) agreement.first_difference = i;
  }
  if (card.actions.size() != simulated.actions.size() && !agreement.first_difference) {
    agreement.first_difference = both;
  }
  agreement.equal_layout = !compare_addresses || equal_layouts(card.segments, simulated.segments);
  agreement.peak_reserved_card = card.outcome.highest_reserved;
  agreement.peak_reserved_simulated = simulated.outcome.highest_reserved;
  return agreement;
}

}  // namespace vramlab
