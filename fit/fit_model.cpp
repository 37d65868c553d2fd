#include "fit/fit_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "fit/loops.hpp"
#include "fit/parameters.hpp"
#include "fit/size_laws.hpp"
#include "fit/step_record.hpp"
#include "fit/structure.hpp"
#include "models/recorded_program.hpp"

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;
constexpr std::int64_t kHowFarBeyond = 8;  // times the largest recorded value of a parameter may be asked for

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
    laws_ = find_size_laws(union_, shapes_, parameters_, sample_values());
    model_.spec.main_product = laws_.main_product;
    model_.spec.forms = laws_.forms;
    model_.spec.tables = laws_.tables;
    fill_program();
    fill_first_step();
    fill_refusals();
    model_.residuals = count_residuals(union_, shapes_, laws_, model_.inexact);
    warn_of_thresholds(model_.spec, model_.warnings);
    warn_of_workspaces(model_.spec, model_.residuals, model_.warnings);
    check();
    return std::move(model_);
  }

 private:
  // Steps that did not align make a program that frees or keeps the wrong things.
  void check() const {
    try {
      check_recorded_spec(model_.spec);
    } catch (const InputError& error) {
      throw InputError(
          "", "the recorded steps cannot be merged into one program: " + error.problems().front().what +
                  " Record every shape twice, without running out of memory in between.");
    }
  }

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

  // Of the model's own variables.
  [[nodiscard]] SampleValues sample_values() const {
    return
        [&spec = model_.spec, asked = conditions()](std::size_t shape, std::int32_t loop, std::size_t round) {
          RecordedValues values(spec, asked[shape]);
          if (loop >= 0) {
            values.enter(&spec.loops[static_cast<std::size_t>(loop)], static_cast<std::int64_t>(round));
          }
          return std::vector<std::int64_t>(values.monomials().begin(), values.monomials().end());
        };
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

  // What a library asks for before it does without, and for workspaces of which that was never recorded the
  // mean number of attempts.
  void fill_refusals() {
    find_refused_workspaces(runs_, chosen_, union_, shapes_, model_.spec);
    std::uint32_t total = 0;
    for (const RecordedRun& run : runs_) {
      for (const StepRecord& step : run.steps) {
        model_.refusal_chains += step.refusals.size();
        for (const RefusedRequests& row : step.refusals)
          total += static_cast<std::uint32_t>(row.sizes.size());
      }
    }
    const auto chains = static_cast<std::uint32_t>(model_.refusal_chains);
    if (chains > 0) model_.spec.workspace_refusals = std::max((total + chains / 2) / chains, 1U);
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
