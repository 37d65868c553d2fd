#include "fit/fit_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "fit/item_parameters.hpp"
#include "fit/loops.hpp"
#include "fit/parameters.hpp"
#include "fit/size_laws.hpp"
#include "fit/structure.hpp"
#include "models/recorded_values.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;
constexpr std::int64_t kHowFarBeyond = 8;  // times the largest recorded value of a parameter may be asked for

/// The step that stands for each shape, and the first step of the process.
struct ChosenSteps {
  std::vector<const StepRecord*> settled;  ///< the last visit of each shape, shapes in the order of the first
  const StepRecord* first = nullptr;
  std::size_t first_shape = 0;
  bool first_is_alone =
      false;  ///< it stands for its shape, for want of another, though it frees no gradients
};

bool keeps_something(const RecordedRun& run) {
  return std::any_of(run.steps.begin(), run.steps.end(), [](const StepRecord& step) {
    return std::any_of(step.allocations.begin(), step.allocations.end(),
                       [](const StepAllocation& one) { return one.fate == Fate::kept; });
  });
}

bool is_seen_again(const StepRecord& step, const std::vector<RecordedRun>& runs) {
  for (const RecordedRun& run : runs) {
    for (std::size_t other = 1; other < run.steps.size(); ++other) {
      if (!run.steps[other].mark.oom && run.steps[other].mark.parameters == step.mark.parameters) return true;
    }
  }
  return false;
}

ChosenSteps choose_steps(const std::vector<RecordedRun>& runs, std::vector<std::string>& warnings) {
  ChosenSteps chosen;
  std::vector<std::size_t> visits;
  std::size_t failed = 0;
  std::vector<std::string> seen_once;
  const bool keeps = std::any_of(runs.begin(), runs.end(), keeps_something);
  for (const RecordedRun& run : runs) {
    for (const StepRecord& step : run.steps) {
      if (step.mark.oom) {
        ++failed;
        continue;
      }
      if (chosen.first == nullptr) chosen.first = &step;
      // A first step finds no gradients to free, so that it cannot stand for later ones.
      if (keeps && &step == &run.steps[0]) {
        if (is_seen_again(step, runs)) continue;
        if (chosen.first != &step) {
          seen_once.push_back(step.mark.label);
          continue;
        }
        chosen.first_is_alone = true;
      }
      const auto known = std::find_if(
          chosen.settled.begin(), chosen.settled.end(),
          [&](const StepRecord* other) { return other->mark.parameters == step.mark.parameters; });
      if (known == chosen.settled.end()) {
        chosen.settled.push_back(&step);
        visits.push_back(1);
      } else {
        *known = &step;
        ++visits[static_cast<std::size_t>(known - chosen.settled.begin())];
      }
    }
  }
  if (chosen.first == nullptr) throw InputError("", "no recorded step succeeded; there is nothing to fit.");
  if (chosen.settled.size() > kMostShapes) {
    throw InputError("", "the steps have " + std::to_string(chosen.settled.size()) +
                             " different shapes; at most " + std::to_string(kMostShapes) + " are fitted.");
  }
  if (chosen.first_is_alone) {
    warnings.push_back(
        "the first step of the process (" + chosen.first->mark.label +
        ") is the only one of its shape; where that shape frees old gradients is taken from the "
        "nearest other one. Record every shape twice.");
  }
  for (const std::string& label : seen_once) {
    warnings.push_back("the step " + label +
                       " is the first of its process and the only one of its shape; it is left "
                       "out. Record every shape twice.");
  }
  if (failed > 0) warnings.push_back(std::to_string(failed) + " steps ran out of memory and are left out.");
  if (visits.size() == 1 && visits[0] == 1 && runs[0].steps.size() == 1) {
    throw InputError("",
                     "only one step is recorded. Record every shape twice: what the first step of a process "
                     "keeps for good is told from gradients by the second.");
  }
  for (std::size_t shape = 0; shape < chosen.settled.size(); ++shape) {
    if (chosen.settled[shape]->mark.parameters == chosen.first->mark.parameters) chosen.first_shape = shape;
  }
  return chosen;
}

/// Values of the model's own variables at a recorded shape.
class RoundValues : public SampleValues {
 public:
  RoundValues(const RecordedSpec& spec, std::vector<RecordedConditions> conditions)
      : spec_(spec), conditions_(std::move(conditions)) {}

  [[nodiscard]] std::vector<std::int64_t> at(std::size_t shape, std::int32_t loop,
                                             std::size_t round) const override {
    RecordedValues values(spec_, conditions_[shape]);
    if (loop >= 0)
      values.enter(&spec_.loops[static_cast<std::size_t>(loop)], static_cast<std::int64_t>(round));
    return {values.monomials().begin(), values.monomials().end()};
  }

