// The built-in policies, one line each: a new one adds its line to the list of its family. NAME stands for
// the function NAME_entry() of its source; users see the policies in the order of the lists.
//
// An explicit list: statics that register themselves are dropped by linkers together with their archive
// member.
#include "policies/contract/policy_set.hpp"

// clang-format off
#define VRAMLAB_TUNERS(POLICY) \
  POLICY(fixed) \
  POLICY(threshold_step) \
  POLICY(aimd) \
  POLICY(dual_optimizer) \
  POLICY(predictive) \
  POLICY(skeleton)

#define VRAMLAB_ADMITTERS(POLICY) \
  POLICY(job_queue)

#define VRAMLAB_SEARCHERS(POLICY) \
  POLICY(binsearch) \
  POLICY(power) \
  POLICY(doubling_bisect) \
  POLICY(bucket_bisect) \
  POLICY(back_off) \
  POLICY(linear_fit) \
  POLICY(progressive) \
  POLICY(model)

#define VRAMLAB_COMPOSERS(POLICY) \
  POLICY(memory_aware_sampler) \
  POLICY(planned_batches)
// clang-format on

namespace vramlab {

#define VRAMLAB_TUNER(name) TunerEntry name##_entry();
#define VRAMLAB_ADMITTER(name) AdmitterEntry name##_entry();
#define VRAMLAB_SEARCHER(name) SearcherEntry name##_entry();
#define VRAMLAB_COMPOSER(name) ComposerEntry name##_entry();
VRAMLAB_TUNERS(VRAMLAB_TUNER)
VRAMLAB_ADMITTERS(VRAMLAB_ADMITTER)
VRAMLAB_SEARCHERS(VRAMLAB_SEARCHER)
VRAMLAB_COMPOSERS(VRAMLAB_COMPOSER)

#define VRAMLAB_ENTRY(name) name##_entry(),

std::shared_ptr<const PolicySet> builtin_policies() {
  static const auto set =
      std::make_shared<const PolicySet>(PolicySet{.tuners = {{VRAMLAB_TUNERS(VRAMLAB_ENTRY)}},
                                                  .admitters = {{VRAMLAB_ADMITTERS(VRAMLAB_ENTRY)}},
                                                  .searchers = {{VRAMLAB_SEARCHERS(VRAMLAB_ENTRY)}},
                                                  .composers = {{VRAMLAB_COMPOSERS(VRAMLAB_ENTRY)}},
                                                  .plugins = {}});
  return set;
}

std::vector<std::string> taken_names(const PolicySet& policies) {
  std::vector<std::string> names = policies.names();
  names.push_back("oracle");
  return names;
}

}  // namespace vramlab
