// Sizes and times as functions of a workload's variables: sums of products with coefficients.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"

namespace vramlab {

/// Values of all variables of a workload, in its order; at least 0.
using VariableValues = std::vector<std::int64_t>;

/// A product of variables: one power for each, in the order of the variables. All powers 0 = the number 1.
struct Monomial {
  std::vector<std::uint8_t> powers;

  /// The product; empty if it, or a part of it, lies beyond ±2^62.
  [[nodiscard]] std::optional<std::int64_t> value(std::span<const std::int64_t> variables) const;

  /// "batch*seq^2"; "1" for the number 1.
  [[nodiscard]] std::string text(std::span<const std::string> names) const;

  /// Reads such a text; empty if a name is unknown or a power is not 1 to 9.
  static std::optional<Monomial> parse(const std::string& text, std::span<const std::string> names);

  [[nodiscard]] unsigned degree() const;
  friend auto operator<=>(const Monomial&, const Monomial&) = default;
};

/// The largest denominator of a form, and of the sum of its terms.
inline constexpr std::int64_t kMostDenominator = 1'000'000;

/// One term of a form: numerator / denominator times a monomial, given by its number in a list.
struct SizeTerm {
  std::uint32_t monomial = 0;
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;  ///< 1 to kMostDenominator

  friend auto operator<=>(const SizeTerm&, const SizeTerm&) = default;
};

/// A sum of terms; a size that is 0 or less, or no whole number, is rounded up to the next whole one, at
/// least 1 byte.
struct SizeForm {
  std::vector<SizeTerm> terms;
  std::int64_t unit = 1;  ///< it is rounded up to a multiple of this; at least 1
  /// It grows no further than this until a sixteenth of it is more, which it has then; 0 = no such limit. A
  /// reduction of PyTorch is shared by as many blocks as the card holds at once, or by as many as leave each
  /// thread 256 values (aten/src/ATen/native/cuda/Reduce.cuh).
  std::int64_t most = 0;

  /// The value at the monomials' values; empty if it exceeds 2^62.
  [[nodiscard]] std::optional<Bytes> value(std::span<const std::int64_t> monomials) const;

  /// Whether the form gives exactly `size`, without any rounding but that to its unit.
  [[nodiscard]] bool gives(Bytes size, std::span<const std::int64_t> monomials) const;

  /// "75497728 + 81928*batch", "16*batch*px^2 in steps of 262144"; `monomials` are the texts of the
  /// monomials.
  [[nodiscard]] std::string text(std::span<const std::string> monomials) const;

  friend auto operator<=>(const SizeForm&, const SizeForm&) = default;
};

/// How long a step takes: max(rounds · floor, base + Σ slope · monomial). Where the floor is the larger one
/// the host, which launches kernels, is the bottleneck. All in seconds.
struct StepTimeForm {
  struct Slope {
    std::uint32_t monomial = 0;  ///< number in the workload's list
    double seconds = 0;          ///< for each unit of it, at least 0
    friend bool operator==(const Slope&, const Slope&) = default;
  };

  double floor_seconds = 0;
  double base_seconds = 0;
  std::vector<Slope> slopes;
  double least_at_floor = 0;  ///< shortest and longest round that was timed where the host is the bottleneck;
  double most_at_floor = 0;   ///< 0 = none
  std::uint32_t rounds = 0;   ///< number of the monomial that says how often the host goes round; 0 = once

  /// Whether it says anything: a form of noughts is that of steps that were never timed.
  [[nodiscard]] bool known() const { return floor_seconds > 0 || base_seconds > 0 || !slopes.empty(); }

  /// Duration at the monomials' values, to the nearest nanosecond; at most 1,000 s.
  [[nodiscard]] SimTime duration(std::span<const std::int64_t> monomials) const {
    return from_seconds(
        std::min(1000.0, std::max(times(monomials) * floor_seconds, compute_seconds(monomials))));
  }

  /// Whether the host may be the bottleneck there: it has been for as long as the card takes.
  [[nodiscard]] bool at_floor(std::span<const std::int64_t> monomials) const {
    return floor_seconds > 0 &&
           compute_seconds(monomials) <= times(monomials) * std::max(floor_seconds, most_at_floor);
  }

  /// How often the host goes round; at least once.
  [[nodiscard]] double times(std::span<const std::int64_t> monomials) const {
    return rounds == 0 ? 1.0 : static_cast<double>(std::max<std::int64_t>(monomials[rounds], 1));
  }

  [[nodiscard]] double compute_seconds(std::span<const std::int64_t> monomials) const {
    double compute = base_seconds;
    for (const Slope& slope : slopes) {
      compute += slope.seconds * static_cast<double>(monomials[slope.monomial]);
    }
    return compute;
  }

  friend bool operator==(const StepTimeForm&, const StepTimeForm&) = default;
};

}  // namespace vramlab
