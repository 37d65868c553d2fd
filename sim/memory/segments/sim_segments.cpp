#include "sim/memory/segments/sim_segments.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;  // R10.1

}  // namespace

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

SimSegments::SimSegments(SimulatedCard& card, DriverAddresses addresses) : card_(card) {
  state_.addresses = std::move(addresses);
}

SimSegments::~SimSegments() { card_.give(state_.taken); }

// R10.2. A failing call is quick compared with the releases it leads to, and was not measured: no time.
std::optional<Address> SimSegments::reserve(Bytes size) {
  const Bytes pages = round_up(size, kPage);
  if (!card_.take(pages)) return std::nullopt;
  state_.taken += pages;
  driver_time_ += card_.times().malloc_time(size);
  const Address base = state_.addresses.take(pages);
  state_.segments.emplace(base, pages);
  return base;
}

void SimSegments::release(Address base) {
  const auto segment = state_.segments.find(base);
  if (segment == state_.segments.end()) throw InternalError("a segment is released that was not reserved");
  const Bytes size = segment->second;
  state_.segments.erase(segment);
  state_.addresses.give(base, size);
  card_.give(size);
  state_.taken -= size;
  driver_time_ += card_.times().free_time(size);
}

Address SimSegments::reserve_range(Bytes size, Bytes page) {
  const Address base = state_.addresses.take_range(size);
  state_.ranges.emplace(base, State::Range{page, 0});
  return base;
}

void SimSegments::release_range(Address base) {
  const auto range = state_.ranges.find(base);
  if (range == state_.ranges.end() || range->second.mapped != 0) {
    throw InternalError("an address range is released that is unknown or still mapped");
  }
  state_.ranges.erase(range);
  state_.addresses.give_range(base);
}

bool SimSegments::map(Address address, Bytes size) {
  State::Range& range = range_of(address);
  const Bytes pages = round_up(size, kPage);
  if (!card_.take(pages)) return false;
  state_.taken += pages;
  range.mapped += size;
  driver_time_ += card_.times().map_time(size, size / range.page);
  return true;
}

void SimSegments::unmap(Address address, Bytes size) {
  State::Range& range = range_of(address);
  if (size > range.mapped) throw InternalError("more of a range is unmapped than was mapped");
  const Bytes pages = round_up(size, kPage);
  range.mapped -= size;
  card_.give(pages);
  state_.taken -= pages;
  driver_time_ += card_.times().unmap_time(size);
}

SimSegments::State::Range& SimSegments::range_of(Address address) {
  const auto after = state_.ranges.upper_bound(address);
  if (after == state_.ranges.begin()) throw InternalError("an address lies in no reserved range");
  return std::prev(after)->second;
}

void SimSegments::restore(const State& state) {
  card_.give(state_.taken);
  state_ = state;
  if (!card_.take(state_.taken)) throw InternalError("the card has too little memory for the restored state");
}

void SimSegments::append_canonical_state(std::vector<std::uint64_t>& out) const {
  state_.addresses.append_canonical_state(out);
  out.push_back(state_.taken);
  for (const auto& [base, size] : state_.segments) out.insert(out.end(), {base, size});
  for (const auto& [base, range] : state_.ranges) out.insert(out.end(), {base, range.mapped});
}

}  // namespace vramlab
