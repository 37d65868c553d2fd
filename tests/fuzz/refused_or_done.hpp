// What every target asks of its input: it is refused as input, or what was asked of it is done.
#pragma once

#include "core/error.hpp"

namespace vramlab {

/// Runs `work`; anything but InputError that it throws is a finding.
template <class Work>
void refused_or_done(const Work& work) {
  try {
    work();
  } catch (const InputError&) {
  }
}

}  // namespace vramlab
