#include "cli/time_points.hpp"

#include "fit/step_time_fit.hpp"
#include "lab/model/measured_grid.hpp"
#include "models/recorded_model.hpp"
#include "models/recorded_program.hpp"

namespace vramlab {

void fit_times(RecordedSpec& spec, const MeasuredGrid& grid) {
  const RecordedModel model(spec);
  std::vector<TimedPoint> points;
  for (std::size_t row = 0; row < grid.rows.size(); ++row) {
    if (!gives_time_law(row) || grid.rows[row].step_ms.empty()) continue;
    const RecordedConditions conditions = grid_conditions(model, grid.rows[row].parameters);
    const RecordedValues values(spec, conditions);
    points.push_back(
        {{values.monomials().begin(), values.monomials().end()}, middle_of(grid.rows[row].step_ms) * 1e-3});
  }
  spec.time = fit_step_time(points, spec.main_product);
}

}  // namespace vramlab
