// The kinds of policies that a plugin adds, as the program lists them: equal to the plugin's own, but what
// they make is guarded, and their options are checked against their description before the plugin sees them.
#pragma once

#include <string>
#include <vector>

#include "plugins/guard.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// The guarded `kind`, whose code is in `code`.
TunerEntry guarded(TunerEntry kind, const PluginCode& code);
AdmitterEntry guarded(AdmitterEntry kind, const PluginCode& code);
SearcherEntry guarded(SearcherEntry kind, const PluginCode& code);
ComposerEntry guarded(ComposerEntry kind, const PluginCode& code);

/// `given` with every value as its description's type has it. Throws InputError with every problem.
OptionMap checked_options(const std::string& policy, const std::vector<Field>& options,
                          const OptionMap& given);

}  // namespace vramlab
