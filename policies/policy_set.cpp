#include "policies/policy_set.hpp"

namespace vramlab {

std::shared_ptr<const PolicySet> builtin_policies() {
  static const auto set = std::make_shared<const PolicySet>(PolicySet{.tuners = builtin_tuners(),
                                                                      .admitters = builtin_admitters(),
                                                                      .searchers = builtin_searchers(),
                                                                      .composers = builtin_composers(),
                                                                      .plugins = {}});
  return set;
}

}  // namespace vramlab
