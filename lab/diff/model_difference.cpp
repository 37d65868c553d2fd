#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "lab/diff/difference.hpp"
#include "models/recorded_model.hpp"

namespace vramlab {
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
  std::uint64_t count = 0;
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
      ++holding.count;
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
    --holding.count;
    live_bytes_ -= slots_[slot]->size;
    slots_[slot].reset();
  }

  std::vector<std::optional<Tensor>> slots_;
  Holdings live_;
  Bytes live_bytes_ = 0;
  Bytes most_ = 0;
};

std::vector<LawDifference> differences(const Holdings& a, const Holdings& b) {
  std::map<std::string, LawDifference> rows;
  for (const auto& [law, holding] : a) {
    rows[law].a = holding.bytes;
    rows[law].count_a = holding.count;
  }
  for (const auto& [law, holding] : b) {
    rows[law].b = holding.bytes;
    rows[law].count_b = holding.count;
  }
  std::vector<LawDifference> sorted;
  for (auto& [law, row] : rows) {
    row.law = law;
    if (row.count_a + row.count_b > 0) sorted.push_back(row);
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const LawDifference& x, const LawDifference& y) {
    return std::abs(x.growth()) > std::abs(y.growth());
  });
  return sorted;
}

LawDifference sum_of(const std::vector<LawDifference>& rows) {
  LawDifference sum{.law = "total"};
  for (const LawDifference& row : rows) {
    sum.a += row.a;
    sum.b += row.b;
    sum.count_a += row.count_a;
    sum.count_b += row.count_b;
  }
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
