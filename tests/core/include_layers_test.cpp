// Each folder may include only what lies below it; `policies` sees neither engine, memory, lab nor JSON, so
// that the same policy code drives the simulator and a real card.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

// A room is a folder with all folders below it.
const std::map<std::string, std::set<std::string>> kMayInclude{
    {"core", {}},
    {"plan", {"core"}},
    {"sim/engine", {"core"}},
    {"sim/memory", {"core"}},
    {"models", {"core"}},
    {"policies", {"core", "models"}},
    {"plugins", {"core", "models", "policies"}},
    {"sim/runs", {"core", "sim/engine", "sim/memory", "models", "policies"}},
    {"recordings", {"core", "plan", "sim/memory", "sim/runs"}},
    {"fit", {"core", "sim/memory", "models", "recordings"}},
    {"cuda", {"core", "sim/memory", "models", "policies", "sim/runs", "recordings"}},
    {"capi", {"core", "policies", "plugins", "cli"}},
    {"report", {"core"}},
    {"lab",
     {"core", "plan", "sim/engine", "sim/memory", "models", "policies", "plugins", "sim/runs", "recordings",
      "report"}},
    {"cli",
     {"core", "plan", "sim/memory", "models", "policies", "plugins", "sim/runs", "recordings", "fit", "lab",
      "report", "cuda"}},
    {"web", {"cli", "lab", "report"}},
};

// Third-party headers that a folder may use; every other folder must do without them.
const std::map<std::string, std::set<std::string>> kMayUse{
    {"nlohmann", {"lab", "recordings", "cli", "capi"}},
    {"yaml-cpp", {"policies"}},
    {"boost", {"models", "recordings", "cli", "plugins"}},
    {"spdlog", {"cli"}},
    {"Eigen", {"fit", "policies"}},
    {"fmt", {"fit", "lab", "cli", "report"}},
    {"cuda.h", {"cuda"}},
    {"cuda_runtime_api.h", {"cuda"}},
};

// The room a header lies in: "sim/memory" for sim/memory/caching/blocks.hpp; empty for none.
std::string room_of(const std::string& path) {
  for (const auto& [room, allowed] : kMayInclude) {
    if (path.starts_with(room + "/")) return room;
  }
  return "";
}
std::string first_part(const std::string& path) { return path.substr(0, path.find('/')); }

TEST(IncludeLayers, EveryFolderSeesOnlyWhatLiesBelowIt) {
  const fs::path root = VRAMLAB_SOURCE_DIR;
  const std::regex include{R"re(^\s*#include\s*(<|")([^>"]+)[>"])re"};
  int checked = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const auto& file : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = file.path().extension().string();
      if (extension != ".hpp" && extension != ".cpp") continue;
      std::ifstream source{file.path()};
      for (std::string line; std::getline(source, line);) {
        std::smatch found;
        if (!std::regex_search(line, found, include)) continue;
        ++checked;
        const std::string target = found[2];
        if (found[1] == "\"") {
          const std::string to = room_of(target);
          EXPECT_TRUE(to == folder || allowed.contains(to)) << file.path() << " includes " << target;
        } else if (const auto library = kMayUse.find(first_part(target)); library != kMayUse.end()) {
          EXPECT_TRUE(library->second.contains(folder)) << file.path() << " includes " << target;
        }
      }
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
