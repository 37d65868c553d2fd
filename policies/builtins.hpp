// The built-in policies, one line each: a new one adds its line to the list of its family. NAME stands for
// the function NAME_entry() of the source beside it; users see the policies in the order of the lists.
#pragma once

#include "policies/contract/policy_set.hpp"

// clang-format off
#define VRAMLAB_TUNERS(POLICY) \
  POLICY(fixed)                /* fixed.cpp */ \
  POLICY(threshold_step)       /* threshold_step.cpp */ \
  POLICY(aimd)                 /* aimd.cpp */ \
  POLICY(dual_optimizer)       /* dual_optimizer.cpp */ \
  POLICY(predictive)           /* predictive.cpp */ \
  POLICY(skeleton)             /* skeleton.cpp */

#define VRAMLAB_ADMITTERS(POLICY) \
  POLICY(job_queue)            /* job_queue.cpp */

#define VRAMLAB_COMPOSERS(POLICY) \
  POLICY(memory_aware_sampler) /* memory_aware_sampler.cpp */ \
  POLICY(planned_batches)      /* planned_batches.cpp */

#define VRAMLAB_SEARCHERS(POLICY) \
  POLICY(binsearch)            /* doubling_search.cpp */ \
  POLICY(power)                /* doubling_search.cpp */ \
  POLICY(doubling_bisect)      /* doubling_search.cpp */ \
  POLICY(bucket_bisect)        /* doubling_search.cpp */ \
  POLICY(back_off)             /* back_off_search.cpp */ \
  POLICY(linear_fit)           /* linear_fit_search.cpp */ \
  POLICY(progressive)          /* progressive_search.cpp */ \
  POLICY(model)                /* model_search.cpp */
// clang-format on

/// What the lists are applied to where they become values.
#define VRAMLAB_LIST_POLICY(name) name##_entry(),

namespace vramlab {

#define VRAMLAB_DECLARE_TUNER(name) TunerEntry name##_entry();
#define VRAMLAB_DECLARE_ADMITTER(name) AdmitterEntry name##_entry();
#define VRAMLAB_DECLARE_COMPOSER(name) ComposerEntry name##_entry();
#define VRAMLAB_DECLARE_SEARCHER(name) SearcherEntry name##_entry();
VRAMLAB_TUNERS(VRAMLAB_DECLARE_TUNER)
VRAMLAB_ADMITTERS(VRAMLAB_DECLARE_ADMITTER)
VRAMLAB_COMPOSERS(VRAMLAB_DECLARE_COMPOSER)
VRAMLAB_SEARCHERS(VRAMLAB_DECLARE_SEARCHER)
#undef VRAMLAB_DECLARE_TUNER
#undef VRAMLAB_DECLARE_ADMITTER
#undef VRAMLAB_DECLARE_COMPOSER
#undef VRAMLAB_DECLARE_SEARCHER

}  // namespace vramlab
