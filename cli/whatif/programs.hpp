// The programs that a question of vramlab whatif is about.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "lab/json.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// What was recorded, or what models of the recordings would ask of their allocators at other parameters.
struct AskedPrograms {
  std::shared_ptr<const std::vector<ClientProgram>> programs;  ///< one a device of a recording, or a model
  std::string sentence{};           ///< "Three steps at batch=16 seq=64, …", or empty
  Json parameters{};                ///< name → value
  bool outside_range = false;       ///< of what some of the recordings hold
  Json recomputed = Json::array();  ///< by program: what of it is computed again
  std::vector<std::string> recomputed_sentences{};
};

/// Those of the operands of `arguments`, with its --marks, --set, --recompute and --every. Recordings that
/// the caller of `output` keeps from an earlier question are not read again. Throws InputError with the
/// option, or the file and its place.
AskedPrograms programs_asked_for(const Arguments& arguments, const Output& output);

}  // namespace vramlab
