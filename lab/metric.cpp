#include "lab/metric.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace vramlab {

std::string_view better_name(Better better) {
  constexpr std::array kNames{"", "more", "less"};
  static_assert(kNames.size() == static_cast<std::size_t>(Better::less) + 1);
  return kNames[static_cast<std::size_t>(better)];
}

ValueRange MetricDescription::values() const {
  if (range) return *range;
  return unit == "share" ? ValueRange{0, 1} : ValueRange{.low = 0};
}

std::vector<std::string> names_of(const MetricTable& table) {
  std::vector<std::string> names;
  for (const MetricDescription& metric : table) names.push_back(metric.name);
  return names;
}

std::optional<double> find_metric(const std::vector<Metric>& metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? std::nullopt : std::optional{found->value};
}

double Figures::operator[](std::string_view name) const {
  return find_metric(*metrics_, name).value_or(std::nan(""));
}

std::string fixed_text(double value, int digits) {
  return std::isnan(value) ? kNoFigure : fmt::format("{:.{}f}", value, digits);
}

std::string percent_text(double share) {
  return std::isnan(share) ? kNoFigure : fmt::format("{:.1f} %", 100 * share);
}

Json number_json(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (std::isnan(value)) return nullptr;
  if (value == std::floor(value) && std::abs(value) < kExact) return static_cast<std::int64_t>(value);
  return value;
}

Json figures_json(const std::vector<Metric>& figures) {
  Json json = Json::object();
  for (const Metric& figure : figures) json[figure.name] = number_json(figure.value);
  return json;
}

}  // namespace vramlab
