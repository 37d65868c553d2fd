// vramlab diff of two model files.
#pragma once

#include <string>
#include <vector>

#include "cli/output/output.hpp"
#include "lab/json.hpp"

namespace vramlab {

/// Prints what grew between two models at `settings` (batch=8; both models' parameters that have the name),
/// at most `top` laws (0 = all), and returns it as JSON. Parameters that nobody sets are in the middle of A's
/// recorded range, in B too where it has them. Throws InputError for a name that neither has.
Json diff_models(const std::string& a, const std::string& b, const std::vector<std::string>& settings,
                 std::size_t top, Output& output);

}  // namespace vramlab
