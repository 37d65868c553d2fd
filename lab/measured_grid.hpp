// Measured training steps over a grid of parameters, and how far a model is from them.
//
// A grid file is a JSON object: name, device, total_memory (bytes of the card), warm_up (a list of
// parameters), rows: parameters, ok, base (bytes live before), peak_allocated, peak_reserved, step_ms (a list
// of durations). One process: warm-up steps, then the rows in order; before each row the cache is emptied and
// the peaks are reset, then come four steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/json_text.hpp"
#include "models/recorded_model.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// One measured point.
struct GridRow {
  Json parameters;  ///< all keys of the row
  bool ok = true;   ///< no step ran out of memory
  Bytes base = 0;
  Bytes peak_allocated = 0;
  Bytes peak_reserved = 0;
  std::vector<double> step_ms;
};

struct MeasuredGrid {
  std::string name;
  std::string device;
  Bytes total_memory = 0;
  std::vector<Json> warm_up;
  std::vector<GridRow> rows;
};

/// Reads a grid file. Throws InputError for what is missing or wrong.
MeasuredGrid read_grid_file(const std::filesystem::path& file);

/// What a model says of one row.
struct GridPrediction {
  std::string label;     ///< "batch 8, seq 128"
  bool skipped = false;  ///< the model does not know these parameters
  std::string reason;    ///< why it was skipped
  bool outside = false;  ///< beyond the recorded range
  bool small = false;    ///< measured peak below twice `base`
  bool oom = false;      ///< a step ran out of memory
  Bytes base = 0;
  Bytes peak_allocated = 0;
  Bytes peak_reserved = 0;
  double step_ms = 0;
};

/// What a row asks of a recorded model: its parameters, and fields of items that the row gives by name.
/// Throws InputError if a parameter of the model is missing.
RecordedConditions grid_conditions(const RecordedModel& model, const Json& row);

/// Runs the rows in order in one simulated process, as they were measured.
std::vector<GridPrediction> replay_grid(const MeasuredGrid& grid, const WorkloadModel& model);

/// Median, 95th percentile and largest of errors |predicted − measured| / measured.
struct ErrorSummary {
  std::size_t points = 0;
  std::size_t exact = 0;  ///< equal to the byte
  double median = 0;
  double p95 = 0;
  double largest = 0;
};

/// Summary over `errors`, which need not be sorted; the smallest value that at least the share covers.
ErrorSummary summarise(std::vector<double> errors);

/// The middle one of several timings.
double middle_of(std::vector<double> values);

}  // namespace vramlab
