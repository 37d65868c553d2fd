#include "cli/scenario_files.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/core/error.hpp"

namespace vramlab {

namespace fs = std::filesystem;

std::vector<std::string> scenario_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      const bool is_named_so =
          entry.path().extension() == ".json" && entry.path().filename() != "schema.json";
      if (is_named_so && !entry.is_directory(ignored)) inside.push_back(entry.path().string());
    }
    if (inside.empty()) throw InputError(path, "holds no scenario files (*.json).");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

}  // namespace vramlab
