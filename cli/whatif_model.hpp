// A recording fitted and asked for other parameters, for vramlab whatif --set.
#pragma once

#include <string>
#include <vector>

#include "lab/json.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// What the models of recordings would ask of their allocators at other parameters.
struct PredictedPrograms {
  std::vector<ClientProgram> programs;  ///< one a recording
  std::string sentence;                 ///< what they are: "Three steps at batch=16 seq=64, …"
  Json parameters;                      ///< name → value
  bool outside_range = false;           ///< of what some of the recordings hold
};

/// Fits each of `snapshots` with its file of `marks` and takes its model at `settings` (batch=16); parameters
/// that none names are in the middle of their recorded range. Throws InputError where marks are missing, a
/// setting names no parameter, or one that never moved.
PredictedPrograms predict_programs(const std::vector<std::string>& snapshots,
                                   const std::vector<std::string>& marks,
                                   const std::vector<std::string>& settings);

}  // namespace vramlab
