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
    const Address top = (lowest->address + addresses.shift_) / kChunkUnit * kChunkUnit;
    addresses.chunk_space_ = AddressHeap(0, top);
  }
  addresses.add_start_chunk(8_MiB);
  addresses.add_start_chunk(30_MiB);
  return addresses;
}

void DriverAddresses::Chunk::add(Address hole, Bytes bytes) {
  holes.emplace(hole, bytes);
  holes_by_size.emplace(bytes, hole);
}

void DriverAddresses::Chunk::remove(std::map<Address, Bytes>::const_iterator hole) {
  holes_by_size.erase({hole->second, hole->first});
  holes.erase(hole);
}

void DriverAddresses::note_largest(Chunks::const_iterator chunk) {
  const auto& sizes = chunk->second.holes_by_size;
  largest_holes_.set(chunk->first, sizes.empty() ? 0 : sizes.rbegin()->first);
}

void DriverAddresses::add_start_chunk(Bytes in_use) { take_from(open_chunk(kChunkUnit), in_use); }

// R10.7.1: a new chunk, all of it one hole. R10.7.2: at the upper end of the highest gap that is strictly
// larger; the one below all other chunks always is.
DriverAddresses::Chunks::iterator DriverAddresses::open_chunk(Bytes size) {
  const Bytes rounded = round_up(size, kChunkUnit);
  const auto address = chunk_space_.take_highest(rounded);
  if (!address) throw InternalError("the driver's addresses are used up");
  chunk_at_.emplace(*address, next_number_);
  const auto chunk = chunks_.emplace_hint(chunks_.end(), next_number_++, Chunk{*address, rounded, {}, {}});
  chunk->second.add(*address, rounded);
  note_largest(chunk);
  return chunk;
}

// 0 = that is not what the recorded process asked for next, or it still holds what lies there.
Address DriverAddresses::take_recorded(Bytes size) {
  if (recorded_.empty()) return 0;
  const Address address = recorded_.front().address + shift_;
  const auto above = followed_.lower_bound(address);
  const bool held =
      (above != followed_.end() && above->first < address + size) ||
      (above != followed_.begin() && std::prev(above)->first + std::prev(above)->second > address);
  if (recorded_.front().size != size || held) {
    recorded_ = {};
    return 0;
  }
  recorded_ = recorded_.subspan(1);
  followed_.emplace(address, size);
  return address;
}

// R10.7.3: the newest chunk with a hole that fits; in it the smallest such hole, the lowest among equals.
Address DriverAddresses::take(Bytes size) {
  if (const Address address = take_recorded(size)) return address;
  const auto* newest = largest_holes_.last_fitting(size);
  return take_from(newest != nullptr ? chunks_.find(newest->first) : open_chunk(size), size);
}

Address DriverAddresses::take_from(Chunks::iterator at, Bytes size) {
  Chunk& chunk = at->second;
  const auto [bytes, address] = *chunk.holes_by_size.lower_bound({size, 0});
  chunk.remove(chunk.holes.find(address));
  if (bytes > size) chunk.add(address + size, bytes - size);
  note_largest(at);
  return address;
}

// R10.7.4: holes merge, and an empty chunk goes.
void DriverAddresses::give(Address address, Bytes size) {
  if (followed_.erase(address) > 0) return;
  const auto place = chunk_at_.upper_bound(address);
  const auto at = place == chunk_at_.begin() ? chunks_.end() : chunks_.find(std::prev(place)->second);
  if (at == chunks_.end() || address >= at->second.address + at->second.size)
    throw InternalError("an address is given back that was not handed out");
  Chunk& chunk = at->second;
  Address start = address;
  Address end = address + size;
  if (const auto next = chunk.holes.find(end); next != chunk.holes.end()) {
    end += next->second;
    chunk.remove(next);
  }
  const auto above = chunk.holes.lower_bound(start);
  if (above != chunk.holes.begin()) {
    const auto previous = std::prev(above);
    if (previous->first + previous->second == start) {
      start = previous->first;
      chunk.remove(previous);
    }
  }
  if (end - start < chunk.size) {
    chunk.add(start, end - start);
    return note_largest(at);
  }
  chunk_space_.give(chunk.address, chunk.size);
  chunk_at_.erase(chunk.address);
  largest_holes_.erase(at->first);
  chunks_.erase(at);
}

// R10.9: the lowest gap.
Address DriverAddresses::take_range(Bytes size) {
  const Bytes rounded = round_up(size, kChunkUnit);
  const auto base = range_space_.take(rounded);
  if (!base) throw InternalError("the driver's address ranges are used up");
  ranges_.emplace(*base, rounded);
  return *base;
}

void DriverAddresses::give_range(Address base) {
  const auto range = ranges_.find(base);
  if (range == ranges_.end()) throw InternalError("an address range is given back that was not reserved");
  range_space_.give(base, range->second);
  ranges_.erase(range);
}

void DriverAddresses::append_canonical_state(std::vector<std::uint64_t>& out) const {
  const auto append = [&out](const std::map<Address, Bytes>& spans) {
    out.push_back(spans.size());
    for (const auto& [address, size] : spans) out.insert(out.end(), {address, size});
  };
  out.push_back(chunks_.size());
  for (const auto& [number, chunk] : chunks_) {
    out.insert(out.end(), {chunk.address, chunk.size});
    append(chunk.holes);
  }
  out.push_back(recorded_.size());
  append(followed_);
  append(ranges_);
}

}  // namespace vramlab
