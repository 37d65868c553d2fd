// How well a fitted model describes the sizes it was made from.
#pragma once

#include <cstddef>
#include <vector>

#include "fit/size_laws.hpp"

namespace vramlab {

/// How well the sizes of the recorded allocations are described. Bytes are requested bytes summed over all
/// recorded shapes.
struct FitResiduals {
  std::size_t tensors = 0;       ///< allocations of the step, each counted once over all shapes
  std::size_t exact = 0;         ///< a form that gives every recorded size to the byte
  std::size_t borrowed = 0;      ///< seen at one shape only, with the form of another of equal size
  std::size_t by_algorithm = 0;  ///< a form for each of some algorithms; the nearest shape decides
  std::size_t interpolated = 0;  ///< no form: sizes between recorded ones are interpolated
  std::size_t single = 0;        ///< no form and seen at one shape only
  Bytes bytes = 0;
  Bytes exact_bytes = 0;
  Bytes borrowed_bytes = 0;
  Bytes by_algorithm_bytes = 0;
  Bytes interpolated_bytes = 0;
  Bytes single_bytes = 0;
};

/// A family of allocations without an exact form, for people: where the model is weakest.
struct InexactFamily {
  std::vector<Bytes> sizes;  ///< by shape; 0 = not seen there
  std::size_t tensors = 0;   ///< how many have these sizes
};

/// Counts them for the allocations of `program`, whose sizes have `laws`; `inexact` gets the families without
/// an exact form, most bytes first.
FitResiduals count_residuals(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                             const SizeLaws& laws, std::vector<InexactFamily>& inexact);

}  // namespace vramlab
