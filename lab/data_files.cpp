#include "lab/data_files.hpp"

#include <array>
#include <system_error>

namespace vramlab {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "models", ignored) && fs::is_directory(folder / "scenarios", ignored);
}

}  // namespace

fs::path data_folder() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path().parent_path() / "share" / "vramlab";
  if (holds_data(installed)) return installed;
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    if (holds_data(folder)) return folder;
  }
  return {};
}

std::optional<fs::path> find_data_file(const std::string& name, const fs::path& scenario) {
  const std::array<fs::path, 3> places{scenario.parent_path() / name, fs::path{name}, data_folder() / name};
  for (const fs::path& place : places) {
    std::error_code ignored;
    if (fs::is_regular_file(place, ignored)) return place;
  }
  return std::nullopt;
}

}  // namespace vramlab
