#include "cuda/memory_holder.hpp"

#include <algorithm>
#include <charconv>
#include <iostream>
#include <string>

#include "cuda/card.hpp"

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;

constexpr const char* kHolderRole = "the process that holds the card's memory for others";

}  // namespace

// In few large pieces, and where those no longer fit in smaller ones.
void CardBallast::hold(Bytes bytes) {
  const Bytes target = round_up(bytes, kPage);
  for (; held_ > target; pieces_.pop_back()) {
    segments_.release(pieces_.back().base);
    held_ -= pieces_.back().size;
  }
  for (Bytes piece = 1_GiB; held_ < target && piece >= kPage;) {
    piece = std::min(piece, target - held_);
    if (const auto base = segments_.reserve(piece)) {
      pieces_.push_back({*base, piece});
      held_ += piece;
    } else {
      piece = piece == kPage ? 0 : std::max(kPage, piece / 2 / kPage * kPage);
    }
  }
}

MemoryHolder::MemoryHolder(int device, const std::string& program)
    : process_(program, kHolderVerb, kHolderRole, device) {
  hold(0);  // its context is open when it answers
}

Bytes MemoryHolder::hold(Bytes bytes) { return ask("hold " + std::to_string(bytes) + "\n"); }

Bytes MemoryHolder::leave_free(Bytes bytes) { return ask("leave " + std::to_string(bytes) + "\n"); }

Bytes MemoryHolder::ask(const std::string& request) {
  const std::string answer = process_.ask(request);
  Bytes held = 0;
  const char* const end = answer.data() + answer.size();
  const auto parsed = std::from_chars(answer.data(), end, held);
  if (parsed.ec != std::errc{} || parsed.ptr != end) process_.fail("answered \"" + answer + "\".");
  return held;
}

// What the second process does.

int run_memory_holder(int device) {
  open_card(device);
  CardBallast memory;
  std::string request;
  Bytes bytes = 0;
  while (std::cin >> request >> bytes) {
    if (request == "leave") {
      const Bytes all = memory.held() + card_free();
      memory.hold(all - std::min(all, bytes));
    } else {
      memory.hold(bytes);
    }
    std::cout << memory.held() << std::endl;
  }
  return 0;
}

}  // namespace vramlab
