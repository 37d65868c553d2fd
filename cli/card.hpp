// What the program can do on a real card. Builds without a CUDA toolkit have the same functions, which say in
// one sentence that they cannot.
#pragma once

#include "cli/verb.hpp"
#include "sim/workload/training_loop.hpp"

namespace vramlab {

/// Adds --device.
void add_device_option(Options& options);

/// What runs the steps of a scenario: empty for a pretended card; with `--device cuda` the card, where
/// segment source, executor, probe and clock are real and nothing else changes. Throws InputError for any
/// other device, and if this build has no CUDA.
MakePerformer chosen_performer(const Arguments& arguments);

/// Makes what runs steps on the card. Throws InputError if this build has no CUDA.
MakePerformer card_performers();

/// validate-device, without its help.
int validate_device(const Arguments& arguments);

/// The process that holds memory for others (cuda/memory_holder.hpp).
int hold_card_memory();

}  // namespace vramlab
