// The published table of what a sample of mixed tasks takes (P2.1).
#pragma once

#include <array>
#include <string_view>

namespace vramlab {

/// GB = 1,024 MB.
struct TaskTable {
  static constexpr double kBase = 0.15;      ///< the model
  static constexpr double kOverhead = 0.12;  ///< a batch
  static constexpr double kForward = 0.28;   ///< an image
  static constexpr double kBackward = 0.35;  ///< an image, in training

  struct Task {
    const char* name;
    double multiplier;
    int images;  ///< assumed where nothing else is known of a sample
  };
  static constexpr std::array<Task, 3> kTasks{{{"T1", 1.0, 1}, {"T2", 1.85, 3}, {"T3", 1.87, 4}}};

  /// Of the task called so; 1 for any other.
  static constexpr double multiplier(std::string_view name) {
    for (const Task& task : kTasks) {
      if (name == task.name) return task.multiplier;
    }
    return 1;
  }
};

}  // namespace vramlab
