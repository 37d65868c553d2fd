// Loads the plugins that were built for the tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "plugins/isolated_policies.hpp"
#include "plugins/plugin_loader.hpp"

namespace vramlab {

inline std::string test_plugin(const std::string& name) {
  return std::string(VRAMLAB_TEST_PLUGINS "/") + name + ".so";
}

/// The built-in policies and those of that plugin.
inline std::shared_ptr<const PolicySet> loaded(const std::string& name) {
  return with_plugin(builtin_policies(), test_plugin(name));
}

/// The same in a process of their own.
inline std::shared_ptr<const PolicySet> loaded_apart(const std::string& name, int limit = 60) {
  return isolated_policies(loaded(name), std::chrono::seconds{limit});
}

inline std::vector<std::shared_ptr<const PolicySet>> here_and_isolated(const std::string& name) {
  return {loaded(name), loaded_apart(name)};
}

/// What is said of a file that is not loaded; empty if it is.
inline std::string refusal(const std::string& file,
                           const std::shared_ptr<const PolicySet>& known = builtin_policies()) {
  try {
    with_plugin(known, file);
  } catch (const InputError& error) {
    return error.problems().size() == 1 ? error.problems().front().what : "several problems";
  }
  return {};
}

}  // namespace vramlab
