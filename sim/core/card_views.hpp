// One workload on several cards: what to read of them where one figure is wanted.
#pragma once

#include <cstdint>
#include <span>

#include "sim/core/observation.hpp"

namespace vramlab {

/// Which memory counts where a workload runs on several cards (P4.3).
enum class CardsRule : std::uint8_t {
  fullest,  ///< the card whose peak is the largest share of its total: it fails first
  sum       ///< peaks against totals, both summed: hides one full card
};

/// One view of several cards, by `rule`. Retries and refusals are those of all cards together, so that they
/// never fall when another card becomes the fullest. `cards` must not be empty.
MemoryView view_of_cards(std::span<const MemoryView> cards, CardsRule rule);

}  // namespace vramlab
