// Gives every allocation of the union a law for its size: exact forms, forms of some shapes, tables.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fit/union_program.hpp"
#include "models/forms.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// One recorded size and the values of all monomials where it was recorded.
struct SizeSample {
  std::vector<std::int64_t> monomials;
  Bytes size = 0;

  friend auto operator<=>(const SizeSample&, const SizeSample&) = default;
};

/// A form with one, two, three or (if there are enough samples) all of the `candidates` (numbers of
/// monomials, likeliest first) that gives every sample to the byte; the fewest terms, then the likeliest.
///
/// Coefficients are positive fractions with a denominator of at most 64. A form needs one more distinct
/// sample than it has terms, so that it is always checked by one it was not made from.
std::optional<SizeForm> find_exact_form(std::vector<SizeSample> samples,
                                        std::span<const std::uint32_t> candidates);

// Sizes that follow one form at some shapes and another at others, as workspaces of a library do.

/// Some of the samples, and a form for them.
struct SizePiece {
  SizeForm form;
  std::vector<std::size_t> samples;  ///< their numbers, rising
};

/// Looks for forms of one of the `candidates` (likeliest first), with or without a constant, that give at
/// least three samples to the byte; samples within 512 bytes of such a form belong to it too, for libraries
/// pad their workspaces by some bytes. Pieces share no sample; those with
/// most samples come first. At most 64 samples are looked at.
std::vector<SizePiece> find_pieces(const std::vector<SizeSample>& samples,
                                   std::span<const std::uint32_t> candidates);

// Gives every allocation of the union a law for its size.

/// How the size of an allocation is known.
enum class SizeKnowledge : std::uint8_t {
  exact,         ///< a form that gives every recorded size
  borrowed,      ///< seen at one shape, with the form of another
  by_algorithm,  ///< a form for some of the shapes at least; the nearest shape decides
  interpolated,
  single,  ///< seen at one shape, without a form
};
constexpr std::size_t kKnowledges = 5;

/// Values of all monomials at a shape, in round `round` of `loop` (−1 = outside loops).
using SampleValues =
    std::function<std::vector<std::int64_t>(std::size_t shape, std::int32_t loop, std::size_t round)>;

/// All recorded sizes of an allocation, shape by shape and round by round.
std::vector<SizeSample> size_samples(const UnionTensor& tensor, const std::vector<ShapeProgram>& shapes,
                                     const SampleValues& values);

/// Puts them into `spec`, which has the parameters and as many tensors as `program`: forms, tables, the size
/// of each tensor and the main product, the one that alone describes most bytes. Exact forms first; an
/// allocation seen at one shape only takes the form of another that has the same size there; everything else
/// becomes a table of recorded sizes, with forms for the shapes that seem to have an algorithm in common.
/// Says by tensor how its size is known.
std::vector<SizeKnowledge> find_size_laws(const UnionProgram& program,
                                          const std::vector<ShapeProgram>& shapes, const SampleValues& values,
                                          RecordedSpec& spec);

// Workspaces whose rule is known: those of PyTorch's reductions.

/// Where the buffer of a reduction begins to be there: from this value of a product on.
struct ReductionBegin {
  std::int32_t monomial = -1;  ///< number of the product; −1 = not known
  std::int64_t from = 0;
};

struct FoundReductions {
  std::vector<std::optional<ReductionBegin>> begins;  ///< by tensor; empty = no buffer of a reduction
  std::size_t count = 0;                              ///< reductions
  bool has_limit = false;                             ///< whether it is known how many threads the card holds
};

/// Gives buffers of reductions their rule as a form, where it explains every recorded size: a pair of
/// allocations in one another, the second constant, whose sizes are those of fit/reductions.cpp for the rows
/// of an allocation with an exact form. `card`: bytes of the recorded card, which says how many threads it
/// has; 0 = not known. Where that is not known, their growth has no end.
FoundReductions find_reductions(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                                const SampleValues& values, Bytes card, RecordedSpec& spec,
                                std::vector<SizeKnowledge>& knowledge);

}  // namespace vramlab
