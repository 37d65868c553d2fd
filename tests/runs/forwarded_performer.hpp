// A stand-in for a real card: a performer that is no StepRunner and does what one does.
#pragma once

#include <memory>
#include <utility>

#include "sim/runs/card_runner.hpp"
#include "sim/runs/job_process.hpp"

namespace vramlab {

class ForwardedPerformer final : public StepPerformer {
 public:
  ForwardedPerformer(const ProcessWork& work, const ProcessSetup& setup) : runner_(work, setup) {}

  using StepPerformer::run;
  StepOutcome run(const Point& point, const StepAdditions& additions) override {
    return runner_.run(point, additions);
  }
  StepOutcome run_program(const StepProgram& program, std::uint64_t shape,
                          const StepAdditions& additions) override {
    return runner_.run_program(program, shape, additions);
  }
  [[nodiscard]] bool knows(const Point& point) const override { return runner_.knows(point); }
  SimTime empty_cache() override { return runner_.empty_cache(); }
  SimTime forget_steps(bool held_stay) override { return runner_.forget_steps(held_stay); }
  void use_share(double share) override { runner_.use_share(share); }
  void reset_peak() override { runner_.reset_peak(); }
  void set_others(Bytes bytes) override { runner_.set_others(bytes); }
  [[nodiscard]] const MemoryStats& stats() const override { return runner_.stats(); }
  [[nodiscard]] MemoryView view() const override { return runner_.view(); }
  [[nodiscard]] Bytes available() const override { return runner_.available(); }
  [[nodiscard]] const CachingAllocator& allocator() const override { return runner_.allocator(); }

 private:
  StepRunner runner_;
};

/// Makes them, and counts in `made` how many. As a real card does, none takes a step from a cache.
inline MakePerformer forwarded_performers(int& made) {
  return [&made](const ProcessWork& work, ProcessSetup setup, std::size_t /*card*/) {
    ++made;
    setup.use_step_cache = false;
    return std::make_unique<ForwardedPerformer>(work, setup);
  };
}

/// The same for the cards of jobs.
inline MakeJobCard forwarded_cards(int& made) {
  return [&made](std::size_t /*card*/, Bytes total, Bytes context) {
    ++made;
    return std::make_unique<PretendedCard>(total, context);
  };
}

}  // namespace vramlab
