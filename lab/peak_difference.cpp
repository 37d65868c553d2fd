#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "lab/difference.hpp"

namespace vramlab {
namespace {

using Shares = std::vector<PeakShare>;

std::vector<ShareDifference> pair_up(const Shares& a, const Shares& b) {
  std::vector<ShareDifference> pairs;
  std::map<std::string, std::size_t> places;
  const auto pair_of = [&](const PeakShare& share) -> ShareDifference& {
    const auto [place, is_new] = places.try_emplace(share.name, pairs.size());
    if (is_new) pairs.emplace_back().name = share.name;
    return pairs[place->second];
  };
  for (const PeakShare& share : a) pair_of(share).a = share;
  for (const PeakShare& share : b) pair_of(share).b = share;
  return pairs;
}

}  // namespace

std::vector<PeakDifference> compare_peaks(const TorchSnapshot& a, const TorchSnapshot& b) {
  std::set<int> devices;
  for (const TorchSnapshot* snapshot : {&a, &b}) {
    for (const int device : devices_of(*snapshot)) devices.insert(device);
  }
  std::vector<PeakDifference> differences;
  for (const int device : devices) {
    PeakDifference difference;
    difference.device = device;
    difference.a = attribute_peak(a, device);
    difference.b = attribute_peak(b, device);
    difference.by_frame = pair_up(difference.a.by_frame, difference.b.by_frame);
    std::stable_sort(difference.by_frame.begin(), difference.by_frame.end(),
                     [](const ShareDifference& x, const ShareDifference& y) {
                       return std::abs(x.growth()) > std::abs(y.growth());
                     });
    difference.by_size_class = pair_up(difference.a.by_size_class, difference.b.by_size_class);
    differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace vramlab
