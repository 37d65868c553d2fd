// Policies of plugins in a process of their own (answer_process.hpp).
#pragma once

#include <chrono>
#include <memory>

#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// `known`, whose plugins' policies are made and asked in another process, one for each run: what crashes
/// there, ends its process or takes longer than `limit` for an answer ends its run with that as the reason.
/// Answers are those that it gives in the program. Policies of one run share its process, and its end.
///
/// Only for simulated cards, as the run is made in both processes, and while the program has one thread.
std::shared_ptr<const PolicySet> isolated_policies(const std::shared_ptr<const PolicySet>& known,
                                                   std::chrono::seconds limit);

}  // namespace vramlab
