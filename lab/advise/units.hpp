// The parts of a recorded model that can be computed again in backward or wait in host memory, and the choice
// of some by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recordings/lifetimes/recompute.hpp"

namespace vramlab {

/// What is known of a program's parts.
struct ModelParts {
  std::vector<Lifetime> lifetimes;
  ProgramUses uses;
  ModelCalls calls;
  std::vector<CallMemory> memory;  ///< by call
};

ModelParts parts_of(const ClientProgram& program);

/// One part: the calls of one number from one place, in all passes.
struct ModelUnit {
  std::uint32_t place = 0;
  std::uint32_t number = 0;
  std::vector<std::uint32_t> calls;  ///< those that save something, in their order
};

std::string name_of(const ModelParts& parts, const ModelUnit& unit);

/// The parts that advice is about: from the outermost calls inwards to those that a line makes again and
/// again, as layers are, else to the last that call others; without what saves less than a thousandth of all,
/// or a twentieth if it calls no others. None lies in another.
std::vector<ModelUnit> advised_units(const ModelParts& parts);

/// What `text` names: a place with all its repeats ("modeling_llama.py:403"), or some of them
/// ("…:403#0,2,5-8"); with `every` only those whose number it divides. Throws InputError, naming `option`,
/// for a place that there is not, with those that there are, for numbers it does not have, for a program
/// without any, and where nothing that it names saves anything for backward.
std::vector<ModelUnit> named_units(const ModelParts& parts, const std::string& text,
                                   std::optional<std::uint32_t> every, const std::string& option);

/// Of calls that lie in one another the outer ones, in their order.
std::vector<std::uint32_t> outer_calls(const ModelParts& parts, const std::vector<ModelUnit>& units);

/// A program in which some parts are computed again in backward.
struct RecomputedProgram {
  ClientProgram program;
  std::string parts;      ///< which: "modeling_llama.py:403 #0, #2, #4"
  std::size_t calls = 0;  ///< in all passes
  Bytes written = 0;      ///< by what they do once more
};

/// `program` with what each of `texts` names (named_units) computed again. Throws InputError as that does.
RecomputedProgram recomputed_program(const ClientProgram& program, const std::vector<std::string>& texts,
                                     std::optional<std::uint32_t> every);

/// "modeling_llama.py:403 #0, #2, #4": units of one place together. Ranges of more than two are "#0-#11".
std::string names_of(const std::vector<std::string>& places, const std::vector<ModelUnit>& units);

}  // namespace vramlab
