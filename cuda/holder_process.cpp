// What the second process does.
#include <algorithm>
#include <iostream>
#include <string>

#include "cuda/card.hpp"
#include "cuda/held_memory.hpp"
#include "cuda/memory_holder.hpp"

namespace vramlab {

int run_memory_holder() {
  open_card();
  HeldMemory memory;
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
