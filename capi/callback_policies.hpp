// Policies that another program answers for, through one C function (capi/vramlab.h).
#pragma once

#include <memory>

#include "capi/description.hpp"
#include "capi/vramlab.h"

namespace vramlab {

/// `known` and the policy that `json` describes, behind the guard that policies of plugins have. `call`
/// answers for it as long as the set, or anything made by it, lives. Throws InputError for a wrong
/// description and for a name that is taken.
std::shared_ptr<const PolicySet> with_callback_policy(const std::shared_ptr<const PolicySet>& known,
                                                      const Json& json, vramlab_policy_call call,
                                                      void* context);

}  // namespace vramlab
