#include "sim/memory/driver_times.hpp"

#include <algorithm>
#include <iterator>

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

std::vector<MeasuredTime> table(std::initializer_list<std::pair<Bytes, std::int64_t>> rows) {
  std::vector<MeasuredTime> times;
  for (const auto& [size, nanoseconds] : rows) times.push_back({size, SimTime{nanoseconds}});
  return times;
}

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
  static const DriverTimes times{.mallocs = table({{512, 32'870},
                                                   {1_MiB, 32'780},
                                                   {2_MiB, 32'460},
                                                   {20_MiB, 33'070},
                                                   {64_MiB, 36'350},
                                                   {256_MiB, 60'160},
                                                   {1_GiB, 122'810},
                                                   {4_GiB, 212'370},
                                                   {16_GiB, 939'260}}),
                                 .frees = table({{512, 29'030},
                                                 {1_MiB, 28'860},
                                                 {2_MiB, 28'720},
                                                 {20_MiB, 38'060},
                                                 {64_MiB, 53'730},
                                                 {256_MiB, 106'420},
                                                 {1_GiB, 306'340},
                                                 {4_GiB, 1'293'840},
                                                 {16_GiB, 6'936'900}}),
                                 .creates = table({{2_MiB, 13'960}, {20_MiB, 14'090}, {200_MiB, 14'510}}),
                                 .maps = table({{2_MiB, 33'840}, {20_MiB, 34'270}, {200_MiB, 35'220}}),
                                 .unmaps = table({{2_MiB, 30'850}, {20_MiB, 36'520}, {200_MiB, 84'310}})};
  return times;
}

}  // namespace vramlab
