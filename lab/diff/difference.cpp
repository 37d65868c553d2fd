#include "lab/diff/difference.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "core/error.hpp"

namespace vramlab {
namespace {

using Shares = std::vector<PeakShare>;

std::vector<ShareDifference> pair_up(const Shares& a, const Shares& b) {
  std::vector<ShareDifference> pairs;
  std::map<std::string, std::size_t> places;
  const auto pair_of = [&](const PeakShare& share) -> ShareDifference& {
    const auto [place, is_new] = places.try_emplace(share.name, pairs.size());
    if (is_new) pairs.emplace_back().name = share.name;
    return pairs[place->second];
  };
  for (const PeakShare& share : a) pair_of(share).a = share;
  for (const PeakShare& share : b) pair_of(share).b = share;
  return pairs;
}

}  // namespace

std::vector<PeakDifference> compare_peaks(const TorchSnapshot& a, const TorchSnapshot& b) {
  std::set<int> devices;
  for (const TorchSnapshot* snapshot : {&a, &b}) {
    for (const int device : devices_of(*snapshot)) devices.insert(device);
  }
  std::vector<PeakDifference> differences;
  for (const int device : devices) {
    PeakDifference difference;
    difference.device = device;
    difference.a = attribute_peak(a, device);
    difference.b = attribute_peak(b, device);
    difference.by_frame = pair_up(difference.a.by_frame, difference.b.by_frame);
    std::stable_sort(difference.by_frame.begin(), difference.by_frame.end(),
                     [](const ShareDifference& x, const ShareDifference& y) {
                       return std::abs(x.growth()) > std::abs(y.growth());
                     });
    difference.by_size_class = pair_up(difference.a.by_size_class, difference.b.by_size_class);
    differences.push_back(std::move(difference));
  }
  return differences;
}

namespace {

[[noreturn]] void no_result(const std::string& name) {
  throw InputError(name, "is no result of vramlab compare --json or vramlab run --json.");
}

// One object, or a list of them.
std::vector<const Json*> results_in(const Json& file, const std::string& name) {
  std::vector<const Json*> results;
  if (file.is_array()) {
    for (const Json& result : file) results.push_back(&result);
  } else {
    results.push_back(&file);
  }
  for (const Json* result : results) {
    const bool whole = result->is_object() && result->contains("scenario") &&
                       (*result)["scenario"].is_string() && result->contains("policies") &&
                       (*result)["policies"].is_array();
    if (!whole) no_result(name);
    for (const Json& policy : (*result)["policies"]) {
      if (!policy.is_object() || !policy.contains("label") || !policy["label"].is_string()) no_result(name);
    }
  }
  if (results.empty()) no_result(name);
  return results;
}

const Json* find(const Json& policies, const std::string& label) {
  const auto found = std::find_if(policies.begin(), policies.end(),
                                  [&](const Json& policy) { return policy["label"] == label; });
  return found == policies.end() ? nullptr : &*found;
}

std::optional<double> number(const Json* policy, const char* group, const std::string& name) {
  if (policy == nullptr || !policy->contains(group)) return {};
  const Json& values = (*policy)[group];
  const auto value = values.is_object() ? values.find(name) : values.end();
  if (value == values.end() || !value->is_number()) return {};
  return value->get<double>();
}

std::vector<ValueDifference> values(const char* group, const Json* a, const Json* b) {
  std::vector<ValueDifference> differences;
  for (const Json* policy : {a, b}) {
    if (policy == nullptr || !policy->contains(group) || !(*policy)[group].is_object()) continue;
    for (const auto& item : (*policy)[group].items()) {
      const std::string& name = item.key();
      const bool known = std::any_of(differences.begin(), differences.end(),
                                     [&](const ValueDifference& other) { return other.name == name; });
      if (!known) differences.push_back({name, number(a, group, name), number(b, group, name)});
    }
  }
  return differences;
}

Json adjustments_of(const Json* policy) {
  if (policy == nullptr) return Json::array();
  const auto found = policy->find("adjustments");
  return found != policy->end() && found->is_array() ? *found : Json::array();
}

PolicyDifference compare(const std::string& label, const Json* a, const Json* b) {
  PolicyDifference difference;
  difference.label = label;
  difference.in_a = a != nullptr;
  difference.in_b = b != nullptr;
  difference.metrics = values("metrics", a, b);
  difference.final_point = values("final", a, b);
  const Json changes_a = adjustments_of(a);
  const Json changes_b = adjustments_of(b);
  difference.adjustments_a = changes_a.size();
  difference.adjustments_b = changes_b.size();
  for (std::size_t i = 0; i < std::max(changes_a.size(), changes_b.size()); ++i) {
    const Json at_a = i < changes_a.size() ? changes_a[i] : Json();
    const Json at_b = i < changes_b.size() ? changes_b[i] : Json();
    if (at_a == at_b) continue;
    difference.first_other_adjustment = i;
    difference.adjustment_a = at_a;
    difference.adjustment_b = at_b;
    break;
  }
  return difference;
}

ResultDifference compare(const Json& a, const Json& b) {
  ResultDifference difference;
  difference.scenario = a["scenario"].get<std::string>();
  for (const Json& policy : a["policies"]) {
    const std::string label = policy["label"].get<std::string>();
    difference.policies.push_back(compare(label, &policy, find(b["policies"], label)));
  }
  for (const Json& policy : b["policies"]) {
    const std::string label = policy["label"].get<std::string>();
    if (find(a["policies"], label) == nullptr)
      difference.policies.push_back(compare(label, nullptr, &policy));
  }
  return difference;
}

}  // namespace

bool PolicyDifference::differs() const {
  const auto differs = [](const ValueDifference& value) { return value.differs(); };
  return !in_a || !in_b || first_other_adjustment || std::any_of(metrics.begin(), metrics.end(), differs) ||
         std::any_of(final_point.begin(), final_point.end(), differs);
}

std::vector<ResultDifference> compare_results(const Json& a, const std::string& name_a, const Json& b,
                                              const std::string& name_b) {
  std::vector<ResultDifference> differences;
  const auto results_b = results_in(b, name_b);
  for (const Json* result : results_in(a, name_a)) {
    const auto other = std::find_if(results_b.begin(), results_b.end(), [&](const Json* candidate) {
      return (*candidate)["scenario"] == (*result)["scenario"];
    });
    if (other != results_b.end()) differences.push_back(compare(*result, **other));
  }
  if (differences.empty()) {
    throw InputError(name_a + ", " + name_b,
                     "have no scenario in common; results of one scenario are compared.");
  }
  return differences;
}

}  // namespace vramlab
