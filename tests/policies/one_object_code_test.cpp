// The policies that drive the simulator, a real card and users' programs are one object code: each source is
// compiled once, without a switch that could make a second kind of it.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

namespace fs = std::filesystem;

/// The sources of one compilation: `file` itself, or those that a source made for a unity build includes.
std::vector<std::string> sources_of(const fs::path& file) {
  if (!file.filename().string().starts_with("unity_")) return {file.string()};
  std::vector<std::string> sources;
  std::ifstream text{file};
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("#include \"")) continue;
    sources.push_back(line.substr(10, line.rfind('"') - 10));
  }
  return sources;
}

TEST(Policies, HaveOneObjectCode) {
  const fs::path folder = fs::path{VRAMLAB_SOURCE_DIR} / "policies";
  std::ifstream file{VRAMLAB_COMPILE_COMMANDS};
  ASSERT_TRUE(file) << VRAMLAB_COMPILE_COMMANDS;
  std::map<std::string, int> compiled;
  for (const auto& entry : nlohmann::json::parse(file)) {
    bool ours = false;
    for (const std::string& source : sources_of(entry["file"].get<std::string>())) {
      if (!source.starts_with(folder.string() + "/")) continue;
      ++compiled[source];
      ours = true;
    }
    if (!ours) continue;
    const auto command = entry["command"].get<std::string>();
    EXPECT_EQ(command.find("VRAMLAB_HAS_CUDA"), std::string::npos) << command;
    EXPECT_EQ(command.find("-DVRAMLAB_CUDA"), std::string::npos) << command;
  }
  std::size_t sources = 0;
  for (const auto& source : fs::recursive_directory_iterator(folder)) {
    if (source.path().extension() != ".cpp") continue;
    ++sources;
    EXPECT_EQ(compiled[source.path().string()], 1) << source.path();
  }
  EXPECT_GT(sources, 20u);
}

// Nor may a source ask what it is compiled for.
TEST(Policies, DoNotAskForWhatTheyAreCompiled) {
  for (const auto& source : fs::recursive_directory_iterator(fs::path{VRAMLAB_SOURCE_DIR} / "policies")) {
    std::ifstream text{source.path()};
    for (std::string line; std::getline(text, line);) {
      const bool conditional = line.starts_with("#if") || line.starts_with("#el");
      EXPECT_FALSE(conditional) << source.path() << ": " << line;
    }
  }
}

}  // namespace
