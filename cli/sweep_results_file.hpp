// The file that a sweep goes on from and is kept in.
#pragma once

#include <string>
#include <vector>

#include "lab/sweep_results.hpp"

namespace vramlab {

/// What --results names; an empty name stands for no file.
class SweepResultsFile {
 public:
  /// Throws InputError for a name without the ending of one of the forms.
  explicit SweepResultsFile(std::string name);

  /// What it has, as read_sweep_results. Throws InputError also if it could not be written after all the
  /// work.
  [[nodiscard]] SweepResults read(const Sweep& sweep, const std::vector<std::string>& keys) const;

  /// Writes it unless it says the same already. Returns whether it was written.
  bool keep(const Sweep& sweep, const SweepResults& results, const std::vector<std::string>& keys) const;

  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace vramlab
