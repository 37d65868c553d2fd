#include "models/recorded_program.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr double kParameterWeight = 0.1;  // of a parameter's ratio beside that of the main product
constexpr double kTie = 1e-9;
constexpr double kMostBytes = 0x1p60;
constexpr const char* kTooLarge = "a size at these parameters exceeds 2^62 bytes. Take smaller values.";
constexpr std::int64_t kMostOperations = 10'000'000;  // of a step: some hundred times what real ones have

// a + b · c. Throws InputError beyond 64 bits.
std::int64_t plus_product(std::int64_t a, std::int64_t b, std::int64_t c) {
  std::int64_t product = 0;
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(b, c, &product) || __builtin_add_overflow(a, product, &sum)) {
    throw InputError("", kTooLarge);
  }
  return sum;
}

std::int64_t weighted(const RecordedVariable& variable, const RecordedConditions& conditions,
                      std::int64_t item) {
  std::int64_t total = 0;
  for (std::size_t f = 0; f < variable.weights.size(); ++f) {
    if (variable.weights[f] == 0) continue;
    total = plus_product(total, variable.weights[f], conditions.fields[f][static_cast<std::size_t>(item)]);
  }
  return total;
}

// How much the part number `part` has of the parameter that is cut; at least 1.
std::int64_t part_size(const RecordedVariable& variable, const RecordedConditions& conditions,
                       std::int64_t part) {
  const std::int64_t rest = conditions.point[variable.of] - part * variable.value;
  return std::clamp<std::int64_t>(rest, 1, variable.value);
}

std::int64_t global_value(const RecordedVariable& variable, const RecordedConditions& conditions,
                          std::int64_t items) {
  switch (variable.kind) {
    case RecordedVariable::Kind::fixed:
      return variable.value;
    case RecordedVariable::Kind::items:
      return items;
    case RecordedVariable::Kind::first_item:
      return items == 0 ? 0 : weighted(variable, conditions, 0);
    case RecordedVariable::Kind::last_item:
      return items == 0 ? 0 : weighted(variable, conditions, items - 1);
    case RecordedVariable::Kind::sum:
    case RecordedVariable::Kind::most: {
      std::int64_t total = 0;
      for (std::int64_t item = 0; item < items; ++item) {
        const std::int64_t one = weighted(variable, conditions, item);
        total =
            variable.kind == RecordedVariable::Kind::sum ? plus_product(total, one, 1) : std::max(total, one);
      }
      return total;
    }
    case RecordedVariable::Kind::parts:
      return (conditions.point[variable.of] + variable.value - 1) / variable.value;
    case RecordedVariable::Kind::part:
      return part_size(variable, conditions, 0);
    case RecordedVariable::Kind::parameter:
    case RecordedVariable::Kind::item:
    case RecordedVariable::Kind::round:
      break;
  }
  return 0;
}

double logarithm(std::int64_t value) {
  return std::log(static_cast<double>(std::max<std::int64_t>(value, 1)));
}

}  // namespace

RecordedValues::RecordedValues(const RecordedSpec& spec, const RecordedConditions& conditions)
    : spec_(spec), conditions_(conditions), variables_(spec.variables.size(), 0) {
  if (conditions.point.size() != spec.parameters.size() || conditions.fields.size() != spec.fields.size()) {
    throw InternalError("a recorded model is asked for a step with other parameters than its own");
  }
  items_ = spec.fields.empty() ? 0 : static_cast<std::int64_t>(conditions.fields[0].size());
  for (const auto& field : conditions.fields) {
    if (static_cast<std::int64_t>(field.size()) == items_) continue;
    throw InputError("", "the fields of the items have different lengths. Give one value an item for each.");
  }
  for (std::size_t v = 0; v < spec.variables.size(); ++v) {
    variables_[v] = v < conditions.point.size() ? conditions.point[v]
                                                : global_value(spec.variables[v], conditions, items_);
  }
  monomials_.resize(spec.monomials.size());
  update_monomials();
}

