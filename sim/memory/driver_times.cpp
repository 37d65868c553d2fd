#include "sim/memory/driver_times.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace vramlab {
namespace {

struct Measured {
  Bytes size;
  std::int64_t nanoseconds;
};

// Medians of 15 calls each on an H100 80GB HBM3, CUDA 13.0 (recording h100-driver.json).
constexpr Measured kMalloc[] = {{512, 32'870},    {1_MiB, 32'780},  {2_MiB, 32'460},
                                {20_MiB, 33'070}, {64_MiB, 36'350}, {256_MiB, 60'160},
                                {1_GiB, 122'810}, {4_GiB, 212'370}, {16_GiB, 939'260}};
constexpr Measured kFree[] = {{512, 29'030},    {1_MiB, 28'860},    {2_MiB, 28'720},
                              {20_MiB, 38'060}, {64_MiB, 53'730},   {256_MiB, 106'420},
                              {1_GiB, 306'340}, {4_GiB, 1'293'840}, {16_GiB, 6'936'900}};
constexpr Measured kCreatePage[] = {{2_MiB, 13'960}, {20_MiB, 14'090}, {200_MiB, 14'510}};
constexpr Measured kMap[] = {{2_MiB, 33'840}, {20_MiB, 34'270}, {200_MiB, 35'220}};
constexpr Measured kUnmap[] = {{2_MiB, 30'850}, {20_MiB, 36'520}, {200_MiB, 84'310}};

// Linear between two measurements, constant below the first, along the last line above the last one.
SimTime interpolate(std::span<const Measured> table, Bytes size) {
  constexpr Bytes kLargest = 1024_GiB;  // keeps the product below within 64 bits
  size = std::clamp(size, table.front().size, kLargest);
  auto high = std::find_if(table.begin(), table.end(), [size](const Measured& m) { return m.size >= size; });
  if (high == table.begin()) return SimTime{high->nanoseconds};
  if (high == table.end()) --high;
  const Measured& low = *std::prev(high);
  const auto span = static_cast<std::int64_t>(high->size - low.size);
  const auto part = static_cast<std::int64_t>(size - low.size);
  return SimTime{low.nanoseconds + (high->nanoseconds - low.nanoseconds) * part / span};
}

}  // namespace

SimTime malloc_time(Bytes size) { return interpolate(kMalloc, size); }
SimTime free_time(Bytes size) { return interpolate(kFree, size); }
SimTime unmap_time(Bytes size) { return interpolate(kUnmap, size); }

SimTime map_time(Bytes size, Bytes pages) {
  const SimTime page = interpolate(kCreatePage, pages == 0 ? 0 : size / pages);
  return page * static_cast<std::int64_t>(pages) + interpolate(kMap, size);
}

}  // namespace vramlab
