#include "policies/contract/tuner.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {

void Tuner::load(const std::string& /*text*/) {
  throw InputError("", "this policy saves nothing, so there is nothing it could load.");
}

bool TunerAnswer::moves() const {
  return std::any_of(delta.begin(), delta.end(), [](std::int64_t change) { return change != 0; });
}

}  // namespace vramlab
