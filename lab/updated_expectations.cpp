#include "lab/updated_expectations.hpp"

#include <cmath>

#include "lab/json_place.hpp"
#include "lab/json_text.hpp"
#include "lab/result_json.hpp"

namespace vramlab {
namespace {

// A value that was true or false stays one, if it can.
std::string written(double value, const std::string& old) {
  if ((old == "true" || old == "false") && (value == 0 || value == 1)) return value != 0 ? "true" : "false";
  return number_json(value).dump();
}

}  // namespace

UpdatedText updated_expectations(const std::string& text, const std::vector<Expectation>& expectations,
                                 const std::vector<CheckedExpectation>& checked) {
  UpdatedText updated{text, {}};
  for (std::size_t i = 0; i < expectations.size(); ++i) {
    const Expectation& expected = expectations[i];
    const CheckedExpectation& found = checked[i];
    const bool broken_bound = (expected.min && !(found.value >= *expected.min)) ||
                              (expected.max && !(found.value <= *expected.max));
    if (found.ok || !expected.equals || broken_bound || !std::isfinite(found.value) || found.seeds > 1) {
      continue;
    }
    const auto place = json_place(updated.text, {"expect", std::to_string(i), "equals"});
    if (!place) continue;
    const std::string old = updated.text.substr(place->begin, place->end - place->begin);
    const std::string now = written(found.value, old);
    updated.text.replace(place->begin, place->end - place->begin, now);
    updated.changes.push_back(found.policy + " " + found.metric + ": " + old + " -> " + now);
  }
  return updated;
}

}  // namespace vramlab
