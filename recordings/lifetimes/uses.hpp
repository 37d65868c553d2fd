// What the blocks of a program were for: weights, gradients, optimizer state, …, told from their lifetimes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// What a block was for.
enum class Category : std::uint8_t {
  weights,          ///< with the buffers of their modules
  gradients,        ///< that the optimizer saw; parts that were only added to them are temporaries
  optimizer_state,  ///< master weights too
  activations,      ///< saved for backward
  temporaries,
  workspaces,     ///< of libraries: cuBLAS's, and what one call took and gave back
  communication,  ///< buckets, gathered shards
  inputs,         ///< what a step made first and held throughout
  other,
};
inline constexpr std::array<std::string_view, 9> kCategoryNames{
    "weights",    "gradients",     "optimizer state", "activations", "temporaries",
    "workspaces", "communication", "inputs",          "other"};

/// How that was known, the surest first. All but the first two are inferred.
enum class Evidence : std::uint8_t { stack, annotation, lifetime_and_size, lifetime, rest };
inline constexpr std::array<std::string_view, 5> kEvidenceNames{"stack", "annotation", "lifetime and size",
                                                                "lifetime", "rest"};

struct BlockUse {
  Category category = Category::other;
  Evidence how = Evidence::rest;
};

/// What each block of a program was for.
struct ProgramUses {
  std::vector<BlockUse> blocks;  ///< by program block
  std::size_t steps = 0;         ///< of training, found by the rhythm of the gradients
};

/// Sorts the blocks of a program. Independent of any settings: only order, sizes, stacks and marks count.
///
/// Gradients are what is freed in one go, was made over the length of a backward pass, and has the sizes of
/// the weights (or sums up to them, where shards or layers share a block); weights are what was there before
/// the first of them and stays, optimizer state is what comes in one go after the first backward pass and
/// stays. Activations are what is held where a pass holds the most blocks. A program without gradients is
/// taken for inference: it has weights, workspaces and temporaries. Its weights are what stays and was made
/// before the first workspace of cuBLAS or the first long pause; without either, only stacks tell them.
ProgramUses uses_of(const ClientProgram& program);

}  // namespace vramlab
