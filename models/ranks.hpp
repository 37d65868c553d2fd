// A program that runs on several cards, one process (rank) each: its models by number of ranks.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/recorded_spec.hpp"

namespace vramlab {

inline constexpr std::uint32_t kMostRanks = 65'536;

/// Which process of a program was recorded.
struct RankPlaceInWorld {
  std::uint32_t world = 1;  ///< number of ranks, up to kMostRanks
  std::uint32_t rank = 0;   ///< counted from 0

  friend auto operator<=>(const RankPlaceInWorld&, const RankPlaceInWorld&) = default;
};

/// What the sizes of a model were with fewer ranks; from both follows what they are with any number.
struct FewerRanks {
  std::uint32_t world = 1;
  std::vector<SizeForm> forms;
  std::vector<std::int32_t> tensors;  ///< by tensor of the model: number of its form here; −1 = the same
  std::vector<Bytes> extras;          ///< by extra of the model
  std::vector<std::int64_t> build;    ///< by entry of the model's `build`; frees as there

  friend bool operator==(const FewerRanks&, const FewerRanks&) = default;
};

/// The model of one recorded rank.
struct RankModel {
  RankPlaceInWorld place;
  RecordedSpec spec;
  std::optional<FewerRanks> fewer;  ///< of ranks of the largest recorded world, if there is another
};

/// A size that is `of_p` with p ranks and `of_q` with q > p ranks, with n ranks, rounded up to whole bytes:
///   equal                    the same
///   of_q < of_p              constant + shared / n; without the constant where that is under 1 % of the
///                            size with q ranks (shares are padded), or below 0
///   of_q > of_p              constant + n · each; as with q ranks where the constant would be below 0
Bytes size_with_ranks(Bytes of_p, Bytes of_q, std::uint32_t p, std::uint32_t q, std::uint32_t n);

/// The models of all recorded ranks.
class RankModels {
 public:
  /// Throws InputError if there is none, two have one place, or a rank is not below its number of ranks.
  explicit RankModels(std::vector<RankModel> models);

  /// Numbers of ranks that were recorded, rising.
  [[nodiscard]] std::vector<std::uint32_t> worlds() const;
  [[nodiscard]] bool was_recorded(std::uint32_t world) const;

  /// The models with `world` ranks, by rank: as recorded, or those of the largest recorded number with the
  /// sizes that follow for `world`. What lies outside the allocator then follows a straight line through the
  /// two largest recorded numbers above 1, and is that of the largest where there is but one. Throws
  /// InputError if `world` is 0, above kMostRanks, or was not recorded and only one number was.
  [[nodiscard]] std::vector<RankModel> at(std::uint32_t world) const;

  [[nodiscard]] const std::vector<RankModel>& all() const { return models_; }

 private:
  [[nodiscard]] Bytes outside(const RankModel& largest, std::uint32_t world) const;

  std::vector<RankModel> models_;  ///< by place
};

}  // namespace vramlab
