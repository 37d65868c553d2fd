// The cheapest choice of changes under which a program's memory stays within a budget, by the sizes of its
// blocks: a small integer program.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// Changes of which some are to be chosen, at most one of each group.
struct SelectionProblem {
  struct Change {
    double cost = 0;  ///< at least 0
    std::uint32_t group = 0;
  };
  /// One moment: what is allocated if nothing changes, and what each change adds to that.
  struct Moment {
    std::int64_t bytes = 0;
    std::vector<std::pair<std::uint32_t, std::int64_t>> added;  ///< by change, ascending
  };
  std::vector<Change> changes;
  std::vector<Moment> moments;

  /// The most of all moments under a choice.
  [[nodiscard]] std::int64_t peak(const std::vector<bool>& chosen) const;
};

struct Selection {
  std::vector<bool> chosen;  ///< by change
  double cost = 0;
  double bound = 0;    ///< no choice costs less
  bool exact = false;  ///< the cheapest, proved
};

/// The cheapest choice with a peak of at most `budget`: by CBC where it is on the PATH and there are at most
/// a few hundred changes, else the change with the most relief for its cost first, and then without those
/// that turn out not to be needed. Empty if none was found; with CBC there is none.
std::optional<Selection> cheapest(const SelectionProblem& problem, std::int64_t budget, bool use_solver);

/// A choice whose peak is the least that adding one change after the other reaches.
Selection least_peak(const SelectionProblem& problem);

/// Whether CBC, the solver of Debian's coinor-cbc, is on the PATH.
bool has_solver();

}  // namespace vramlab
