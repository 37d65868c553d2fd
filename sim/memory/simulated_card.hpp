// A pretended graphics card: so much memory, and who has how much of it.
#pragma once

#include "sim/core/units.hpp"
#include "sim/memory/driver_times.hpp"

namespace vramlab {

/// Memory that a bare CUDA context takes of an H100, measured with CUDA 13 (R10.4).
inline constexpr Bytes kContextBytes = 552'402'944;

/// The memory of one card, shared by any number of segment sources and by programs outside the simulation.
class SimulatedCard {
 public:
  /// A card of `total` bytes, as cudaMemGetInfo reports it, with one context on it. Throws InputError if the
  /// context does not fit.
  explicit SimulatedCard(Bytes total, Bytes context_bytes = kContextBytes,
                         DriverTimes times = DriverTimes::of_h100());

  [[nodiscard]] Bytes total() const { return total_; }
  /// What nobody holds; cudaMemGetInfo's other figure.
  [[nodiscard]] Bytes free() const { return total_ - context_ - others_ - taken_; }
  /// What the simulated processes hold, contexts aside.
  [[nodiscard]] Bytes taken() const { return taken_; }

  /// What calls of its driver take.
  [[nodiscard]] const DriverTimes& times() const { return times_; }

  /// Takes `size` bytes; false, and nothing taken, if they are not free (R10.2).
  bool take(Bytes size);
  /// Returns bytes that were taken.
  void give(Bytes size);

  /// Sets what programs outside the simulation hold from now on, and returns it: at most what is free.
  Bytes set_others(Bytes bytes);
  [[nodiscard]] Bytes others() const { return others_; }

  /// A further process opens its context, or ends. Opening returns false if the memory is not there.
  bool open_context(Bytes bytes);
  void close_context(Bytes bytes);

 private:
  Bytes total_;
  Bytes context_;
  DriverTimes times_;
  Bytes others_ = 0;
  Bytes taken_ = 0;
};

}  // namespace vramlab
