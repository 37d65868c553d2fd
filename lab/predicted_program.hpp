// What a fitted model would ask of its allocator at given parameters, as a program for what-if replays.
#pragma once

#include <string>

#include "models/workload_model.hpp"
#include "trace/client_program.hpp"

namespace vramlab {

/// Building and three steps of `model` at `point`, with a mark after each. Settings, limit and card are those
/// of `recording`, which the model was fitted from. A workspace is asked for once and may not stay away.
ClientProgram predicted_program(const WorkloadModel& model, const Point& point,
                                const ClientProgram& recording);

}  // namespace vramlab
