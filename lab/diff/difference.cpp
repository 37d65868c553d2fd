#include "lab/diff/difference.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "models/recorded_model.hpp"

namespace vramlab {
namespace {

using Shares = std::vector<PeakShare>;

std::vector<GrowthRow> pair_up(const Shares& a, const Shares& b) {
  std::vector<GrowthRow> pairs;
  std::map<std::string, std::size_t> places;
  const auto add = [&](const Shares& shares, Bytes GrowthRow::*bytes, std::uint64_t GrowthRow::*count) {
    for (const PeakShare& share : shares) {
      const auto [place, is_new] = places.try_emplace(share.name, pairs.size());
      if (is_new) pairs.push_back({.name = share.name});
      pairs[place->second].*bytes = share.bytes;
      pairs[place->second].*count = share.blocks;
    }
  };
  add(a, &GrowthRow::a, &GrowthRow::count_a);
  add(b, &GrowthRow::b, &GrowthRow::count_b);
  return pairs;
}

void sort_by_change(std::vector<GrowthRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const GrowthRow& x, const GrowthRow& y) {
    return std::abs(x.growth()) > std::abs(y.growth());
  });
}

}  // namespace

void GrowthRow::add(const GrowthRow& row) {
  a += row.a;
  b += row.b;
  count_a += row.count_a;
  count_b += row.count_b;
}

std::vector<PeakDifference> compare_peaks(const TorchSnapshot& a, const TorchSnapshot& b,
                                          const Grouping& grouping) {
  std::set<int> devices;
  for (const TorchSnapshot* snapshot : {&a, &b}) {
    for (const int device : devices_of(*snapshot)) devices.insert(device);
  }
  std::vector<PeakDifference> differences;
  for (const int device : devices) {
    PeakDifference difference;
    difference.device = device;
    difference.a = attribute_peak(a, device, grouping);
    difference.b = attribute_peak(b, device, grouping);
    difference.by_group = pair_up(difference.a.by_group, difference.b.by_group);
    sort_by_change(difference.by_group);
    difference.by_size_class = pair_up(difference.a.by_size_class, difference.b.by_size_class);
    differences.push_back(std::move(difference));
  }
  return differences;
}

