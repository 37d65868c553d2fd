// The size of files and folders: sources are read whole, and a folder is taken in at a glance.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLines = 600;      // of a file
constexpr std::size_t kFewLines = 30;        // at most …
constexpr std::size_t kFewLinesPercent = 6;  // … in this share of the files
constexpr std::size_t kMostFiles = 35;       // of a folder; tests apart

struct Source {
  fs::path path;  ///< from the root of the project
  std::size_t lines = 0;
};

bool is_source(const fs::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".cpp" || extension == ".hpp" || extension == ".h" || extension == ".cu";
}

std::size_t lines_of(const fs::path& file) {
  std::ifstream text{file};
  std::size_t lines = 0;
  for (std::string line; std::getline(text, line);) ++lines;
  return lines;
}

// Below every folder of the project but what is built or kept by others.
const std::vector<Source>& sources() {
  static const std::vector<Source> all = [] {
    const fs::path root = VRAMLAB_SOURCE_DIR;
    const std::set<std::string> left_out{"build", "results", "node_modules", ".git"};
    std::vector<Source> found;
    for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
      if (at->is_directory() && left_out.contains(at->path().filename().string()))
        at.disable_recursion_pending();
      if (!at->is_regular_file() || !is_source(at->path())) continue;
      found.push_back({fs::relative(at->path(), root), lines_of(at->path())});
    }
    return found;
  }();
  return all;
}

bool is_test(const Source& source) { return *source.path.begin() == "tests"; }

TEST(Structure, NoFileIsLongerThan600Lines) {
  for (const Source& source : sources()) EXPECT_LE(source.lines, kMostLines) << source.path;
}

TEST(Structure, FilesOfThirtyLinesAreRare) {
  std::size_t files = 0;
  std::string small;
  std::size_t small_files = 0;
  for (const Source& source : sources()) {
    if (is_test(source)) continue;
    ++files;
    if (source.lines > kFewLines) continue;
    ++small_files;
    small += "\n  " + source.path.string() + ' ' + std::to_string(source.lines);
  }
  EXPECT_GT(files, 100U);
  EXPECT_LE(100 * small_files, kFewLinesPercent * files) << small_files << " of " << files << ':' << small;
}

TEST(Structure, NoFolderIsWiderThan35Files) {
  std::map<fs::path, std::size_t> folders;
  for (const Source& source : sources()) {
    if (!is_test(source)) ++folders[source.path.parent_path()];
  }
  for (const auto& [folder, files] : folders) EXPECT_LE(files, kMostFiles) << folder;
}

}  // namespace
