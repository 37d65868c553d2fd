// Loads the plugins that were built for the tests.
#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "plugins/plugin_loader.hpp"

namespace vramlab {

inline std::string test_plugin(const std::string& name) {
  return std::string(VRAMLAB_TEST_PLUGINS "/") + name + ".so";
}

/// The built-in policies and those of that plugin.
inline std::shared_ptr<const PolicySet> loaded(const std::string& name) {
  return with_plugin(builtin_policies(), test_plugin(name));
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
