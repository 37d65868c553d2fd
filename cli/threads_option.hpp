// The option -j: how many threads.
#pragma once

#include "cli/verb.hpp"

namespace vramlab {

/// Results never depend on it. By default all cores.
void add_threads_option(Options& options);

/// At least 1.
unsigned chosen_threads(const Arguments& arguments);

}  // namespace vramlab
