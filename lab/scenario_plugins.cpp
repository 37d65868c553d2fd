#include "lab/scenario_plugins.hpp"

#include <string>
#include <utility>

#include "plugins/plugin_loader.hpp"

namespace vramlab {

std::shared_ptr<const PolicySet> with_scenario_plugins(const Json& scenario,
                                                       const std::filesystem::path& file,
                                                       std::shared_ptr<const PolicySet> known,
                                                       FileProblems& problems) {
  const Json names = scenario.value("plugins", Json::array());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = names[i].get<std::string>();
    try {
      known = with_plugin(known, file.parent_path() / name);
    } catch (const InputError& error) {
      problems.add("/plugins/" + std::to_string(i),
                   "the plugin " + name + ": " + error.problems().front().what);
    }
  }
  return known;
}

}  // namespace vramlab
