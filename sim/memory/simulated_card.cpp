#include "sim/memory/simulated_card.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/error.hpp"

namespace vramlab {

SimulatedCard::SimulatedCard(Bytes total, Bytes context_bytes, DriverTimes times)
    : total_(total), context_(context_bytes), times_(std::move(times)) {
  if (context_bytes > total) {
    throw InputError("", "a card of " + format_bytes(total) + " cannot hold a CUDA context of " +
                             format_bytes(context_bytes) +
                             ". Take a larger card or give the context's size.");
  }
}

bool SimulatedCard::take(Bytes size) {
  if (size > free()) return false;
  taken_ += size;
  return true;
}

void SimulatedCard::give(Bytes size) {
  if (size > taken_) throw InternalError("more memory is given back to the card than was taken");
  taken_ -= size;
}

Bytes SimulatedCard::set_others(Bytes bytes) {
  others_ = std::min(bytes, total_ - context_ - taken_);
  return others_;
}

bool SimulatedCard::open_context(Bytes bytes) {
  if (bytes > free()) return false;
  context_ += bytes;
  return true;
}

void SimulatedCard::close_context(Bytes bytes) {
  if (bytes > context_) throw InternalError("a context is closed that was not opened");
  context_ -= bytes;
}

}  // namespace vramlab
