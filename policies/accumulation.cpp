#include "policies/accumulation.hpp"

#include <algorithm>
#include <limits>

namespace vramlab {

Accumulation::Accumulation(AccumulationRule rule, std::int64_t target)
    : rule_(rule), target_(target), micro_steps_(std::max<std::int64_t>(1, target / rule.batch_size)) {}

std::int64_t Accumulation::room() const {
  return rule_.kind == AccumulationRule::Kind::exact ? target_ - samples_
                                                     : std::numeric_limits<std::int64_t>::max();
}

// P2.5: above 90 % of the memory one step fewer, below 50 % one more, at most 8.
bool Accumulation::add(std::int64_t samples, double usage) {
  samples_ += samples;
  ++done_;
  if (rule_.kind == AccumulationRule::Kind::exact) {
    if (samples_ < target_) return false;
  } else {
    if (done_ < micro_steps_) return false;
    if (usage > 0.9) micro_steps_ = std::max<std::int64_t>(1, micro_steps_ - 1);
    if (usage < 0.5) micro_steps_ = std::min(kMostMicroSteps, micro_steps_ + 1);
  }
  close();
  return true;
}

void Accumulation::close() {
  samples_ = 0;
  done_ = 0;
}

void Accumulation::restore(std::int64_t samples, std::int64_t done, std::int64_t micro_steps) {
  samples_ = samples;
  done_ = done;
  micro_steps_ = micro_steps;
}

}  // namespace vramlab
