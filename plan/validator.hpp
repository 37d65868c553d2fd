// Checks a plan from first principles; knows nothing of how it was made.
#pragma once

#include <string>
#include <vector>

#include "plan/buffers.hpp"

namespace vramlab {

/// What a plan comes to.
struct PlanCheck {
  Bytes load = 0;                   ///< most bytes alive at once
  Bytes top = 0;                    ///< the highest end of a buffer: what the plan needs
  std::vector<std::string> faults;  ///< of at most 20 buffers; empty = the plan is sound

  [[nodiscard]] bool sound() const { return faults.empty(); }
};

/// `offsets` by buffer. A plan is sound if every buffer has an offset, none ends above 2^63 − 1, and no two
/// that live at the same time share a byte. A buffer that ends when another one begins does not live with it.
/// Faults name buffers by `ids`, or by their places from 0 where there are none.
PlanCheck check_plan(const std::vector<Buffer>& buffers, const std::vector<Bytes>& offsets,
                     const std::vector<std::string>& ids = {});

}  // namespace vramlab
