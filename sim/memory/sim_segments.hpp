// Segments of a pretended card: the memory accounting, addresses and times of the CUDA driver.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/memory/driver_addresses.hpp"
#include "sim/memory/segment_source.hpp"
#include "sim/memory/simulated_card.hpp"

namespace vramlab {

/// The segment source of one simulated process. Several may share a card.
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
      Bytes size = 0;
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
