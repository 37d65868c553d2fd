#include "sim/memory/segments/driver.hpp"

#include <algorithm>
#include <iterator>

#include "core/error.hpp"

namespace vramlab {
namespace {

SimTime interpolate(const std::vector<MeasuredTime>& table, Bytes size) {
  constexpr Bytes kLargest = 1024_GiB;  // keeps the product below within 64 bits
  size = std::clamp(size, table.front().size, kLargest);
  auto high =
      std::find_if(table.begin(), table.end(), [size](const MeasuredTime& m) { return m.size >= size; });
  if (high == table.begin()) return high->time;
  if (high == table.end()) --high;
  const MeasuredTime& low = *std::prev(high);
  const auto span = static_cast<std::int64_t>(high->size - low.size);
  const auto part = static_cast<std::int64_t>(size - low.size);
  return low.time + SimTime{(high->time - low.time).count() * part / span};
}

constexpr Bytes kChunkUnit = 32_MiB;
constexpr Address kLowestTop = Address{1} << 44;  // leaves room for chunks below and reserved ranges
constexpr Address kAddresses = Address{1} << 48;
constexpr Address kFirstRange = 0x3'0200'0000;  // R10.9

}  // namespace

SimTime DriverTimes::malloc_time(Bytes size) const { return interpolate(mallocs, size); }
SimTime DriverTimes::free_time(Bytes size) const { return interpolate(frees, size); }
SimTime DriverTimes::unmap_time(Bytes size) const { return interpolate(unmaps, size); }

SimTime DriverTimes::map_time(Bytes size, Bytes pages) const {
  const SimTime page = interpolate(creates, pages == 0 ? 0 : size / pages);
  return page * static_cast<std::int64_t>(pages) + interpolate(maps, size);
}

// Recording h100-driver.json.
const DriverTimes& DriverTimes::of_h100() {
  using namespace std::chrono_literals;
  static const DriverTimes times{.mallocs = {{512, 32'870ns},
                                             {1_MiB, 32'780ns},
                                             {2_MiB, 32'460ns},
                                             {20_MiB, 33'070ns},
                                             {64_MiB, 36'350ns},
                                             {256_MiB, 60'160ns},
                                             {1_GiB, 122'810ns},
                                             {4_GiB, 212'370ns},
                                             {16_GiB, 939'260ns}},
                                 .frees = {{512, 29'030ns},
                                           {1_MiB, 28'860ns},
                                           {2_MiB, 28'720ns},
                                           {20_MiB, 38'060ns},
                                           {64_MiB, 53'730ns},
                                           {256_MiB, 106'420ns},
                                           {1_GiB, 306'340ns},
                                           {4_GiB, 1'293'840ns},
                                           {16_GiB, 6'936'900ns}},
                                 .creates = {{2_MiB, 13'960ns}, {20_MiB, 14'090ns}, {200_MiB, 14'510ns}},
                                 .maps = {{2_MiB, 33'840ns}, {20_MiB, 34'270ns}, {200_MiB, 35'220ns}},
                                 .unmaps = {{2_MiB, 30'850ns}, {20_MiB, 36'520ns}, {200_MiB, 84'310ns}}};
  return times;
}

DriverAddresses DriverAddresses::of_training_process() {
  DriverAddresses addresses;
  addresses.add_start_chunk(8_MiB);
  addresses.add_start_chunk(30_MiB);
  return addresses;
}

DriverAddresses DriverAddresses::of_bare_process() {
  DriverAddresses addresses;
  addresses.add_start_chunk(6_MiB);
  return addresses;
}

// Only which of two addresses is lower counts, so places that leave no room below them are moved up.
DriverAddresses DriverAddresses::of_recording(std::span<const SegmentPlace> places) {
  const auto by_address = [](const SegmentPlace& a, const SegmentPlace& b) { return a.address < b.address; };
  const auto [lowest, highest] = std::minmax_element(places.begin(), places.end(), by_address);
  DriverAddresses addresses;
  if (lowest != places.end() && highest->address < kAddresses) {
    addresses.recorded_ = places;
    addresses.shift_ = lowest->address < kLowestTop ? kTop : 0;
    addresses.top_ = (lowest->address + addresses.shift_) / kChunkUnit * kChunkUnit;
  }
  addresses.add_start_chunk(8_MiB);
  addresses.add_start_chunk(30_MiB);
  return addresses;
}

void DriverAddresses::add_start_chunk(Bytes in_use) {
  Span& hole = open_chunk(kChunkUnit).holes.front();
  hole = {hole.address + in_use, hole.size - in_use};
}

// R10.7.1: a new chunk, all of it one hole.
DriverAddresses::Chunk& DriverAddresses::open_chunk(Bytes size) {
  const Bytes rounded = round_up(size, kChunkUnit);
  const Span span{place_chunk(rounded), rounded};
  chunks_.push_back({span, {span}});
  return chunks_.back();
}

// R10.7.2: at the upper end of the highest gap that is strictly larger, else below all others.
Address DriverAddresses::place_chunk(Bytes size) const {
  std::vector<Span> spans;
  for (const Chunk& chunk : chunks_) spans.push_back(chunk.span);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.address > b.address; });
  Address ceiling = top_;
  for (const Span& span : spans) {
    if (ceiling - span.end() > size) return ceiling - size;
    ceiling = span.address;
  }
  return ceiling - size;
}

// 0 = that is not what the recorded process asked for next, or it still holds what lies there.
Address DriverAddresses::take_recorded(Bytes size) {
  if (recorded_.empty()) return 0;
  const Span span{recorded_.front().address + shift_, size};
  const bool held = std::any_of(followed_.begin(), followed_.end(), [&](const Span& other) {
    return span.address < other.end() && other.address < span.end();
  });
  if (recorded_.front().size != size || held) {
    recorded_ = {};
    return 0;
  }
  recorded_ = recorded_.subspan(1);
  followed_.push_back(span);
  return span.address;
}

// R10.7.3: the newest chunk with a hole that fits; in it the smallest such hole, the lowest among equals.
Address DriverAddresses::take(Bytes size) {
  if (const Address address = take_recorded(size)) return address;
  const auto take_from = [size](Chunk& chunk) -> Address {
    auto best = chunk.holes.end();
    for (auto hole = chunk.holes.begin(); hole != chunk.holes.end(); ++hole) {
      if (hole->size >= size && (best == chunk.holes.end() || hole->size < best->size)) best = hole;
    }
    if (best == chunk.holes.end()) return 0;
    const Address address = best->address;
    best->address += size;
    best->size -= size;
    if (best->size == 0) chunk.holes.erase(best);
    return address;
  };
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    if (const Address address = take_from(*chunk)) return address;
  }
  return take_from(open_chunk(size));
}

// R10.7.4: holes merge, and an empty chunk goes.
void DriverAddresses::give(Address address, Bytes size) {
  if (std::erase_if(followed_, [&](const Span& span) { return span.address == address; }) > 0) return;
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [address](const Chunk& c) {
    return address >= c.span.address && address < c.span.end();
  });
  if (chunk == chunks_.end()) throw InternalError("an address is given back that was not handed out");
  auto hole = std::find_if(chunk->holes.begin(), chunk->holes.end(),
                           [address](const Span& h) { return h.address > address; });
  hole = chunk->holes.insert(hole, {address, size});
  if (const auto next = std::next(hole); next != chunk->holes.end() && hole->end() == next->address) {
    hole->size += next->size;
    chunk->holes.erase(next);
  }
  if (hole != chunk->holes.begin()) {
    const auto previous = std::prev(hole);
    if (previous->end() == hole->address) {
      previous->size += hole->size;
      hole = std::prev(chunk->holes.erase(hole));
    }
  }
  if (hole->size == chunk->span.size) chunks_.erase(chunk);
}

// R10.9: the lowest gap.
Address DriverAddresses::take_range(Bytes size) {
  const Bytes rounded = round_up(size, kChunkUnit);
  Address base = kFirstRange;
  auto position = ranges_.begin();
  while (position != ranges_.end() && position->address - base < rounded) {
    base = position->end();
    ++position;
  }
  ranges_.insert(position, {base, rounded});
  return base;
}

void DriverAddresses::give_range(Address base) {
  if (std::erase_if(ranges_, [base](const Span& range) { return range.address == base; }) != 1) {
    throw InternalError("an address range is given back that was not reserved");
  }
}

void DriverAddresses::append_canonical_state(std::vector<std::uint64_t>& out) const {
  const auto append = [&out](const Span& span) { out.insert(out.end(), {span.address, span.size}); };
  out.push_back(chunks_.size());
  for (const Chunk& chunk : chunks_) {
    append(chunk.span);
    out.push_back(chunk.holes.size());
    for (const Span& hole : chunk.holes) append(hole);
  }
  out.insert(out.end(), {recorded_.size(), followed_.size()});
  for (const Span& span : followed_) append(span);
  out.push_back(ranges_.size());
  for (const Span& range : ranges_) append(range);
}

}  // namespace vramlab
