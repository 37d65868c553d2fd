// The samples of an epoch that were not trained on yet, in a seeded order that a restart can continue.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/sample.hpp"

namespace vramlab {

/// Where an epoch stands. With it, and the same data set, the order goes on as it would have.
struct EpochPosition {
  std::uint64_t seed = 1;
  std::int64_t epoch = 0;         ///< from 0
  std::size_t position = 0;       ///< samples of the order that were looked at
  std::vector<SampleId> waiting;  ///< those of them that were not trained on yet, oldest first

  friend bool operator==(const EpochPosition&, const EpochPosition&) = default;
};

/// Names a moment of an epoch, for random choices that a restart repeats.
struct EpochStamp {
  std::uint64_t seed = 1;
  std::int64_t epoch = 0;
  std::uint64_t position = 0;
};

/// Hands out the samples of one epoch. The host takes what a composer answered and puts back what failed, so
/// that no composer can lose or double a sample.
class Candidates {
 public:
  /// Epoch `epoch` of a data set of `size` samples, from its beginning; in the data set's order unless
  /// `shuffle` is set.
  Candidates(std::size_t size, std::uint64_t seed, std::int64_t epoch, bool shuffle);

  /// The same from where it stood. Throws InputError if `from` is not of this data set.
  Candidates(std::size_t size, const EpochPosition& from, bool shuffle);

  /// The `count` oldest samples still waiting, or all; looks further into the order as needed. Valid until
  /// the next call.
  std::span<const SampleId> look(std::size_t count);

  /// Samples of the epoch that still wait, looked at or not.
  [[nodiscard]] std::size_t left() const { return left_; }

  /// Throws InternalError, and takes nothing, if one of `batch` does not wait or was not looked at.
  void take(std::span<const SampleId> batch);

  /// Puts samples that were taken in front of all others.
  void put_back(std::span<const SampleId> batch);

  [[nodiscard]] EpochPosition position() const;
  [[nodiscard]] EpochStamp stamp() const { return {seed_, epoch_, next_}; }

 private:
  enum class State : std::uint8_t { unseen, waiting, taken };
  void order(bool shuffle);
  void drop_taken();

  std::uint64_t seed_;
  std::int64_t epoch_;
  std::vector<SampleId> order_;
  std::vector<State> states_;
  std::size_t next_ = 0;           ///< of `order_`
  std::vector<SampleId> waiting_;  ///< with some that were taken since
  std::size_t taken_ = 0;          ///< so many
  std::size_t left_;
};

}  // namespace vramlab
