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

const std::map<std::string, std::set<std::string>> kMayInclude{
    {"sim/core", {}},
    {"sim/engine", {"sim/core"}},
    {"sim/memory", {"sim/core"}},
    {"models", {"sim/core"}},
    {"policies", {"sim/core", "models"}},
    {"plugins", {"sim/core", "models", "policies"}},
    {"sim/workload", {"sim/core", "sim/engine", "sim/memory", "models", "policies"}},
    {"trace", {"sim/core", "sim/memory", "sim/workload"}},
    {"fit", {"sim/core", "sim/memory", "models", "trace"}},
    {"cuda", {"sim/core", "sim/memory", "models", "policies", "sim/workload", "trace"}},
    {"capi", {"sim/core", "policies"}},
    {"report", {"sim/core"}},
    {"lab",
     {"sim/core", "sim/engine", "sim/memory", "models", "policies", "plugins", "sim/workload", "trace",
      "report"}},
    {"cli",
     {"sim/core", "sim/memory", "models", "policies", "plugins", "sim/workload", "trace", "fit", "lab",
      "report", "cuda"}},
};

// Third-party headers that a folder may use; every other folder must do without them.
const std::map<std::string, std::set<std::string>> kMayUse{
    {"nlohmann", {"lab", "trace", "cli", "capi"}},
    {"yaml-cpp", {"policies"}},
    {"boost", {"trace", "cli", "plugins"}},
    {"spdlog", {"cli"}},
    {"Eigen", {"fit", "policies"}},
    {"fmt", {"lab", "cli", "report"}},
    {"cuda.h", {"cuda"}},
    {"cuda_runtime_api.h", {"cuda"}},
};

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string first_part(const std::string& path) { return path.substr(0, path.find('/')); }

TEST(IncludeLayers, EveryFolderSeesOnlyWhatLiesBelowIt) {
  const fs::path root = VRAMLAB_SOURCE_DIR;
  const std::regex include{R"re(^\s*#include\s*(<|")([^>"]+)[>"])re"};
  int checked = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const auto& file : fs::directory_iterator(root / folder)) {
      const std::string extension = file.path().extension().string();
      if (extension != ".hpp" && extension != ".cpp") continue;
      std::ifstream source{file.path()};
      for (std::string line; std::getline(source, line);) {
        std::smatch found;
        if (!std::regex_search(line, found, include)) continue;
        ++checked;
        const std::string target = found[2];
        if (found[1] == "\"") {
          const std::string to = folder_of(target);
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
