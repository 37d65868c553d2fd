#include "fit/fit_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "fit/loops.hpp"
#include "fit/parameters.hpp"
#include "models/recorded_program.hpp"

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;

/// What occurs where: the groups of a model by parameters and shapes; number 0 is what always occurs.
class StructureGroups {
 public:
  explicit StructureGroups(RecordedSpec& spec)
      : spec_(spec),
        all_(spec.shapes.size() >= kMostShapes ? ~ShapeSet{0} : (ShapeSet{1} << spec.shapes.size()) - 1) {
    number_of(all_, all_);
  }

  /// The group of what occurs at `in`, of the shapes of `within`. A threshold on the main product or on a
  /// single parameter is taken where it describes `in`, at the geometric middle of its two neighbours,
  /// inclusive; but only for whole tensors (`within` = all shapes, or those where their loop goes round), and
  /// not `by_nearest` recorded shape.
  std::uint32_t number_of(ShapeSet in, ShapeSet within, bool by_nearest = false, bool of_loop = false) {
    if (in == within) {
      in = within = all_;
      by_nearest = false;
    }
    const bool may_have_threshold = (within == all_ || of_loop) && !by_nearest;
    const auto [entry, fresh] = numbers_.try_emplace({in, within, may_have_threshold},
                                                     static_cast<std::uint32_t>(spec_.groups.size()));
    if (!fresh) return entry->second;
    RecordedGroup& group = spec_.groups.emplace_back(RecordedGroup{.in = in, .within = within});
    if (may_have_threshold && in != within && !find_threshold(group, spec_.main_product)) {
      for (std::uint32_t m = 1; m < spec_.monomials.size(); ++m) {
        if (spec_.monomials[m].degree() == 1 && find_threshold(group, m)) break;
      }
    }
    return entry->second;
  }

  /// The same as group `number`, but from where a reduction has a buffer; that group where the recorded
  /// shapes say otherwise, or it is not the product that decides.
  std::uint32_t number_from(std::uint32_t number, const ReductionBegin& begin) {
    RecordedGroup group = spec_.groups[number];
    if (group.monomial < 0 || group.monomial != begin.monomial || group.below) return number;
    const Monomial& product = spec_.monomials[static_cast<std::size_t>(begin.monomial)];
    for (std::size_t shape = 0; shape < spec_.shapes.size(); ++shape) {
      const std::int64_t value = product.value(spec_.shapes[shape]).value_or(0);
      const bool is_in = (group.in >> shape & 1) != 0;
      if ((group.within >> shape & 1) != 0 && is_in != (value >= begin.from)) return number;
    }
    group.from = begin.from;
    const auto known = std::find(spec_.groups.begin(), spec_.groups.end(), group);
    const auto place = static_cast<std::uint32_t>(known - spec_.groups.begin());
    if (known == spec_.groups.end()) spec_.groups.push_back(group);
    return place;
  }

  [[nodiscard]] ShapeSet all() const { return all_; }

 private:
  [[nodiscard]] bool find_threshold(RecordedGroup& group, std::uint32_t monomial) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    std::int64_t low_in = kMost;
    std::int64_t high_in = 0;
    std::int64_t low_out = kMost;
    std::int64_t high_out = 0;
    for (std::size_t shape = 0; shape < spec_.shapes.size(); ++shape) {
      if ((group.within >> shape & 1) == 0) continue;
      const std::int64_t value = spec_.monomials[monomial].value(spec_.shapes[shape]).value_or(0);
      const bool in = (group.in >> shape & 1) != 0;
      (in ? low_in : low_out) = std::min(in ? low_in : low_out, value);
      (in ? high_in : high_out) = std::max(in ? high_in : high_out, value);
    }
    const bool above = high_out < low_in;
    if (!above && high_in >= low_out) return false;
    const auto below_it = static_cast<double>(above ? high_out : high_in);
    const auto above_it = static_cast<double>(above ? low_in : low_out);
    group.monomial = static_cast<std::int32_t>(monomial);
    group.from = std::llround(std::ceil(std::sqrt(below_it * above_it)));
    group.below = !above;
    return true;
  }

  RecordedSpec& spec_;
  ShapeSet all_;
  std::map<std::tuple<ShapeSet, ShapeSet, bool>, std::uint32_t> numbers_;
};