 private:
  const RecordedSpec& spec_;
  std::vector<RecordedConditions> conditions_;
};

class Fitter {
 public:
  Fitter(const std::vector<RecordedRun>& runs, const std::string& name) : runs_(runs) {
    model_.spec.name = name;
  }

  FittedModel run() {
    std::vector<StepParameters> shape_parameters;  // outlives items_, which refers to it
    for (const RecordedRun& run : runs_) {
      model_.warnings.insert(model_.warnings.end(), run.warnings.begin(), run.warnings.end());
    }
    chosen_ = choose_steps(runs_, model_.warnings);
    for (const StepRecord* step : chosen_.settled) {
      shapes_.push_back(shape_program(*step, false));
      shape_parameters.push_back(step->mark.parameters);
      model_.shape_labels.push_back(step->mark.label);
    }
    if (!shape_parameters[0].lists.empty()) items_.emplace(shape_parameters);
    parameters_ = items_ ? items_->first_parameters(model_.warnings)
                         : fit_parameters(shape_parameters, model_.warnings);
    first_step_ = shape_program(*chosen_.first, true);
    find_loops();
    fill_parameters();
    std::vector<std::vector<std::int64_t>> values;
    for (const VariableValues& shape : parameters_.shapes)
      values.push_back(parameters_.monomial_values(shape));
    union_ = merge_shapes(shapes_, values, first_step_, chosen_.first_shape);
    laws_ = find_size_laws(union_, shapes_, parameters_, RoundValues(model_.spec, conditions()));
    model_.spec.main_product = laws_.main_product;
    fill_sizes();
    fill_program();
    fill_first_step();
    count_residuals();
    warn_of_thresholds();
    warn_of_workspaces();
    check_recorded_spec(model_.spec);
    return std::move(model_);
  }

 private:
  void find_loops() {
    std::vector<LoopCounter> counters;
    if (items_) {
      LoopCounter& counter = counters.emplace_back(LoopCounter{items_->item_count(parameters_), {}});
      for (const VariableValues& shape : parameters_.shapes)
        counter.by_shape.push_back(shape[counter.variable]);
    }
    for (std::uint32_t p = 0; !items_ && p < parameters_.recorded.size(); ++p) {
      LoopCounter& counter = counters.emplace_back(LoopCounter{p, {}});
      for (const VariableValues& shape : parameters_.shapes) counter.by_shape.push_back(shape[p]);
    }
    LoopedPrograms looped =
        take_out_loops(std::move(shapes_), std::move(first_step_), chosen_.first_shape, counters);
    model_.spec.loops = std::move(looped.loops);
    shapes_ = std::move(looped.shapes);
    first_step_ = std::move(looped.first_step);
    if (items_) {
      items_->complete(parameters_, model_.spec.loops, shapes_, model_.warnings);
      return;
    }
    std::vector<std::uint32_t> counts;
    for (const RecordedLoop& loop : model_.spec.loops) counts.push_back(loop.count);
    if (!model_.spec.loops.empty()) {
      parameters_.add_loop_variable({.name = "round", .kind = RecordedVariable::Kind::round});
    }
    warn_of_confusion(parameters_, counts, model_.warnings);
  }

