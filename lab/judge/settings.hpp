// Settings of the allocator that two recordings do not share, one by one.
#pragma once

#include <string>
#include <vector>

#include "recordings/scripts/client_program.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {

/// One key whose value differs.
struct SettingChange {
  std::string where;           ///< the key, as PYTORCH_CUDA_ALLOC_CONF names it
  std::string what;            ///< "off -> 4"
  AllocatorSettings reverted;  ///< the new settings with the golden value of this key
  AllocatorSettings applied;   ///< the golden settings with the new value
};

/// Those that the allocator acts on, without the version.
std::vector<SettingChange> setting_changes(const AllocatorSettings& golden, const AllocatorSettings& now);

}  // namespace vramlab
