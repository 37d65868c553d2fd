#include "policies/tuner.hpp"

#include <algorithm>

namespace vramlab {

bool TunerAnswer::moves() const {
  return std::any_of(delta.begin(), delta.end(), [](std::int64_t change) { return change != 0; });
}

}  // namespace vramlab
