// The option --plugin, and the folders of VRAMLAB_PLUGIN_PATH.
#pragma once

#include <memory>

#include "cli/verb.hpp"
#include "policies/policy_set.hpp"

namespace vramlab {

void add_plugin_option(Options& options);

/// The built-in policies and those of all plugins: first of the folders that the environment names, then of
/// the option, in the order given. Throws InputError for the first that cannot be loaded.
std::shared_ptr<const PolicySet> chosen_policies(const Arguments& arguments);

}  // namespace vramlab