void RecordedValues::update_monomials() {
  for (std::size_t m = 0; m < monomials_.size(); ++m) {
    const auto value = spec_.monomials[m].value(variables_);
    if (!value) throw InputError("", kTooLarge);
    monomials_[m] = *value;
  }
}

void RecordedValues::enter(const RecordedLoop* loop, std::int64_t round) {
  std::int64_t item = loop == nullptr ? 0 : round + loop->skipped;
  if (loop != nullptr && loop->from_last) item = items_ - 1 - item;
  for (std::size_t v = 0; v < spec_.variables.size(); ++v) {
    const RecordedVariable& variable = spec_.variables[v];
    if (variable.is_global()) continue;
    variables_[v] = 0;
    if (variable.kind == RecordedVariable::Kind::part) {
      variables_[v] = part_size(variable, conditions_, loop == nullptr ? 0 : round + loop->skipped);
      continue;
    }
    if (loop == nullptr) continue;
    if (variable.kind == RecordedVariable::Kind::round) {
      variables_[v] = round;
    } else if (item >= 0 && item < items_) {
      variables_[v] = weighted(variable, conditions_, item);
    }
  }
  update_monomials();
}

std::int64_t RecordedValues::rounds(const RecordedLoop& loop) const {
  return std::max<std::int64_t>(variables_[loop.count] + loop.plus, 0);
}

namespace {

Bytes size_by(const SizeForm& form, std::span<const std::int64_t> monomials) {
  const auto size = form.value(monomials);
  if (!size) throw InputError("", kTooLarge);
  return *size;
}

/// Answers for parameters between and beyond the recorded shapes.
class Neighbours {
 public:
  /// `values` outside loops. Refers to `spec`.
  Neighbours(const RecordedSpec& spec, const RecordedValues& values)
      : spec_(spec), step_monomials_(values.monomials().begin(), values.monomials().end()) {
    product_ = std::max<std::int64_t>(step_monomials_[spec.main_product], 1);
    for (const VariableValues& shape : spec.shapes) {
      const std::int64_t main = spec.monomials[spec.main_product].value(shape).value_or(1);
      products_.push_back(std::max<std::int64_t>(main, 1));
      double distance = std::abs(logarithm(products_.back()) - logarithm(product_));
      for (std::size_t p = 0; p < spec.parameters.size(); ++p) {
        distance +=
            kParameterWeight * std::abs(logarithm(values.variables()[p] + 1) - logarithm(shape[p] + 1));
      }
      distances_.push_back(distance);
    }
  }

  /// The recorded shape of `within` that is nearest to the step: distance is the logarithm of the ratio of
  /// main products plus a tenth of that of every parameter. `within` must not be empty.
  [[nodiscard]] std::size_t nearest(ShapeSet within) const {
    std::size_t best = spec_.shapes.size();
    for (std::size_t shape = 0; shape < spec_.shapes.size(); ++shape) {
      if ((within >> shape & 1) == 0) continue;
      if (best == spec_.shapes.size()) {
        best = shape;
        continue;
      }
      const double difference = distances_[shape] - distances_[best];
      // in the middle between two, the larger one
      if (difference < -kTie || (difference < kTie && products_[shape] > products_[best])) best = shape;
    }
    return best;
  }

  /// Whether what `group` describes occurs.
  [[nodiscard]] bool occurs(const RecordedGroup& group) const {
    if (group.in == group.within) return true;
    if (group.monomial < 0) return (group.in >> nearest(group.within) & 1) != 0;
    const std::int64_t value = step_monomials_[static_cast<std::size_t>(group.monomial)];
    return (value >= group.from) != group.below;
  }

