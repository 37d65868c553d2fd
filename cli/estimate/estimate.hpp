// The parts of vramlab estimate that have a source of their own.
#pragma once

#include "cli/output/output.hpp"
#include "cli/verb.hpp"

namespace vramlab {

/// Adds what goes with --config.
void add_config_options(Options& options);

/// Memory of a network by its config.json; with -o also the model. Throws InputError for options that go with
/// the published tables, and for all that the config and the options contradict.
int estimate_config(const Arguments& arguments, Output& output);

/// Throws InputError for options that go with --config and stand without it.
void require_no_config_options(const Arguments& arguments);

}  // namespace vramlab
