// Tells a leak from everything else by what is allocated between steps.
#pragma once

#include <cstdint>

namespace vramlab {

/// Watches memory allocated between steps at unchanged parameters. A leak rises again and again and never
/// falls; optimizer state rises once, an outlier not at all.
class LeakWatch {
 public:
  /// Takes what is allocated after step `iteration`, a share of the total.
  void add(double allocated, std::int64_t iteration) {
    const bool calm = rises_ > 0 && since_rise_ >= kCalm;
    if (readings_ == 0) {
      restart();
    } else if (allocated < last_ || calm) {
      restart();
      rate_ = 0;
    } else if (allocated > last_) {
      since_rise_ = 0;
      if (++rises_ == 1) {  // the rate counts from the first rise on, whenever that came
        first_ = allocated;
        first_iteration_ = iteration;
      }
    } else {
      ++since_rise_;
    }
    ++readings_;
    last_ = allocated;
    if (rises_ >= kRises) {
      rate_ = (allocated - first_) / static_cast<double>(iteration - first_iteration_);
    } else if (readings_ > kCalm) {
      rate_ = 0;
    }
  }

  /// Other parameters may leave more or less between steps: what was found stays until seen otherwise.
  void parameters_change() { restart(); }

  /// Share of the total lost each step; 0 = no leak.
  [[nodiscard]] double rate() const { return rate_; }
  [[nodiscard]] std::int64_t rises() const { return rises_; }

  template <class State>
  void visit(State& state) {
    state(last_);
    state(first_);
    state(rate_);
    state(first_iteration_);
    state(readings_);
    state(rises_);
    state(since_rise_);
  }

 private:
  static constexpr std::int64_t kRises = 4;  ///< so many make a leak
  static constexpr std::int64_t kCalm = 16;  ///< so many readings without one end it

  void restart() {
    readings_ = 0;
    rises_ = 0;
    since_rise_ = 0;
  }

  double last_ = 0;
  double first_ = 0;
  double rate_ = 0;
  std::int64_t first_iteration_ = 0;
  std::int64_t readings_ = 0;
  std::int64_t rises_ = 0;
  std::int64_t since_rise_ = 0;
};

}  // namespace vramlab