  /// The size of a table at the step: at a recorded shape what was recorded, else the form of the nearest
  /// shape, if it has one. Without a form the size lies on the straight line through the two neighbours along
  /// the main product, for within one algorithm a workspace is a constant plus a multiple of it; beyond the
  /// recorded products neither of the two parts may be negative. Throws InputError above 2^62 bytes.
  [[nodiscard]] Bytes size(const RecordedTable& table) const {
    ShapeSet seen = 0;
    for (std::size_t shape = 0; shape < table.sizes.size(); ++shape) {
      if (table.sizes[shape] > 0) seen |= ShapeSet{1} << shape;
    }
    const std::size_t shape = nearest(seen);
    if (distances_[shape] < kTie) return table.sizes[shape];
    if (table.forms[shape] < 0) return on_line(table);
    return size_by(spec_.forms[static_cast<std::size_t>(table.forms[shape])], step_monomials_);
  }

 private:
  [[nodiscard]] Bytes on_line(const RecordedTable& table) const {
    // of the shapes with one main product the nearest stands for all
    std::map<std::int64_t, std::size_t> shapes;
    for (std::size_t shape = 0; shape < table.sizes.size(); ++shape) {
      if (table.sizes[shape] == 0) continue;
      const auto [entry, fresh] = shapes.try_emplace(products_[shape], shape);
      if (!fresh && distances_[shape] < distances_[entry->second]) entry->second = shape;
    }
    const auto exact = shapes.find(product_);
    if (exact != shapes.end()) return table.sizes[exact->second];
    auto above = shapes.upper_bound(product_);
    const bool inside = above != shapes.end() && above != shapes.begin();
    const auto from = above == shapes.begin() ? above : std::prev(above);
    const auto size = static_cast<double>(table.sizes[from->second]);
    const double in_proportion = size / static_cast<double>(from->first);
    double slope = table.scales ? in_proportion : 0;
    if (shapes.size() > 1) {
      if (above == shapes.end()) --above;
      if (above == shapes.begin()) ++above;
      const auto below = std::prev(above);
      slope = (static_cast<double>(table.sizes[above->second]) -
               static_cast<double>(table.sizes[below->second])) /
              static_cast<double>(above->first - below->first);
      if (!inside) slope = std::clamp(slope, 0.0, in_proportion);
    }
    const double result = size + slope * static_cast<double>(product_ - from->first);
    return static_cast<Bytes>(std::clamp(std::round(result), 1.0, kMostBytes));
  }

  const RecordedSpec& spec_;
  std::vector<std::int64_t> step_monomials_;
  std::vector<std::int64_t> products_;  ///< main product, by shape; at least 1
  std::vector<double> distances_;       ///< by shape
  std::int64_t product_ = 1;            ///< the step's own
};

Bytes moved(Bytes size, Bytes first, Bytes own) {
  const Bytes distance = std::max(size, first) - std::min(size, first);
  if (distance > first / 10) {
    const double scale = static_cast<double>(own) / static_cast<double>(first);
    return static_cast<Bytes>(std::llround(static_cast<double>(size) * scale));
  }
  if (size >= first) return own + distance;
  return own - std::min(distance, own - 1);
}

}  // namespace

std::vector<Bytes> attempts_at(const std::vector<Bytes>& recorded, Bytes own) {
  std::vector<Bytes> sizes;
  for (const Bytes size : recorded) sizes.push_back(moved(size, recorded.front(), own));
  return sizes;
}

RecordedSlots::RecordedSlots(const RecordedSpec& spec)
    : kept(spec.kept), extras(static_cast<std::uint32_t>(spec.extras.size())) {
  std::int64_t live = 0;
  for (const std::int64_t entry : spec.build) live += entry > 0 ? 1 : -1;
  built = static_cast<std::uint32_t>(live);
}

