// The entry of each built-in tuner; a new one adds its line here and in builtin_tuners().
#pragma once

#include "policies/registry.hpp"

namespace vramlab {

TunerEntry fixed_entry();           ///< fixed.cpp
TunerEntry threshold_step_entry();  ///< threshold_step.cpp
TunerEntry aimd_entry();            ///< aimd.cpp
TunerEntry predictive_entry();      ///< predictive.cpp
TunerEntry dual_optimizer_entry();  ///< dual_optimizer.cpp

}  // namespace vramlab
