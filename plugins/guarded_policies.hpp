// The kinds of policies that a plugin adds, as the program lists them: equal to the plugin's own, but what
// they make is guarded, and their options are checked against their description before the plugin sees them.
#pragma once

#include <string>
#include <vector>

#include "plugins/guard.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// Adds `added`, the kinds of a plugin whose code is in `code`, to `known`.
void add_guarded(PolicySet& known, const PolicySet& added, const PluginCode& code);

/// `given` with every value as its description's type has it. Throws InputError with every problem.
OptionMap checked_options(const std::string& policy, const std::vector<Field>& options,
                          const OptionMap& given);

}  // namespace vramlab
