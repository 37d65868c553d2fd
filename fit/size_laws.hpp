// Gives every allocation of the union a law for its size.
#pragma once

#include <cstdint>
#include <vector>

#include "fit/parameters.hpp"
#include "fit/union_program.hpp"
#include "models/recorded_spec.hpp"

namespace vramlab {

/// How the size of an allocation is known.
enum class SizeKnowledge : std::uint8_t {
  exact,         ///< a form that gives every recorded size
  borrowed,      ///< seen at one shape, with the form of another
  by_algorithm,  ///< a form for some of the shapes at least; the nearest shape decides
  interpolated,
  single,  ///< seen at one shape, without a form
};

/// Forms and tables of a model, and which of them each tensor of the union has.
struct SizeLaws {
  std::vector<SizeForm> forms;
  std::vector<RecordedTable> tables;
  std::vector<std::int32_t> size;  ///< by tensor, as RecordedTensor::size
  std::vector<SizeKnowledge> knowledge;
  std::uint32_t main_product = 0;
};

/// `values[shape][round]` are the values of all monomials; a shape's entry 0 is outside loops, entry
/// 1 + k of a loop is round k of it: see `SampleValues`.
class SampleValues {
 public:
  virtual ~SampleValues() = default;
  /// Values of all monomials at a shape, in round `round` of `loop` (−1 = outside loops).
  [[nodiscard]] virtual std::vector<std::int64_t> at(std::size_t shape, std::int32_t loop,
                                                     std::size_t round) const = 0;
};

/// Finds them. Exact forms first; an allocation seen at one shape only takes the form of another that has
/// the same size there; everything else becomes a table of recorded sizes, with forms for the shapes that
/// seem to have an algorithm in common. The main product is the one that alone describes most bytes.
SizeLaws find_size_laws(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                        const FitParameters& parameters, const SampleValues& values);

}  // namespace vramlab
