// What two aligned programs differ in, sorted by what may have caused it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "recordings/alignment/alignment.hpp"
#include "recordings/alignment/blend.hpp"

namespace vramlab {

/// What a difference comes from.
enum class BlameKind : std::uint8_t {
  leak,           ///< every step leaves blocks behind
  late_free,      ///< the same blocks are freed later, or earlier
  larger_input,   ///< a step's sizes have another scale: batch, length, resolution
  more_layers,    ///< more or fewer repeats of what was there, with weights of their own
  dtype,          ///< weights, or what is saved for backward, in another precision
  optimizer,      ///< another state, or other temporaries of the optimizer
  recomputation,  ///< activations recomputed in backward, or no longer
  workspace,      ///< of a library
  stream,         ///< on another stream
  setting,        ///< of the allocator
  other,
};
inline constexpr std::array<std::string_view, 11> kBlameNames{
    "leak",          "late_free", "larger_input", "more_layers", "dtype", "optimizer",
    "recomputation", "workspace", "stream",       "setting",     "other"};

/// Bytes requested at one place.
struct SiteChange {
  std::string where;
  std::int64_t bytes = 0;  ///< in the new program less in the golden one, over the whole recording
  std::uint64_t blocks = 0;
};

/// Differences that belong together.
struct FoundCause {
  BlameKind kind = BlameKind::other;
  std::string where;              ///< a line of the program where stacks are known, else a use
  std::string what;               ///< half a sentence: "weights of 297.0 MiB are 594.0 MiB"
  std::size_t first_step = 0;     ///< counted from 1; 0 = before the first step
  std::vector<SiteChange> sites;  ///< the largest first
  Bytes per_step = 0;             ///< of a leak
  bool autotuned = false;         ///< of a workspace: what a library chooses anew in every run
};

/// The differences of two programs, each with the cause it belongs to.
struct FoundCauses {
  Differences differences;
  std::vector<FoundCause> causes;  ///< number n is cause n + 1 of `differences`
  std::uint64_t moved_frees = 0;   ///< that come a few requests earlier or later, which means nothing
  std::vector<std::string> notes;  ///< what was not judged
};

/// Sorts all differences, by kinds of evidence alone: another stream; blocks that every step leaves behind;
/// weights that all have another size, or come more often; the optimizer's state; activations that are freed
/// in forward and made again in backward; one ratio of what steps allocate; libraries' workspaces; blocks of
/// equal size that are freed elsewhere. What is left is `other`, by place. Stretches before
/// `first` are passed over.
FoundCauses find_causes(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment,
                        std::size_t first);

}  // namespace vramlab
