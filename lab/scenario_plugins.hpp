// The plugins that a scenario names.
#pragma once

#include <filesystem>
#include <memory>

#include "lab/json_text.hpp"
#include "lab/scenario_parts.hpp"
#include "policies/policy_set.hpp"

namespace vramlab {

/// `known` and the policies of the "plugins" of a scenario, which are looked up beside it. A plugin that
/// cannot be loaded is a problem of the file, and adds nothing.
std::shared_ptr<const PolicySet> with_scenario_plugins(const Json& scenario,
                                                       const std::filesystem::path& file,
                                                       std::shared_ptr<const PolicySet> known,
                                                       FileProblems& problems);

}  // namespace vramlab
