// A pretended graphics card, and the segments that one process has of it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/segments/driver.hpp"
#include "sim/memory/segments/segment_source.hpp"

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

/// The segment source of one simulated process, with the memory accounting, addresses and times of the CUDA
/// driver. Several may share a card.
class SimSegments : public SegmentSource {
 public:
  /// The card must outlive the source.
  explicit SimSegments(SimulatedCard& card,
                       DriverAddresses addresses = DriverAddresses::of_training_process());
  SimSegments(const SimSegments&) = delete;
  SimSegments& operator=(const SimSegments&) = delete;
  /// Gives everything back to the card.
  ~SimSegments() override;

  /// Takes whole physical pages of 2 MiB (R10.1); succeeds iff the card has them free (R10.2).
  std::optional<Address> reserve(Bytes size) override;
  void release(Address base) override;
  Address reserve_range(Bytes size, Bytes page) override;
  void release_range(Address base) override;
  bool map(Address address, Bytes size) override;
  void unmap(Address address, Bytes size) override;
  [[nodiscard]] Bytes device_free() const override { return card_.free(); }
  [[nodiscard]] Bytes device_total() const override { return card_.total(); }

  /// Time spent in driver calls since the source was made (R10.6). `restore` does not turn it back.
  [[nodiscard]] SimTime driver_time() const { return driver_time_; }

  /// What this process holds, and where.
  struct State {
    struct Range {
      Bytes page = 0;
      Bytes mapped = 0;
    };
    DriverAddresses addresses;
    std::map<Address, Bytes> segments;
    std::map<Address, Range> ranges;
    Bytes taken = 0;  ///< of the card
  };
  [[nodiscard]] State save() const { return state_; }
  /// Puts a saved state back and corrects what the card counts for this process. Throws InternalError if the
  /// card has too little left for it.
  void restore(const State& state);

  /// Appends everything of this source that can influence later behaviour. The card's free memory, which
  /// other processes share, is not part of it.
  void append_canonical_state(std::vector<std::uint64_t>& out) const;

 private:
  State::Range& range_of(Address address);

  SimulatedCard& card_;
  SimTime driver_time_{0};
  State state_;
};

}  // namespace vramlab
