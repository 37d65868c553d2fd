#include "fit/size_pieces.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace vramlab {
namespace {

constexpr Bytes kPadding = 512;
constexpr std::size_t kLeastSamples = 3;
constexpr std::size_t kMostSamples = 64;

bool is_near(const SizeForm& form, const SizeSample& sample) {
  const auto size = form.value(sample.monomials);
  if (!size) return false;
  return std::max(*size, sample.size) - std::min(*size, sample.size) < kPadding;
}

// The piece with most of the samples in `left`; the first of equals.
SizePiece largest_piece(const std::vector<SizeSample>& samples, const std::vector<std::size_t>& left,
                        std::span<const std::uint32_t> candidates) {
  SizePiece best;
  const auto consider = [&](const SizeForm& form) {
    SizePiece piece{form, {}};
    for (const std::size_t sample : left) {
      if (is_near(form, samples[sample])) piece.samples.push_back(sample);
    }
    if (piece.samples.size() > best.samples.size()) best = std::move(piece);
  };
  for (const std::uint32_t candidate : candidates) {
    const std::array<std::uint32_t, 2> terms{0, candidate};
    const std::span<const std::uint32_t> offered(terms.data(), candidate == 0 ? 1 : 2);
    for (std::size_t a = 0; a < left.size(); ++a) {
      for (std::size_t b = a + 1; b < left.size(); ++b) {
        for (std::size_t c = b + 1; c < left.size(); ++c) {
          const auto form = find_exact_form({samples[left[a]], samples[left[b]], samples[left[c]]}, offered);
          if (form) consider(*form);
        }
      }
    }
  }
  return best;
}

}  // namespace

std::vector<SizePiece> find_pieces(const std::vector<SizeSample>& samples,
                                   std::span<const std::uint32_t> candidates) {
  std::vector<std::size_t> left(std::min(samples.size(), kMostSamples));
  std::iota(left.begin(), left.end(), 0);
  std::vector<SizePiece> pieces;
  while (left.size() >= kLeastSamples) {
    SizePiece piece = largest_piece(samples, left, candidates);
    if (piece.samples.size() < kLeastSamples) break;
    std::erase_if(left, [&](std::size_t sample) {
      return std::binary_search(piece.samples.begin(), piece.samples.end(), sample);
    });
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace vramlab
