// Gradient accumulation: how many micro-batches make a step of the optimizer (P2.5).
#pragma once

#include <cstdint>

namespace vramlab {

/// How an effective batch is put together.
struct AccumulationRule {
  enum class Kind : std::uint8_t {
    exact,    ///< every effective batch has exactly the target's samples; the loss is divided by their count
    adaptive  ///< the original: a number of micro-batches that follows memory use, so that the effective
              ///< batch drifts; the loss is the mean over a micro-batch, divided by their number
  };
  Kind kind = Kind::exact;
  std::int64_t batch_size = 16;  ///< of a micro-batch, which the adaptive kind starts from
};

/// Counts the micro-batches of one step after another.
class Accumulation {
 public:
  static constexpr std::int64_t kMostMicroSteps = 8;

  /// `target`: samples of an effective batch, at least 1.
  Accumulation(AccumulationRule rule, std::int64_t target);

  /// Samples that may still go into this effective batch; at least 1.
  [[nodiscard]] std::int64_t room() const;

  /// Counts a micro-batch of `samples` whose peak took `usage` of the memory. True if the optimizer steps
  /// after it.
  bool add(std::int64_t samples, double usage);

  /// The epoch is over: the optimizer steps with what is there.
  void close();

  [[nodiscard]] std::int64_t samples() const { return samples_; }          ///< in this effective batch so far
  [[nodiscard]] std::int64_t micro_steps() const { return micro_steps_; }  ///< that the next step will have
  [[nodiscard]] std::int64_t done() const { return done_; }                ///< of them so far

  /// Goes on in the middle of an effective batch.
  void restore(std::int64_t samples, std::int64_t done, std::int64_t micro_steps);

 private:
  AccumulationRule rule_;
  std::int64_t target_;
  std::int64_t micro_steps_;
  std::int64_t samples_ = 0;
  std::int64_t done_ = 0;
};

}  // namespace vramlab
