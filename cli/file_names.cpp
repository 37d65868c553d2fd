#include "cli/file_names.hpp"

#include <filesystem>
#include <set>

#include "sim/core/error.hpp"
#include "trace/truth_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

fs::path canonical(const std::string& name) {
  std::error_code ignored;
  return fs::weakly_canonical(name, ignored);
}

}  // namespace

std::vector<std::string> with_siblings(const std::vector<std::string>& snapshots) {
  std::vector<std::string> files = snapshots;
  for (const std::string& snapshot : snapshots) {
    for (const auto& sibling : {find_truth_file(snapshot), find_beside(snapshot, ".marks.json")}) {
      if (sibling) files.push_back(sibling->string());
    }
  }
  return files;
}

void require_output_names(const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  std::set<fs::path> read;
  for (const std::string& input : inputs) read.insert(canonical(input));
  std::set<fs::path> written;
  for (const std::string& output : outputs) {
    if (output.empty() || output == "-") continue;
    const fs::path folder = fs::path{output}.parent_path();
    std::error_code ignored;
    if (!folder.empty() && !fs::is_directory(folder, ignored)) {
      throw InputError(output, "cannot be written: there is no folder " + folder.string() + ".");
    }
    if (read.contains(canonical(output)))
      throw InputError(output, "is read and would be overwritten; name another file.");
    if (!written.insert(canonical(output)).second)
      throw InputError(output, "is named twice for different outputs.");
  }
}

}  // namespace vramlab
