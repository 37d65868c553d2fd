// What was measured of one machine's card, as a file that scenarios can name.
#pragma once

#include <filesystem>
#include <string>

#include "core/units.hpp"
#include "lab/json.hpp"
#include "sim/memory/segments/driver.hpp"

namespace vramlab {

/// A card as `vramlab validate-device` found it.
struct DeviceProfile {
  std::string name;       ///< as the maker writes it
  std::string driver;     ///< its version
  Bytes total = 0;        ///< as cudaMemGetInfo reports it
  Bytes context = 0;      ///< that a process takes of it before its first allocation
  Bytes granularity = 0;  ///< smallest unit of physical memory
  DriverTimes times;

  friend bool operator==(const DeviceProfile&, const DeviceProfile&) = default;
};

/// The profile as a JSON document.
Json profile_json(const DeviceProfile& profile);

/// Reads a profile. Throws InputError with every problem of the file and its JSON pointer.
DeviceProfile read_device_profile(const std::filesystem::path& file);

/// The same from a document; `file` names it in messages.
DeviceProfile parse_device_profile(const Json& json, const std::string& file);

}  // namespace vramlab
