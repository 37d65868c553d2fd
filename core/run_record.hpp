// What a run leaves behind: one record an iteration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/observation.hpp"
#include "core/parameter_space.hpp"

namespace vramlab {

/// Where a step ran and what followed. Most steps of a run repeat one of the last few.
struct StepChoice {
  Point point;         ///< the parameters it ran at
  Point delta;         ///< change made after it, in force from the next step; empty = none
  std::string reason;  ///< why, or why not; empty where the policy evaluated nothing

  friend bool operator==(const StepChoice&, const StepChoice&) = default;
};

/// Makes choices that are shared: one that equals one of the last few is that one.
class RecentChoices {
 public:
  std::shared_ptr<const StepChoice> share(StepChoice choice) {
    for (const auto& one : recent_) {
      if (one && *one == choice) return one;
    }
    oldest_ = (oldest_ + 1) % recent_.size();
    return recent_[oldest_] = std::make_shared<const StepChoice>(std::move(choice));
  }

 private:
  std::array<std::shared_ptr<const StepChoice>, 4> recent_;
  std::size_t oldest_ = 0;
};

/// One iteration as it happened. Runs keep a million of them and more, so equal choices are shared.
struct IterationRecord {
  std::int64_t iteration = 0;     ///< counted from 1
  SimTime start{0};               ///< when the step began
  SimTime duration{0};            ///< until it ended or failed
  MemoryView memory;              ///< as a program sees it right after the step
  Bytes step_peak_allocated = 0;  ///< highest allocated within this step alone
  Bytes step_peak_reserved = 0;   ///< highest reserved within this step alone
  StepResult result = StepResult::ok;
  bool kept = true;  ///< false: a restart went back behind it, its work is lost
  std::shared_ptr<const StepChoice> choice = std::make_shared<const StepChoice>();  ///< never null

  [[nodiscard]] const Point& point() const { return choice->point; }
  [[nodiscard]] const Point& delta() const { return choice->delta; }
  [[nodiscard]] const std::string& reason() const { return choice->reason; }
};

}  // namespace vramlab
