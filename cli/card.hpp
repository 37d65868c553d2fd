// What the program can do on a real card. Builds without a CUDA toolkit have the same functions, which say in
// one sentence that they cannot.
#pragma once

#include "cli/verb.hpp"
#include "lab/scenario.hpp"

namespace vramlab {

/// Adds --device.
void add_device_option(Options& options);

/// With `--device cuda`, the scenario's steps run on the card from here on; segment source, executor, probe
/// and clock are real then, nothing else changes. Throws InputError for any other device, and where there is
/// no card.
void choose_device(const Arguments& arguments, Scenario& scenario);

/// Whether `--device cuda` was given.
bool wants_card(const Arguments& arguments);

/// Makes what runs steps on the card. Throws InputError if this build has no CUDA.
MakePerformer card_performers();

/// validate-device, without its help.
int validate_device(const Arguments& arguments);

/// The process that holds memory for others (cuda/memory_holder.hpp).
int hold_card_memory();

}  // namespace vramlab