class Fitter {
 public:
  Fitter(const std::vector<RecordedRun>& runs, Bytes card) : runs_(runs), card_(card) {}

  FittedModel run(const std::string& name) {
    RecordedSpec& spec = model_.spec;
    std::vector<StepParameters> shape_parameters;  // outlives items_, which refers to it
    for (const RecordedRun& run : runs_) {
      model_.warnings.insert(model_.warnings.end(), run.warnings.begin(), run.warnings.end());
    }
    chosen_ = choose_steps(runs_, model_.warnings);
    for (const StepRecord* step : chosen_.settled) {
      shapes_.push_back(shape_program(*step));
      shape_parameters.push_back(step->mark.parameters);
      model_.shape_labels.push_back(step->mark.label);
    }
    if (!shape_parameters[0].lists.empty()) items_.emplace(shape_parameters);
    spec = items_ ? items_->first_parameters(model_.warnings)
                  : fit_parameters(shape_parameters, model_.warnings);
    spec.name = name;
    add_making(*chosen_.first, chosen_.first_shape);
    for (const StepRecord* step : chosen_.later) add_making(*step, *chosen_.shape_of(*step));
    find_loops();
    require_explained_lengths();
    count_samples();
    union_ = merge_shapes(shapes_, monomials_by_shape(spec), values_in_loops(), making_);
    spec.tensors.resize(union_.tensors.size());
    std::vector<SizeKnowledge> knowledge = find_size_laws(union_, shapes_, sample_values(), spec);
    reductions_ = find_reductions(union_, shapes_, sample_values(), recorded_card(), spec, knowledge);
    fill_program();
    fill_first_step();
    fill_refusals();
    model_.residuals = count_residuals(union_, shapes_, knowledge, model_.inexact);
    warn_of_thresholds(spec, model_.warnings);
    warn_of_workspaces(spec, model_.residuals, model_.warnings);
    if (reductions_.count > 0 && !reductions_.has_limit) {
      model_.warnings.push_back(fmt::format(
          "{} buffers of reductions grow until they fill the card, and how much that is, is not known of the "
          "recorded one: no end is assumed.",
          reductions_.count));
    }
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

  // Bytes of the card, where the marks have them.
  [[nodiscard]] Bytes recorded_card() const {
    for (const RecordedRun& run : runs_) {
      for (const StepRecord& step : run.steps) {
        if (step.mark.device_total > 0) return step.mark.device_total;
      }
    }
    return card_;
  }

  // What `step` makes for good is made once.
  void add_making(const StepRecord& step, std::size_t shape) {
    std::vector<Bytes>& extras = model_.spec.extras;
    making_.push_back({making_program(step, static_cast<std::uint32_t>(extras.size())), shape});
    for (const StepAllocation& allocation : step.allocations) {
      if (allocation.fate == Fate::forever) extras.push_back(allocation.size);
    }
  }

  void find_loops() {
    RecordedSpec& spec = model_.spec;
    // rounds are counted by a parameter or, in steps over items, by their number: the last variable so far
    const std::size_t first = items_ ? spec.variables.size() - 1 : 0;
    const std::size_t last = items_ ? spec.variables.size() : spec.recorded.size();
    std::vector<LoopCounter> counters;
    for (std::size_t v = first; v < last; ++v) {
      LoopCounter& counter = counters.emplace_back(LoopCounter{static_cast<std::uint32_t>(v), {}});
      for (const VariableValues& shape : spec.shapes) counter.by_shape.push_back(shape[v]);
      if (!items_) add_part_counters(LoopCounter{counter}, counters);
    }
    LoopedPrograms looped = take_out_loops(std::move(shapes_), std::move(making_), counters);
    spec.loops = std::move(looped.loops);
    shapes_ = std::move(looped.shapes);
    making_ = std::move(looped.making);
    if (items_) {
      items_->complete(spec, shapes_, model_.warnings);
      return;
    }
    if (!looped.parts.empty()) {
      const std::int64_t size = likeliest_part(looped.parts, spec.loops[0].count);
      const std::uint32_t count = add_part_variables(spec, spec.loops[0].count, size);
      for (RecordedLoop& loop : spec.loops) loop.count = count;
    } else if (!spec.loops.empty()) {
      add_loop_variable(spec, {.name = "round", .kind = RecordedVariable::Kind::round});
    }
    warn_of_confusion(spec, model_.warnings);
  }

  // Loops in loops are found where the inner one always goes round as often; else the recorded steps are too
  // different for one program, and what the nearest of them did says nothing of others.
  void require_explained_lengths() const {
    constexpr std::size_t kMany = 64;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    std::size_t most = 0;
    for (const ShapeProgram& shape : shapes_) {
      const auto outside =
          static_cast<std::size_t>(std::count_if(shape.allocations.begin(), shape.allocations.end(),
                                                 [](const ShapeAllocation& one) { return one.loop < 0; }));
      least = std::min(least, outside);
      most = std::max(most, outside);
    }
    if (most - least < kMany || 2 * most < 3 * least) return;
    throw InputError(
        "", fmt::format(
                "the recorded steps make {} to {} allocations {}, and nothing says when how many: no single "
                "parameter counts how often they repeat. A loop in a loop is modelled only where the inner "
                "one goes round equally often in all steps. Record steps in which it does.",
                least, most, model_.spec.loops.empty() ? "(no loop was found)" : "outside the loops found"));
  }

  // A batch may be cut into parts: into how many, for every size of a part.
  static void add_part_counters(const LoopCounter& whole, std::vector<LoopCounter>& counters) {
    const std::size_t others = counters.size();
    const std::int64_t most = *std::max_element(whole.by_shape.begin(), whole.by_shape.end());
    for (std::int64_t part = 2; part <= most / 2; ++part) {
      std::vector<std::int64_t> numbers;
      for (const std::int64_t all : whole.by_shape) numbers.push_back((all + part - 1) / part);
      if (counters.size() > others && counters.back().by_shape == numbers) {
        counters.back().parts.push_back(part);
      } else {
        counters.push_back({whole.variable, std::move(numbers), {part}});
      }
    }
  }

  // Of several sizes with the same numbers of parts the one that leaves a shorter last part where the last
  // round allocates less than the others.
  [[nodiscard]] std::int64_t likeliest_part(const std::vector<std::int64_t>& sizes,
                                            std::uint32_t parameter) const {
    const auto agrees = [&](std::int64_t size) {
      for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
        Bytes first = 0;
        Bytes last = 0;
        for (const ShapeAllocation& one : shapes_[shape].allocations) {
          if (one.loop < 0 || one.sizes.size() < 2) continue;
          first += one.sizes.front();
          last += one.sizes.back();
        }
        const bool shorter = model_.spec.shapes[shape][parameter] % size != 0;
        if (first > 0 && shorter != (last + first / 100 < first)) return false;
      }
      return true;
    };
    const auto likely = std::find_if(sizes.begin(), sizes.end(), agrees);
    return likely != sizes.end() ? *likely : sizes.front();
  }

