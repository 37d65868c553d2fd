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

std::vector<std::string> taken_names(const PolicySet& policies) {
  std::vector<std::string> names{"oracle"};
  policies.for_each([&](const auto& kind) { names.push_back(kind.name); });
  return names;
}

}  // namespace vramlab
