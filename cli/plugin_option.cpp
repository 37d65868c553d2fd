#include "cli/plugin_option.hpp"

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "plugins/plugin_loader.hpp"

namespace vramlab {

namespace po = boost::program_options;

void add_plugin_option(Options& options) {
  options.add_options()(
      "plugin", po::value<std::vector<std::string>>()->composing()->default_value({}, "")->value_name("FILE"),
      "a shared library with further policies; may be given several times (docs/plugins.md)");
}

std::shared_ptr<const PolicySet> chosen_policies(const Arguments& arguments) {
  auto policies = builtin_policies();
  const char* path = std::getenv("VRAMLAB_PLUGIN_PATH");
  std::istringstream folders{path == nullptr ? "" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;
    for (const auto& file : plugins_in(folder)) policies = with_plugin(policies, file);
  }
  for (const auto& file : arguments["plugin"].as<std::vector<std::string>>()) {
    policies = with_plugin(policies, file);
  }
  return policies;
}

}  // namespace vramlab
