#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#define EIGEN_DONT_VECTORIZE  // as in policies/predictors/memory_law.hpp
#include <Eigen/Dense>

#include "fit/size_laws.hpp"

namespace vramlab {
namespace {

__extension__ using Wide = __int128;
constexpr std::int64_t kLargestDenominator = 64;
constexpr std::size_t kMostTriples = 18;   // candidates that take part in forms of three terms
constexpr std::ptrdiff_t kMostRows = 256;  // samples that a system is solved from; all are checked
constexpr double kNearlyWhole = 1e-3;

// A positive fraction in lowest terms, if its denominator is small.
std::optional<SizeTerm> term_of(std::uint32_t monomial, Wide numerator, Wide denominator) {
  if (denominator == 0) return std::nullopt;
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  if (numerator <= 0 || numerator / denominator > (Wide{1} << 60)) return std::nullopt;
  Wide a = numerator;
  Wide b = denominator;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  if (denominator / a > kLargestDenominator) return std::nullopt;
  return SizeTerm{monomial, static_cast<std::int64_t>(numerator / a),
                  static_cast<std::int64_t>(denominator / a)};
}

class Search {
 public:
  Search(const std::vector<SizeSample>& samples, std::span<const std::uint32_t> candidates)
      : samples_(samples), candidates_(candidates) {}

  std::optional<SizeForm> run() {
    if (samples_.size() < 2) return std::nullopt;
    for (const std::uint32_t m : candidates_) {
      if (auto form = one(m)) return form;
    }
    if (auto form = pairs()) return form;
    if (auto form = triples()) return form;
    if (samples_.size() > candidates_.size()) return solve({candidates_.begin(), candidates_.end()});
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::int64_t value(std::size_t sample, std::uint32_t m) const {
    return samples_[sample].monomials[m];
  }

  // The form, if it gives every sample.
  [[nodiscard]] std::optional<SizeForm> checked(SizeForm form) const {
    const bool right = std::all_of(samples_.begin(), samples_.end(), [&](const SizeSample& sample) {
      return form.gives(sample.size, sample.monomials);
    });
    return right ? std::optional(std::move(form)) : std::nullopt;
  }

  [[nodiscard]] std::optional<SizeForm> one(std::uint32_t m) const {
    const auto term = term_of(m, static_cast<Wide>(samples_[0].size), value(0, m));
    if (!term) return std::nullopt;
    return checked({{*term}});
  }

  // Pairs of candidates, those with likely members first.
  [[nodiscard]] std::optional<SizeForm> pairs() const {
    if (samples_.size() < 3) return std::nullopt;
    for (std::size_t sum = 1; sum < 2 * candidates_.size(); ++sum) {
      for (std::size_t a = 0; a < (sum + 1) / 2; ++a) {
        const std::size_t b = sum - a;
        if (b >= candidates_.size()) continue;
        if (auto form = two(candidates_[a], candidates_[b])) return form;
      }
    }
    return std::nullopt;
  }

  // Cramer's rule on the first sample and the first one that is independent of it.
  [[nodiscard]] std::optional<SizeForm> two(std::uint32_t a, std::uint32_t b) const {
    for (std::size_t s = 1; s < samples_.size(); ++s) {
      const Wide det =
          static_cast<Wide>(value(0, a)) * value(s, b) - static_cast<Wide>(value(s, a)) * value(0, b);
      if (det == 0) continue;
      const Wide size_0 = static_cast<Wide>(samples_[0].size);
      const Wide size_s = static_cast<Wide>(samples_[s].size);
      const auto term_a = term_of(a, size_0 * value(s, b) - size_s * value(0, b), det);
      const auto term_b = term_of(b, size_s * value(0, a) - size_0 * value(s, a), det);
      if (!term_a || !term_b) return std::nullopt;
      return checked({{*term_a, *term_b}});
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<SizeForm> triples() const {
    if (samples_.size() < 4) return std::nullopt;
    const std::size_t count = std::min(candidates_.size(), kMostTriples);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a + 1; b < count; ++b) {
        for (std::size_t c = b + 1; c < count; ++c) {
          if (auto form = solve({candidates_[a], candidates_[b], candidates_[c]})) return form;
        }
      }
    }
    return std::nullopt;
  }

  // Least squares; its solution counts only if rounding it gives every sample exactly.
  [[nodiscard]] std::optional<SizeForm> solve(const std::vector<std::uint32_t>& terms) const {
    const auto rows =
        std::min(static_cast<Eigen::Index>(samples_.size()), static_cast<Eigen::Index>(kMostRows));
    const auto columns = static_cast<Eigen::Index>(terms.size());
    Eigen::MatrixXd matrix(rows, columns);
    Eigen::VectorXd sizes(rows);
    for (Eigen::Index r = 0; r < rows; ++r) {
      // rows spread over all samples, which are in the order of shapes
      const auto sample = static_cast<std::size_t>(r) * samples_.size() / static_cast<std::size_t>(rows);
      for (Eigen::Index c = 0; c < columns; ++c) {
        matrix(r, c) = static_cast<double>(value(sample, terms[static_cast<std::size_t>(c)]));
      }
      sizes(r) = static_cast<double>(samples_[sample].size);
    }
    const Eigen::VectorXd scale = matrix.colwise().norm().cwiseMax(1.0).transpose();
    const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(matrix * scale.cwiseInverse().asDiagonal());
    if (qr.rank() < columns) return std::nullopt;
    const Eigen::VectorXd solution = qr.solve(sizes).cwiseQuotient(scale);
    SizeForm form;
    for (Eigen::Index c = 0; c < columns; ++c) {
      const auto term = rounded(terms[static_cast<std::size_t>(c)], solution(c));
      if (!term) return std::nullopt;
      if (term->numerator != 0) form.terms.push_back(*term);
    }
    return checked(std::move(form));
  }

  static std::optional<SizeTerm> rounded(std::uint32_t monomial, double value) {
    for (std::int64_t denominator = 1; denominator <= kLargestDenominator; denominator *= 2) {
      const double scaled = value * static_cast<double>(denominator);
      if (scaled < -kNearlyWhole || scaled > 1e15) return std::nullopt;
      if (std::abs(scaled - std::round(scaled)) > kNearlyWhole * std::max(1.0, scaled * 1e-6)) continue;
      return SizeTerm{monomial, std::llround(scaled), denominator};
    }
    return std::nullopt;
  }

  const std::vector<SizeSample>& samples_;
  std::span<const std::uint32_t> candidates_;
};

}  // namespace

std::optional<SizeForm> find_exact_form(std::vector<SizeSample> samples,
                                        std::span<const std::uint32_t> candidates) {
  std::sort(samples.begin(), samples.end());
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i].monomials == samples[i - 1].monomials) return std::nullopt;  // two sizes at one place
  }
  return Search(samples, candidates).run();
}

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
