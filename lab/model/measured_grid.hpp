// Measured points of a model's parameters, and how far its answers are from them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/json.hpp"
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
  Bytes outside = 0;  ///< of the card in use besides the allocator; 0 = not noted
  std::vector<double> step_ms;
};

struct MeasuredGrid {
  std::string name;
  std::string device;
  Bytes total_memory = 0;
  std::optional<std::uint32_t> world;        ///< ranks of the measured program, where `world` says so
  std::optional<std::vector<Json>> warm_up;  ///< absent: the recorded steps ran before
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
  /// Shortest and longest step timed where the host may be the bottleneck, as here; 0 = it is not.
  double least_ms = 0;
  double most_ms = 0;
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

// How far a model is from a grid of measured points, summed up.

/// Every other point in the order of the file, beginning with the first, gives the step-time law of a fitted
/// model; the others measure it.
constexpr bool gives_time_law(std::size_t row) { return row % 2 == 0; }

/// Errors |predicted − measured| / measured of some rows.
struct RowErrors {
  std::string what;
  std::vector<double> allocated;
  std::vector<double> reserved;
};

struct GridErrors {
  std::size_t skipped = 0;  ///< points the model does not know
  std::string skip_reason;
  std::size_t outside = 0;  ///< beyond the recorded range
  /// All rows; inside and outside the recorded range; measured peak below twice the bytes live before, and
  /// not (below, the state of the process sets the peak and not the step).
  std::vector<RowErrors> rows;
  std::vector<double> times;         ///< of points that did not give the law
  std::vector<double> fitted_times;  ///< of those that did
  std::vector<double> card_times;    ///< of `times` those where the host is no bottleneck
  std::size_t waiting = 0;           ///< points of `times` where it may be one …
  std::size_t waiting_as_seen = 0;   ///< … and that took as long as others there, to a tenth
  std::size_t outcomes[2][2] = {};   ///< [measured][predicted] out of memory
};

/// `predictions` are those of `replay_grid` for `grid`.
GridErrors grid_errors(const MeasuredGrid& grid, const std::vector<GridPrediction>& predictions);

/// The JSON of vramlab predict --against.
Json grid_errors_json(const GridErrors& errors);

}  // namespace vramlab
