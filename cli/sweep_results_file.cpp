#include "cli/sweep_results_file.hpp"

#include <filesystem>
#include <utility>

#include "report/output_file.hpp"
#include "trace/input_file.hpp"

namespace vramlab {

SweepResultsFile::SweepResultsFile(std::string name) : name_(std::move(name)) {
  if (!name_.empty()) require_results_name(name_);
}

SweepResults SweepResultsFile::read(const Sweep& sweep, const std::vector<std::string>& keys) const {
  if (name_.empty()) return SweepResults(sweep.runs.size());
  SweepResults results = read_sweep_results(sweep, keys, name_);
  OutputFile{name_};  // what stands in its way is better known now
  return results;
}

// Also where no run is new the sweep may have other names and another order by now.
bool SweepResultsFile::keep(const Sweep& sweep, const SweepResults& results,
                            const std::vector<std::string>& keys) const {
  if (name_.empty() || finished_runs(results) == 0) return false;
  const std::string text = sweep_text(sweep, results, keys, name_);
  if (std::filesystem::exists(name_) && read_input_file(name_) == text) return false;
  write_file(name_, text);
  return true;
}

}  // namespace vramlab
