// The sentences of `dual-optimizer`: reasons of its decisions and lines for the run's log.
#pragma once

#include <cstdint>
#include <string>

#include "policies/dual_optimizer_recovery.hpp"

namespace vramlab {

std::string start_line(const DualOptimizerOptions& options, const MemoryView& memory);
std::string warm_up_line(const DualOptimizerOptions& options);
std::string usage_line(const DualOptimizerOptions& options, const MemoryView& memory);
std::string warning_line(const DualOptimizerOptions& options, const MemoryView& memory);
std::string decision_line(double usage, BatchAndLq from, BatchAndLq to, const std::string& reason);
std::string period_line(const DualOptimizerOptions& options, std::int64_t iteration);

std::string decision_reason(const DualOptimizerOptions& options, Wish wish, double usage, BatchAndLq from,
                            BatchAndLq to);
std::string used_up_reason(const DualOptimizerOptions& options, double usage);
std::string snap_reason(const DualOptimizerOptions& options, BatchAndLq from, BatchAndLq to);

// These begin with "oom".
std::string recovery_reason(BatchAndLq from, const Recovery& way, std::int64_t cooldown);
std::string first_failure_reason(BatchAndLq pair);
std::string recoveries_used_up_reason(const DualOptimizerOptions& options, BatchAndLq pair);
std::string floor_reason(const DualOptimizerOptions& options, BatchAndLq pair);

}  // namespace vramlab