  // Of the model's own variables.
  [[nodiscard]] SampleValues sample_values() const {
    const RecordedSpec& spec = model_.spec;
    std::vector<RecordedConditions> asked;
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const auto values = spec.shapes[shape].begin();
      const auto parameters = static_cast<std::ptrdiff_t>(spec.recorded.size());
      asked.push_back(items_ ? items_->conditions(shape)
                             : RecordedConditions{Point(values, values + parameters), {}});
    }
    return [&spec, asked](std::size_t shape, std::int32_t loop, std::size_t round) {
      RecordedValues values(spec, asked[shape]);
      if (loop >= 0) {
        values.enter(&spec.loops[static_cast<std::size_t>(loop)], static_cast<std::int64_t>(round));
      }
      return std::vector<std::int64_t>(values.monomials().begin(), values.monomials().end());
    };
  }

  // Values of all monomials in the first round of a loop over parts, by shape: a single part may be a short
  // one.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> values_in_loops() const {
    const RecordedSpec& spec = model_.spec;
    std::vector<std::vector<std::int64_t>> values = monomials_by_shape(spec);
    if (spec.loops.empty() || spec.variables[spec.loops[0].count].kind != RecordedVariable::Kind::parts) {
      return values;
    }
    const SampleValues samples = sample_values();
    for (std::size_t shape = 0; shape < values.size(); ++shape) values[shape] = samples(shape, 0, 0);
    return values;
  }

  void count_samples() {
    RecordedSpec& spec = model_.spec;
    const std::vector<std::string> names = names_of(spec.variables);
    for (std::uint32_t m = 0; m < spec.monomials.size(); ++m) {
      const std::string name = spec.monomials[m].text(names);
      if (name == "batch" || name == "batch_size" || name == "items") spec.samples = m;
    }
  }

  // A first step finds no gradients: its shape frees them where the shape with the nearest product does.
  void add_frees_of_first_shape() {
    const std::size_t alone = chosen_.first_shape;
    const RecordedSpec& spec = model_.spec;
    const auto product = [&](std::size_t shape) {
      const auto value = spec.monomials[spec.main_product].value(spec.shapes[shape]);
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

  // A library asks for workspaces around one kernel; their sizes follow the algorithm, not the tensors alone.
  [[nodiscard]] bool has_size_of_workspace(const RecordedTensor& tensor) const {
    if (tensor.size < 0) return true;
    const auto& terms = model_.spec.forms[static_cast<std::size_t>(tensor.size)].terms;
    return terms.size() > 1 && terms[0].monomial == 0;
  }

  // Shapes at which its loop does not go round say nothing of a tensor.
  [[nodiscard]] std::uint32_t group_of(const UnionTensor& tensor, StructureGroups& groups) const {
    const ShapeSet in = tensor.shapes();
    const auto known = static_cast<std::size_t>(std::countr_zero(in));
    const std::int32_t loop = tensor.in(shapes_, known)->loop;
    ShapeSet within = groups.all();
    for (std::size_t shape = 0; loop >= 0 && shape < shapes_.size(); ++shape) {
      if (shapes_[shape].rounds[static_cast<std::size_t>(loop)] == 0) within &= ~(ShapeSet{1} << shape);
    }
    return groups.number_of(in, within, false, loop >= 0);
  }

  void warn_of_temporaries() {
    const RecordedSpec& spec = model_.spec;
    std::size_t count = 0;
    Bytes largest = 0;
    for (const RecordedTensor& tensor : spec.tensors) {
      if (!tensor.workspace || tensor.size >= 0) continue;
      const RecordedTable& table = spec.tables[static_cast<std::size_t>(-1 - tensor.size)];
      if (*std::max_element(table.forms.begin(), table.forms.end()) >= 0) continue;
      ++count;
      largest = std::max(largest, *std::max_element(table.sizes.begin(), table.sizes.end()));
    }
    if (count == 0) return;
    model_.warnings.push_back(fmt::format(
        "{} allocations of one kernel (up to {}) have no size form; they are taken for workspaces, which a "
        "step does without where memory is short.",
        count, format_bytes(largest)));
  }

  void fill_program() {
    RecordedSpec& spec = model_.spec;
    if (chosen_.first_is_alone && shapes_.size() > 1) add_frees_of_first_shape();
    StructureGroups groups(spec);
    for (std::size_t t = 0; t < union_.tensors.size(); ++t) {
      RecordedTensor& tensor = spec.tensors[t];
      tensor.group = group_of(union_.tensors[t], groups);
      if (const auto& begin = reductions_.begins[t]) tensor.group = groups.number_from(tensor.group, *begin);
      tensor.workspace = has_size_of_workspace(tensor);
      for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
        const ShapeAllocation* one = union_.tensors[t].in(shapes_, shape);
        if (one == nullptr) continue;
        tensor.workspace = tensor.workspace && one->brief;
        tensor.stream = one->stream;
        if (tensor.kept < 0) tensor.kept = one->kept;
      }
      spec.kept = std::max(spec.kept, static_cast<std::uint32_t>(tensor.kept + 1));
    }
    warn_of_temporaries();
    const std::vector<Bytes> sizes = std::exchange(spec.extras, {});  // numbered in the order of the program
    for (const UnionOp& op : union_.ops) {
      RecordedOp& recorded = spec.program.emplace_back(op.op);
      if (recorded.kind == Kind::ensure) {
        spec.extras.push_back(sizes[recorded.what]);
        recorded.what = static_cast<std::uint32_t>(spec.extras.size() - 1);
      }
      if (recorded.kind == Kind::allocate) {
        recorded.group = spec.tensors[recorded.what].group;
      } else if (recorded.kind == Kind::free) {  // one of several places where a tensor may end
        recorded.group = groups.number_of(op.shapes, union_.tensors[recorded.what].shapes());
      } else if (recorded.kind == Kind::free_kept) {
        recorded.group = groups.number_of(op.shapes, groups.all(), true);
      }
    }
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

  void add_failures() {
    RecordedSpec& spec = model_.spec;
    if (items_) return;
    for (const RecordedRun& run : runs_) {
      for (const StepRecord& step : run.steps) {
        if (!step.mark.oom || step.needed == 0) continue;
        RecordedFailure failure{.needed = step.needed};
        const auto& known = step.mark.parameters.scalars;
        for (const Parameter& parameter : spec.parameters) {
          if (const auto value = known.find(parameter.name); value != known.end()) {
            failure.point.push_back(value->second);
          }
        }
        if (failure.point.size() == spec.parameters.size()) spec.failures.push_back(std::move(failure));
      }
    }
  }

  void fill_first_step() {
    model_.spec.build = runs_[0].build;
    model_.spec.segments = runs_[0].segments;
    model_.spec.outside = runs_[0].outside().value_or(0);
    if (model_.spec.outside > 0) model_.spec.card_total = runs_[0].steps.back().mark.device_total;
    add_failures();
    std::ptrdiff_t late = 0;
    std::size_t foreign = 0;
    for (const StepRecord* step : chosen_.settled) {
      foreign += step->foreign_frees;
      const bool made = std::find(chosen_.later.begin(), chosen_.later.end(), step) != chosen_.later.end();
      if (step == chosen_.first || made) continue;
      late += std::count_if(step->allocations.begin(), step->allocations.end(),
                            [](const StepAllocation& one) { return one.fate == Fate::forever; });
    }
    if (late > 0) {
      model_.warnings.push_back(
          fmt::format("{} allocations of later steps are never freed and left out.", late));
    }
    if (foreign > 0) {
      model_.warnings.push_back(fmt::format(
          "{} blocks made before the first step are freed by steps; the model frees them when building ends.",
          foreign));
    }
  }

  const std::vector<RecordedRun>& runs_;
  Bytes card_;
  FittedModel model_;
  ChosenSteps chosen_;
  std::vector<ShapeProgram> shapes_;
  std::optional<RecordedItems> items_;
  std::vector<MakingStep> making_;  ///< the first step, and those after it that made something for good
  UnionProgram union_;
  FoundReductions reductions_;
};

}  // namespace

FittedModel fit_model(const std::vector<RecordedRun>& runs, const std::string& name, Bytes card) {
  if (runs.empty()) throw InputError("", "no recording is given.");
  return Fitter(runs, card).run(name);
}

}  // namespace vramlab