  [[nodiscard]] std::vector<RecordedConditions> conditions() const {
    std::vector<RecordedConditions> result;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      if (items_) {
        result.push_back(items_->conditions(shape));
        continue;
      }
      const auto parameters = static_cast<std::ptrdiff_t>(parameters_.recorded.size());
      const VariableValues& values = parameters_.shapes[shape];
      result.push_back({Point(values.begin(), values.begin() + parameters), {}});
    }
    return result;
  }

  void fill_parameters() {
    RecordedSpec& spec = model_.spec;
    spec.recorded = parameters_.recorded;
    for (const Parameter& recorded : parameters_.recorded) {
      const bool moved = recorded.low != recorded.high;
      spec.parameters.push_back({recorded.name,
                                 moved ? std::min<std::int64_t>(recorded.low, 1) : recorded.low,
                                 moved ? kHowFarBeyond * recorded.high : recorded.high});
    }
    spec.variables = parameters_.variables;
    spec.monomials = parameters_.monomials;
    spec.shapes = parameters_.shapes;
    spec.samples = 0;
    if (items_) {
      spec.fields = items_->fields();
      spec.item_kinds = items_->kinds();
    }
    for (std::uint32_t m = 0; m < spec.monomials.size(); ++m) {
      if (spec.monomials[m].degree() != 1) continue;
      for (std::size_t v = 0; v < spec.variables.size(); ++v) {
        const std::string& name = spec.variables[v].name;
        if (spec.monomials[m].powers[v] == 1 &&
            (name == "batch" || name == "batch_size" || name == "items")) {
          spec.samples = m;
        }
      }
    }
  }

  void fill_sizes() {
    model_.spec.forms = laws_.forms;
    model_.spec.tables = laws_.tables;
    model_.spec.table_scales = laws_.table_scales;
  }

  // A library asks for workspaces around one kernel; their sizes follow the algorithm, not the tensors alone.
  [[nodiscard]] bool is_workspace(std::size_t tensor) const {
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const std::int32_t local = union_.tensors[tensor].in_shape[shape];
      if (local >= 0 && !shapes_[shape].allocations[static_cast<std::size_t>(local)].brief) return false;
    }
    if (laws_.size[tensor] < 0) return true;
    const SizeForm& form = laws_.forms[static_cast<std::size_t>(laws_.size[tensor])];
    return form.terms.size() > 1 && form.terms[0].monomial == 0;
  }

  [[nodiscard]] std::int32_t rank_of(std::size_t tensor) const {
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const std::int32_t local = union_.tensors[tensor].in_shape[shape];
      if (local >= 0) return shapes_[shape].allocations[static_cast<std::size_t>(local)].kept;
    }
    return -1;
  }

  // A first step finds no gradients: its shape frees them where the shape with the nearest product does.
  void add_frees_of_first_shape() {
    const std::size_t alone = chosen_.first_shape;
    const auto product = [&](std::size_t shape) {
      const auto value = parameters_.monomials[laws_.main_product].value(parameters_.shapes[shape]);
      return std::log(static_cast<double>(std::max<std::int64_t>(value.value_or(1), 1)));
    };
    std::size_t nearest = alone == 0 ? 1 : 0;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      if (shape == alone) continue;
      if (std::abs(product(shape) - product(alone)) < std::abs(product(nearest) - product(alone)))
        nearest = shape;
    }
    for (UnionOp& op : union_.ops) {
      if (op.op.kind == Kind::free_kept && (op.shapes >> nearest & 1) != 0) op.shapes |= ShapeSet{1} << alone;
    }
  }

  void fill_program() {
    RecordedSpec& spec = model_.spec;
    if (chosen_.first_is_alone && shapes_.size() > 1) add_frees_of_first_shape();
    StructureGroups groups(parameters_, laws_.main_product);
    for (std::size_t t = 0; t < union_.tensors.size(); ++t) {
      const std::uint32_t group = groups.number_of(union_.tensors[t].shapes(), groups.all());
      spec.tensors.push_back({laws_.size[t], group, rank_of(t), is_workspace(t)});
      if (spec.tensors.back().kept >= 0) {
        spec.kept = std::max(spec.kept, static_cast<std::uint32_t>(spec.tensors.back().kept) + 1);
      }
    }
    for (const UnionOp& op : union_.ops) {
      RecordedOp recorded = op.op;
      switch (recorded.kind) {
        case Kind::allocate:
          recorded.group = spec.tensors[recorded.what].group;
          break;
        case Kind::free:  // one of several places where a tensor may end
          recorded.group = groups.number_of(op.shapes, union_.tensors[recorded.what].shapes());
          break;
        case Kind::free_kept:
          recorded.group = groups.nearest_number_of(op.shapes, groups.all());
          break;
        case Kind::ensure:
        case Kind::loop:
        case Kind::end:
          recorded.group = 0;
          break;
      }
      spec.program.push_back(std::move(recorded));
    }
    spec.groups = groups.groups();
  }

  // Where the program changes between two recorded shapes, the place is a guess.
  void warn_of_thresholds() {
    const RecordedSpec& spec = model_.spec;
    std::vector<std::string> names;
    for (const RecordedVariable& variable : spec.variables) names.push_back(variable.name);
    for (std::uint32_t number = 0; number < spec.groups.size(); ++number) {
      const RecordedGroup& group = spec.groups[number];
      if (group.monomial < 0) continue;
      const auto count = std::count_if(spec.tensors.begin(), spec.tensors.end(),
                                       [&](const RecordedTensor& tensor) { return tensor.group == number; });
      std::int64_t low = 0;
      std::int64_t high = std::numeric_limits<std::int64_t>::max();
      const Monomial& monomial = spec.monomials[static_cast<std::size_t>(group.monomial)];
      for (const VariableValues& shape : spec.shapes) {
        const std::int64_t value = monomial.value(shape).value_or(0);
        if (value < group.from) low = std::max(low, value);
        if (value >= group.from) high = std::min(high, value);
      }
      if (count < 2 || high - low < 2) continue;
      const std::string product = monomial.text(names);
      model_.warnings.push_back(std::to_string(count) + " allocations " + (group.below ? "end" : "begin") +
                                " somewhere between " + product + " = " + std::to_string(low) + " and " +
                                std::to_string(high) + "; " + std::to_string(group.from) +
                                " is assumed. A step recorded there would show it.");
    }
  }

  // Sizes without a form follow the algorithms of a library, which change with the shape.
  void warn_of_workspaces() {
    const FitResiduals& r = model_.residuals;
    const Bytes inexact = r.interpolated_bytes + r.single_bytes;
    if (50 * inexact < r.bytes || shapes_.size() < 2) return;
    std::vector<std::string> names;
    for (const RecordedVariable& variable : model_.spec.variables) names.push_back(variable.name);
    const Monomial& monomial = model_.spec.monomials[laws_.main_product];
    std::int64_t low = std::numeric_limits<std::int64_t>::max();
    std::int64_t high = 0;
    for (const VariableValues& shape : model_.spec.shapes) {
      low = std::min(low, monomial.value(shape).value_or(0));
      high = std::max(high, monomial.value(shape).value_or(0));
    }
    model_.warnings.push_back(std::to_string(100 * inexact / r.bytes) +
                              " % of the bytes follow no form (workspaces); between recorded shapes they are "
                              "interpolated along " +
                              monomial.text(names) + ", beyond " + std::to_string(low) + " and " +
                              std::to_string(high) +
                              " they are a guess. Record the smallest and largest steps "
                              "you care about.");
  }

  void fill_first_step() {
    for (const StepAllocation& allocation : chosen_.first->allocations) {
      if (allocation.fate == Fate::forever) model_.spec.extras.push_back(allocation.size);
    }
    model_.spec.build = runs_[0].build;
    std::size_t late = 0;
    for (const StepRecord* step : chosen_.settled) {
      if (step == chosen_.first) continue;
      late += static_cast<std::size_t>(std::count_if(step->allocations.begin(), step->allocations.end(),
                                                     [](const auto& a) { return a.fate == Fate::forever; }));
    }
    if (late > 0) {
      model_.warnings.push_back(std::to_string(late) +
                                " allocations of later steps are never freed and left out.");
    }
    std::size_t foreign = 0;
    for (const StepRecord* step : chosen_.settled) foreign += step->foreign_frees;
    if (foreign > 0) {
      model_.warnings.push_back(std::to_string(foreign) +
                                " blocks made before the first step are freed by steps; "
                                "the model frees them when building ends.");
    }
  }

  void count_residuals() {
    FitResiduals& r = model_.residuals;
    std::map<std::vector<Bytes>, InexactFamily> families;
    for (std::size_t t = 0; t < union_.tensors.size(); ++t) {
      Bytes bytes = 0;
      std::vector<Bytes> sizes(shapes_.size(), 0);
      for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
        const std::int32_t local = union_.tensors[t].in_shape[shape];
        if (local < 0) continue;
        for (const Bytes size : shapes_[shape].allocations[static_cast<std::size_t>(local)].sizes)
          sizes[shape] += size;
        bytes += sizes[shape];
      }
      ++r.tensors;
      r.bytes += bytes;
      switch (laws_.knowledge[t]) {
        case SizeKnowledge::exact:
          ++r.exact;
          r.exact_bytes += bytes;
          continue;
        case SizeKnowledge::borrowed:
          ++r.borrowed;
          r.borrowed_bytes += bytes;
          continue;
        case SizeKnowledge::interpolated:
          ++r.interpolated;
          r.interpolated_bytes += bytes;
          break;
        case SizeKnowledge::single:
          ++r.single;
          r.single_bytes += bytes;
          break;
      }
      InexactFamily& family = families[sizes];
      family.sizes = sizes;
      ++family.tensors;
    }
    for (auto& [sizes, family] : families) model_.inexact.push_back(std::move(family));
    const auto weight = [](const InexactFamily& family) {
      Bytes total = 0;
      for (const Bytes size : family.sizes) total += size;
      return total * family.tensors;
    };
    std::stable_sort(model_.inexact.begin(), model_.inexact.end(),
                     [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
  }

  const std::vector<RecordedRun>& runs_;
  FittedModel model_;
  ChosenSteps chosen_;
  std::vector<ShapeProgram> shapes_;
  std::optional<RecordedItems> items_;
  ShapeProgram first_step_;
  FitParameters parameters_;
  UnionProgram union_;
  SizeLaws laws_;
};

}  // namespace

FittedModel fit_model(const std::vector<RecordedRun>& runs, const std::string& name) {
  if (runs.empty()) throw InputError("", "no recording is given.");
  return Fitter(runs, name).run();
}

}  // namespace vramlab
