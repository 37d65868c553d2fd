#include "sim/runs/faults.hpp"

#include <algorithm>

namespace vramlab {
namespace {

// What a number is drawn for, so that one kind of fault says nothing about another.
enum class Purpose : std::uint64_t { outlier = 1, error, reading };

// The output function of SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

bool drawn(double chance, std::uint64_t seed, Purpose purpose, std::int64_t number) {
  if (chance <= 0) return false;
  const std::uint64_t stream = mixed(seed + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(purpose));
  const std::uint64_t bits = mixed(stream + 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(number));
  return static_cast<double>(bits >> 11) * 0x1p-53 < chance;
}

}  // namespace

Bytes Faults::needed_besides(std::int64_t iteration, bool new_parameters) const {
  return (new_parameters ? search : 0) + (has_outlier(iteration) ? outlier : 0);
}

Bytes Faults::left_behind(std::int64_t iteration, bool new_process) const {
  const bool leaks = iteration >= leak.from && iteration <= leak.to;
  return (leaks ? leak.per_step : 0) + (new_process ? optimizer_state : 0);
}

Bytes Faults::leaked(std::int64_t first, std::int64_t last) const {
  const std::int64_t steps = std::min(leak.to, last) - std::max(leak.from, first) + 1;
  return leak.per_step * static_cast<Bytes>(std::max<std::int64_t>(0, steps));
}

bool Faults::has_outlier(std::int64_t iteration) const {
  return outlier > 0 && drawn(outlier_chance, seed, Purpose::outlier, iteration);
}

bool Faults::has_error(std::int64_t iteration) const {
  return drawn(error_chance, seed, Purpose::error, iteration);
}

bool Faults::reading_is_missing(std::int64_t iteration) const {
  return drawn(missing_readings, seed, Purpose::reading, iteration);
}

}  // namespace vramlab
