#include "models/forms.hpp"

#include <algorithm>
#include <numeric>

namespace vramlab {
namespace {

__extension__ using Wide = __int128;
constexpr std::int64_t kMost = std::int64_t{1} << 62;
constexpr std::int64_t kValuesBeyondMost = 16;  // values of a thread at most, next to those at least: 256, 16

Wide rounded_up(Wide value, Wide unit) { return (value + unit - 1) / unit; }

// Sum of all terms as a fraction; empty if it leaves what 128 bits hold with certainty.
struct Fraction {
  Wide numerator = 0;
  std::int64_t denominator = 1;
};

std::optional<Fraction> sum_of(const std::vector<SizeTerm>& terms, std::span<const std::int64_t> monomials) {
  Fraction sum;
  for (const SizeTerm& term : terms) {
    sum.denominator = std::lcm(sum.denominator, term.denominator);
    if (sum.denominator <= 0 || sum.denominator > kMostDenominator) return std::nullopt;
  }
  for (const SizeTerm& term : terms) {
    const Wide product = static_cast<Wide>(term.numerator) * monomials[term.monomial];
    if (product > kMost || product < -static_cast<Wide>(kMost)) return std::nullopt;
    sum.numerator += product * (sum.denominator / term.denominator);
  }
  return sum;
}

}  // namespace

std::optional<std::int64_t> Monomial::value(std::span<const std::int64_t> variables) const {
  Wide product = 1;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    for (unsigned power = 0; power < powers[i]; ++power) {
      product *= variables[i];
      if (product > kMost || product < -static_cast<Wide>(kMost)) return std::nullopt;
    }
  }
  return static_cast<std::int64_t>(product);
}

std::string Monomial::text(std::span<const std::string> names) const {
  std::string text;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    if (powers[i] == 0) continue;
    if (!text.empty()) text += '*';
    text += names[i];
    if (powers[i] > 1) text += '^' + std::to_string(powers[i]);
  }
  return text.empty() ? "1" : text;
}

std::optional<Monomial> Monomial::parse(const std::string& text, std::span<const std::string> names) {
  Monomial monomial{std::vector<std::uint8_t>(names.size(), 0)};
  if (text == "1") return monomial;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find('*', from), text.size());
    std::string factor = text.substr(from, end - from);
    std::uint8_t power = 1;
    if (const std::size_t hat = factor.find('^'); hat != std::string::npos) {
      if (factor.size() != hat + 2 || factor[hat + 1] < '1' || factor[hat + 1] > '9') return std::nullopt;
      power = static_cast<std::uint8_t>(factor[hat + 1] - '0');
      factor.resize(hat);
    }
    const auto found = std::find(names.begin(), names.end(), factor);
    if (found == names.end()) return std::nullopt;
    auto& total = monomial.powers[static_cast<std::size_t>(found - names.begin())];
    total = static_cast<std::uint8_t>(std::min(total + power, 9));
    from = end + 1;
  }
  return monomial;
}

unsigned Monomial::degree() const { return std::accumulate(powers.begin(), powers.end(), 0U); }

std::optional<Bytes> SizeForm::value(std::span<const std::int64_t> monomials) const {
  const auto sum = sum_of(terms, monomials);
  if (!sum) return std::nullopt;
  const Wide whole = std::max<Wide>(rounded_up(sum->numerator, sum->denominator), 1);
  Wide size = rounded_up(whole, unit) * unit;
  if (most > 0 && size > most) {
    size = std::max<Wide>(most, rounded_up(rounded_up(whole, kValuesBeyondMost), unit) * unit);
  }
  if (size > kMost) return std::nullopt;
  return static_cast<Bytes>(size);
}

bool SizeForm::gives(Bytes size, std::span<const std::int64_t> monomials) const {
  if (unit > 1) return value(monomials) == size;
  const auto sum = sum_of(terms, monomials);
  return sum && sum->numerator == static_cast<Wide>(size) * sum->denominator;
}

std::string SizeForm::text(std::span<const std::string> monomials) const {
  std::string text;
  for (const SizeTerm& term : terms) {
    if (!text.empty()) text += " + ";
    text += std::to_string(term.numerator);
    if (term.denominator != 1) text += '/' + std::to_string(term.denominator);
    if (monomials[term.monomial] != "1") text += '*' + monomials[term.monomial];
  }
  if (text.empty()) text = "0";
  if (unit > 1) text += " in steps of " + std::to_string(unit);
  if (most > 0) text += " up to " + std::to_string(most);
  return text;
}

}  // namespace vramlab
