#include "core/observation.hpp"

namespace vramlab {
namespace {

double usage(const MemoryView& card) {
  return static_cast<double>(card.peak_allocated) / static_cast<double>(card.total);
}

}  // namespace

MemoryView view_of_cards(std::span<const MemoryView> cards, CardsRule rule) {
  MemoryView sum;
  sum.device_free = 0;
  const MemoryView* fullest = &cards.front();
  for (const MemoryView& card : cards) {
    sum.allocated += card.allocated;
    sum.peak_allocated += card.peak_allocated;
    sum.reserved += card.reserved;
    sum.peak_reserved += card.peak_reserved;
    sum.total += card.total;
    if (!card.device_free) sum.device_free.reset();
    if (sum.device_free) *sum.device_free += *card.device_free;
    sum.alloc_retries += card.alloc_retries;
    sum.allocator_ooms += card.allocator_ooms;
    if (usage(card) > usage(*fullest)) fullest = &card;
  }
  if (rule == CardsRule::sum) return sum;
  MemoryView view = *fullest;
  view.alloc_retries = sum.alloc_retries;
  view.allocator_ooms = sum.allocator_ooms;
  return view;
}

}  // namespace vramlab