namespace {

[[noreturn]] void no_result(const std::string& name) {
  throw InputError(name, "is not a result of vramlab compare --json or vramlab run --json.");
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

namespace {

constexpr const char* kBuilt = "(built: weights, buffers)";
constexpr const char* kMadeOnce = "(made once: optimizer state, workspaces)";
constexpr const char* kGradients = "(gradients)";
constexpr const char* kConstant = "(constant)";
constexpr const char* kByAlgorithm = "(workspaces and others without one form)";
constexpr const char* kStep = "(the step's tensors)";

/// The law of each allocation of a step, in order.
std::vector<std::string> laws_of(const WorkloadModel& model, const Point& point) {
  const auto* recorded = dynamic_cast<const RecordedModel*>(&model);
  if (recorded == nullptr) return {};
  const RecordedSpec& spec = recorded->spec();
  std::vector<std::string> variables;
  for (const RecordedVariable& variable : spec.variables) variables.push_back(variable.name);
  std::vector<std::string> products;
  for (const Monomial& monomial : spec.monomials) products.push_back(monomial.text(variables));
  const auto law = [&](const RecordedTensor& tensor) -> std::string {
    if (tensor.kept >= 0) return kGradients;
    if (tensor.size < 0) return kByAlgorithm;
    const SizeForm& form = spec.forms[static_cast<std::size_t>(tensor.size)];
    const bool constant = std::all_of(form.terms.begin(), form.terms.end(),
                                      [](const SizeTerm& term) { return term.monomial == 0; });
    return constant ? kConstant : form.text(products);
  };
  std::vector<std::string> laws;
  for (const std::uint32_t tensor : recorded->step_tensors(recorded->with_items(point))) {
    laws.push_back(law(spec.tensors[tensor]));
  }
  return laws;
}

struct Holding {
  Bytes bytes = 0;
  std::uint64_t blocks = 0;
};
using Holdings = std::map<std::string, Holding>;

/// Performs a model's programs without an allocator and keeps count by law.
class Count {
 public:
  Count(const WorkloadModel& model, const Point& point) {
    const StepProgram step = model.step(point);
    const std::vector<std::string> laws = laws_of(model, point);
    perform(model.build(), {}, kBuilt);
    perform(step, laws, kStep);
    most_ = 0;  // the first step makes what stays, the second is settled
    allocated.clear();
    perform(step, laws, kStep);
  }

  Holdings at_peak;
  Holdings allocated;

 private:
  struct Tensor {
    Bytes size = 0;
    std::string law;
  };

  void perform(const StepProgram& program, const std::vector<std::string>& laws, const char* otherwise) {
    if (slots_.size() < program.slots) slots_.resize(program.slots);
    std::size_t number = 0;
    for (const MemoryOp& op : program.ops) {
      if (op.kind == MemoryOpKind::free) {
        release(op.slot);
      } else if (op.kind == MemoryOpKind::ensure) {
        if (!slots_[op.slot]) take(op.slot, op.size, kMadeOnce);
      } else {
        const bool kept = op.slot < program.persistent_slots && otherwise == kStep;
        const std::string law = number < laws.size() ? laws[number] : kept ? kGradients : otherwise;
        ++number;
        take(op.slot, op.size, law);
      }
    }
  }

  void take(std::uint32_t slot, Bytes size, const std::string& law) {
    slots_[slot] = Tensor{size, law};
    for (Holdings* holdings : {&live_, &allocated}) {
      Holding& holding = (*holdings)[law];
      holding.bytes += size;
      ++holding.blocks;
    }
    live_bytes_ += size;
    if (live_bytes_ > most_) {
      most_ = live_bytes_;
      at_peak = live_;
    }
  }

  void release(std::uint32_t slot) {
    if (!slots_[slot]) return;
    Holding& holding = live_[slots_[slot]->law];
    holding.bytes -= slots_[slot]->size;
    --holding.blocks;
    live_bytes_ -= slots_[slot]->size;
    slots_[slot].reset();
  }

  std::vector<std::optional<Tensor>> slots_;
  Holdings live_;
  Bytes live_bytes_ = 0;
  Bytes most_ = 0;
};

Shares shares_of(const Holdings& holdings) {
  Shares shares;
  for (const auto& [law, holding] : holdings) {
    shares.push_back({.name = law, .bytes = holding.bytes, .blocks = holding.blocks});
  }
  return shares;
}

// Laws by name before they are sorted by their change: equal changes stay in that order.
std::vector<GrowthRow> differences(const Holdings& a, const Holdings& b) {
  std::vector<GrowthRow> rows = pair_up(shares_of(a), shares_of(b));
  std::erase_if(rows, [](const GrowthRow& row) { return row.count_a + row.count_b == 0; });
  std::sort(rows.begin(), rows.end(), [](const GrowthRow& x, const GrowthRow& y) { return x.name < y.name; });
  sort_by_change(rows);
  return rows;
}

GrowthRow sum_of(const std::vector<GrowthRow>& rows) {
  GrowthRow sum{.name = "total"};
  for (const GrowthRow& row : rows) sum.add(row);
  return sum;
}

}  // namespace

ModelDifference compare_models(const WorkloadModel& a, const Point& at_a, const WorkloadModel& b,
                               const Point& at_b) {
  const Count count_a(a, at_a);
  const Count count_b(b, at_b);
  ModelDifference difference;
  difference.peak = differences(count_a.at_peak, count_b.at_peak);
  difference.step = differences(count_a.allocated, count_b.allocated);
  difference.peak_total = sum_of(difference.peak);
  difference.step_total = sum_of(difference.step);
  return difference;
}

}  // namespace vramlab
