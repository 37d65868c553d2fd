// Advice on a program and on the same step done in smaller parts.
#include <algorithm>
#include <map>

#include "lab/advise/advise.hpp"
#include "lab/advise/front.hpp"

namespace vramlab {
namespace {

/// Where the units of one variant are among those of all.
std::vector<std::size_t> places_of_units(const Advice& variant, Advice& all) {
  std::vector<std::size_t> places;
  for (const UnitFigures& unit : variant.units) {
    const std::string& name = variant.places[unit.unit.place];
    const auto same = std::ranges::find_if(all.units, [&](const UnitFigures& one) {
      return one.unit.number == unit.unit.number && all.places[one.unit.place] == name;
    });
    places.push_back(static_cast<std::size_t>(same - all.units.begin()));
    if (same != all.units.end()) continue;
    all.units.push_back(unit);
    const auto place = std::ranges::find(all.places, name);
    all.units.back().unit.place = static_cast<std::uint32_t>(place - all.places.begin());
    if (place == all.places.end()) all.places.push_back(name);
  }
  return places;
}

void take_points(Advice& advice, const ProgramVariant& variant, Advice& all,
                 std::vector<AdvicePoint>& points) {
  const std::vector<std::size_t> places = places_of_units(advice, all);
  for (AdvicePoint& point : advice.front) {
    for (auto* units : {&point.recomputed, &point.offloaded}) {
      for (std::size_t& unit : *units) unit = places[unit];
    }
    point.part = variant.part;
    point.time_ratio *= variant.time_ratio;
    point.least_ratio *= variant.time_ratio;
    points.push_back(std::move(point));
  }
}

}  // namespace

Advice advise(const std::vector<ProgramVariant>& variants, const AdviceQuestion& question) {
  Advice all = advise(variants.front().program, question);
  if (variants.size() == 1 || (question.usable() && all.front.front().fits.value_or(false))) return all;
  std::vector<AdvicePoint> points = std::move(all.front);
  for (std::size_t i = 1; i < variants.size(); ++i) {
    AdviceQuestion of_variant = question;
    of_variant.step_seconds = variants[i].step_seconds;
    Advice advice = advise(variants[i].program, of_variant);
    take_points(advice, variants[i], all, points);
  }
  all.front.clear();
  for (const std::size_t i : front_of(points)) all.front.push_back(points[i]);
  all.best = first_fit(all.front);
  return all;
}

}  // namespace vramlab
