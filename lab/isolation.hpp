// Policies of plugins that may end the program, crash or never answer: each run has a process of its own.
#pragma once

#include <chrono>

#include "lab/scenario/file.hpp"

namespace vramlab {

/// `document` with its own plugins loaded, whose policies of plugins are asked in another process
/// (plugins/isolated_policies.hpp, with its conditions). What else is wrong with the document is not looked
/// at.
ScenarioDocument isolated(ScenarioDocument document, std::chrono::seconds limit);

}  // namespace vramlab
