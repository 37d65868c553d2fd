// The scenario files that operands stand for.
#pragma once

#include <string>
#include <vector>

namespace vramlab {

/// A folder stands for the scenario files (*.json) in it and below, in the order of their names; any other
/// path for itself. Throws InputError for a folder without one.
std::vector<std::string> scenario_files(const std::vector<std::string>& paths);

}  // namespace vramlab
