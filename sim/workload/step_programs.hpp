// The program of every step of a run: a model's answers, each asked for once.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/workload_model.hpp"

namespace vramlab {

/// Counts how often each point was visited and gives the step program that is due there.
class StepPrograms {
 public:
  /// A program with its numbers, which count from 1.
  struct Program {
    std::uint64_t key = 0;    ///< one for each different program
    std::uint64_t shape = 0;  ///< one for each point
    StepProgram program;
  };

  /// `model` must outlive this.
  explicit StepPrograms(const WorkloadModel& model) : model_(model) {}

  /// The next step at `point`. Stays valid until the next call.
  const Program& next(const Point& point);

  /// Whether `point` was visited.
  [[nodiscard]] bool knows(const Point& point) const { return shapes_.contains(point); }

  /// Every point is a new one again.
  void forget() { shapes_.clear(); }

 private:
  struct Shape {
    std::uint64_t id = 0;
    std::size_t visits = 0;
    std::vector<Program> programs;  ///< of its first steps, then of all later ones
  };

  const WorkloadModel& model_;
  std::map<Point, Shape> shapes_;
  std::uint64_t programs_ = 0;
};

}  // namespace vramlab
