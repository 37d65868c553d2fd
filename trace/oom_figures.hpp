// The figures of an OOM message that the allocator alone determines (R4.12), for comparing two messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// One figure that differs between two messages; a figure that a message lacks is empty.
struct OomFigureDifference {
  std::string figure;
  std::string recorded;
  std::string simulated;
};

/// What differs in what was tried to be allocated, total capacity, limit, allocated bytes, idle bytes of
/// private pools and other idle bytes. Free memory of the device and the list of processes are left out.
/// `recorded` may be cut off at its end: figures beyond the cut are not compared.
std::vector<OomFigureDifference> compare_oom_figures(std::string_view recorded, std::string_view simulated);

}  // namespace vramlab