namespace {

using Kind = RecordedOp::Kind;

/// Writes one program. Used once.
class Writer {
 public:
  Writer(const RecordedSpec& spec, const RecordedConditions& conditions, std::optional<std::size_t> shape)
      : spec_(spec),
        values_(spec, conditions),
        neighbours_(spec, values_),
        slots_(spec),
        writer_(slots_.all()),
        form_sizes_(spec.forms.size()),
        rounds_(spec.tensors.size()),
        outside_used_(spec.program.size(), 0),
        old_is_freed_(spec.kept, false) {
    writer_.reserve(static_cast<std::size_t>(operations()));
    for (const RecordedGroup& group : spec.groups) {
      occurs_.push_back(shape ? (group.in >> *shape & 1) != 0 : neighbours_.occurs(group));
    }
    for (const RecordedTable& table : spec.tables) table_sizes_.push_back(neighbours_.size(table));
  }

  RecordedStep write() {
    for (std::size_t at = 0; at < spec_.program.size(); ++at) {
      if (spec_.program[at].kind == Kind::loop) {
        at = write_loop(at);
      } else {
        perform(at, 0);
      }
    }
    drop_what_is_left();
    StepProgram program = writer_.finish();
    program.duration = spec_.time.duration(values_.monomials());
    program.workspace_refusals = spec_.workspace_refusals;
    return {std::move(program), std::move(tensors_)};
  }

 private:
  [[nodiscard]] std::size_t end_of_loop(std::size_t begin) const {
    std::size_t end = begin + 1;
    while (spec_.program[end].kind != Kind::end) ++end;
    return end;
  }

  // At most so many, as far as they are not refused later.
  [[nodiscard]] std::int64_t operations() const {
    auto count = static_cast<std::int64_t>(spec_.program.size());
    for (std::size_t at = 0; at < spec_.program.size(); ++at) {
      if (spec_.program[at].kind != Kind::loop) continue;
      const auto inside = static_cast<std::int64_t>(end_of_loop(at) - at);
      const std::int64_t rounds = values_.rounds(spec_.loops[spec_.program[at].what]);
      count += inside * std::min(rounds, kMostOperations / inside);
    }
    return std::min(count, kMostOperations);
  }

  // Returns the place of the loop's end.
  std::size_t write_loop(std::size_t begin) {
    const RecordedLoop& loop = spec_.loops[spec_.program[begin].what];
    const std::size_t end = end_of_loop(begin);
    const std::int64_t rounds = values_.rounds(loop);
    if (rounds > kMostOperations / static_cast<std::int64_t>(end - begin)) {
      throw InputError("",
                       "a step at these parameters has more than 10000000 operations. Take smaller "
                       "values.");
    }
    for (std::int64_t round = 0; round < rounds; ++round) {
      enter(&loop, round);
      for (std::size_t at = begin + 1; at < end; ++at) perform(at, round);
    }
    enter(nullptr, 0);
    return end;
  }

  void enter(const RecordedLoop* loop, std::int64_t round) {
    values_.enter(loop, round);
    ++entered_;
  }

  void perform(std::size_t at, std::int64_t round) {
    const RecordedOp& op = spec_.program[at];
    if (!occurs_[op.group]) return;
    switch (op.kind) {
      case Kind::allocate:
        allocate(op.what);
        break;
      case Kind::free:
        release(at, round);
        break;
      case Kind::ensure:
        writer_.ensure({slots_.built + slots_.kept + op.what, spec_.extras[op.what]});
        break;
      case Kind::free_kept:
        writer_.drop({slots_.built + op.what, 0});
        old_is_freed_[op.what] = true;
        break;
      case Kind::loop:
      case Kind::end:
        break;
    }
  }

  void allocate(std::uint32_t number) {
    const RecordedTensor& tensor = spec_.tensors[number];
    const Bytes size = size_of(tensor);
    tensors_.push_back(number);
    if (tensor.kept >= 0) {
      const auto rank = static_cast<std::uint32_t>(tensor.kept);
      // parts of two recorded structures can miss the place where the old one is freed
      if (!old_is_freed_[rank]) writer_.drop({slots_.built + rank, 0});
      writer_.make_persistent({slots_.built + rank, size, tensor.stream});
      return;
    }
    rounds_[number].push_back(tensor.workspace
                                  ? writer_.make_workspace(size, attempts_of(tensor, size), tensor.stream)
                                  : writer_.make(size, tensor.stream));
  }

  std::uint32_t attempts_of(const RecordedTensor& tensor, Bytes size) {
    if (tensor.kernel < 0 || size == 0) return 0;
    const RecordedKernel& kernel = spec_.kernels[static_cast<std::size_t>(tensor.kernel)];
    ShapeSet seen = 0;
    for (const RecordedKernel::Refusal& refusal : kernel.refusals) seen |= ShapeSet{1} << refusal.shape;
    const std::size_t nearest = neighbours_.nearest(seen);
    const auto refusal = std::find_if(kernel.refusals.begin(), kernel.refusals.end(),
                                      [&](const auto& one) { return one.shape == nearest; });
    return writer_.know_attempts(
        {static_cast<std::uint32_t>(tensor.kernel), attempts_at(refusal->sizes, size)});
  }

  void release(std::size_t at, std::int64_t round) {
    const RecordedOp& op = spec_.program[at];
    auto& made = rounds_[op.what];
    const std::int64_t rounds = static_cast<std::int64_t>(made.size());
    std::int64_t index = op.place.offset + op.place.step * round;
    // counted from the end only where the loop is over, so that all its rounds are there
    if (op.place.from_end) index = rounds - 1 + index;
    if (index >= 0 && index < rounds) {
      drop(made[static_cast<std::size_t>(index)]);
    } else if (outside_used_[at] < op.place.outside.size()) {
      auto& other = rounds_[op.place.outside[outside_used_[at]++]];
      if (!other.empty()) drop(other.back());
    }
  }

  void drop(std::optional<Tensor>& tensor) {
    if (!tensor) return;
    writer_.drop(*tensor);
    tensor.reset();
  }

  // Parts of two recorded structures can leave a tensor behind that neither of them did.
  void drop_what_is_left() {
    for (auto& rounds : rounds_) {
      for (auto& tensor : rounds) drop(tensor);
    }
  }

  // Many tensors share a form, and its value lasts until the next round of a loop.
  [[nodiscard]] Bytes size_of(const RecordedTensor& tensor) {
    if (tensor.size < 0) return table_sizes_[static_cast<std::size_t>(-1 - tensor.size)];
    const auto form = static_cast<std::size_t>(tensor.size);
    auto& [size, known_since] = form_sizes_[form];
    if (known_since != entered_) {
      size = size_by(spec_.forms[form], values_.monomials());
      known_since = entered_;
    }
    return size;
  }

  /// One tensor for each round; most are made once.
  using Rounds = boost::container::small_vector<std::optional<Tensor>, 1>;

  const RecordedSpec& spec_;
  RecordedValues values_;
  Neighbours neighbours_;
  RecordedSlots slots_;
  ProgramWriter writer_;
  std::vector<bool> occurs_;                                 ///< by group
  std::vector<Bytes> table_sizes_;                           ///< by table
  std::vector<std::pair<Bytes, std::uint64_t>> form_sizes_;  ///< by form, and `entered_` of that moment
  std::uint64_t entered_ = 1;                                ///< changes with the values
  std::vector<Rounds> rounds_;                               ///< by tensor: what each round made
  std::vector<std::size_t> outside_used_;                    ///< by operation
  std::vector<std::uint32_t> tensors_;
  std::vector<bool> old_is_freed_;  ///< by rank
};

}  // namespace

RecordedStep write_recorded_step(const RecordedSpec& spec, const RecordedConditions& conditions,
                                 std::optional<std::size_t> shape) {
  return Writer(spec, conditions, shape).write();
}

}  // namespace vramlab
