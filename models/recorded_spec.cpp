// A damaged model file must end in a clear sentence, not in a read past the end of a list.
#include "models/recorded_spec.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kLargestPlace = 1'000'000;
constexpr std::int64_t kLargestValue = 1'000'000;  // of a parameter; it may be the rounds of a loop
constexpr std::uint32_t kMostKept = 1'000'000;
constexpr Bytes kLargestSize = Bytes{1} << 50;                 // of one tensor
constexpr std::int64_t kMostItems = 1'000'000'000;             // what a field of one item counts
constexpr std::int64_t kMostVariable = std::int64_t{1} << 62;  // as products of variables (models/forms.hpp)

class RecordedCheck {
 public:
  explicit RecordedCheck(const RecordedSpec& spec) : spec_(spec) {}

  void run() {
    variables();
    shapes();
    sizes();
    groups();
    tensors();
    program();
    build();
    time();
    failures();
    if (!problems_.empty()) throw InputError(problems_);
  }

 private:
  void fail(const std::string& what) { problems_.push_back({"", what}); }

  void need(bool ok, const char* what, std::size_t number) {
    if (!ok && problems_.size() < 20) fail(what + (" (number " + std::to_string(number) + ")."));
  }

  static bool is_factor(std::int64_t value) { return value >= -kMostVariable && value <= kMostVariable; }
  static bool is_value(std::int64_t value) { return value >= 0 && value <= kMostVariable; }

  [[nodiscard]] bool is_monomial(std::uint32_t number) const { return number < spec_.monomials.size(); }

  void variables() {
    const std::size_t parameters = spec_.parameters.size();
    if (parameters == 0) fail("the model has no parameter.");
    for (std::size_t p = 0; p < parameters; ++p) {
      const Parameter& range = spec_.parameters[p];
      need(range.low >= 0 && range.low <= range.high && range.high <= kLargestValue,
           "a parameter's range is not within 0 to 1000000", p);
    }
    for (std::size_t p = 0; p < spec_.recorded.size(); ++p) {
      const Parameter& range = spec_.recorded[p];
      need(range.low >= 0 && range.low <= range.high && range.high <= kLargestValue,
           "a recorded range is not within 0 to 1000000", p);
    }
    if (spec_.kept > kMostKept) fail("more tensors are kept than a step can have.");
    if (spec_.recorded.size() != parameters) fail("the recorded ranges are not those of the parameters.");
    if (spec_.variables.size() < parameters) fail("parameters are missing among the variables.");
    for (std::size_t v = 0; v < spec_.variables.size(); ++v) {
      const RecordedVariable& variable = spec_.variables[v];
      const bool is_parameter = variable.kind == RecordedVariable::Kind::parameter;
      need(is_parameter == (v < parameters), "a variable is in the wrong place", v);
      need(variable.weights.size() <= spec_.fields.size(), "a variable has more weights than fields", v);
      need(is_value(variable.value), "a variable's value is not within 0 to 2^62", v);
      for (const std::int64_t weight : variable.weights) {
        need(weight >= -kLargestValue && weight <= kLargestValue,
             "a variable's weight is not within -1000000 to 1000000", v);
      }
      const bool cuts =
          variable.kind == RecordedVariable::Kind::parts || variable.kind == RecordedVariable::Kind::part;
      need(!cuts || (variable.value > 0 && variable.of < parameters), "parts are of no parameter", v);
    }
    for (std::size_t k = 0; k < spec_.item_kinds.size(); ++k) {
      const RecordedItemKind& kind = spec_.item_kinds[k];
      need(kind.parameter < parameters, "a kind of item counts by no parameter", k);
      need(kind.columns.size() == spec_.fields.size(), "a kind of item lacks fields", k);
      for (const auto& column : kind.columns) {
        need(!column.empty(), "a kind of item has an empty field", k);
        for (const std::int64_t value : column) {
          need(value >= 0 && value <= kMostItems, "a field of an item is not within 0 to 1000000000", k);
        }
      }
    }
    for (std::size_t m = 0; m < spec_.monomials.size(); ++m) {
      need(spec_.monomials[m].powers.size() == spec_.variables.size(), "a product has wrong variables", m);
    }
    if (!is_monomial(spec_.main_product) || !is_monomial(spec_.samples)) fail("the main product is missing.");
    if (spec_.monomials.empty() || spec_.monomials[0].degree() != 0) fail("the first product must be 1.");
  }

  void shapes() {
    if (spec_.shapes.empty() || spec_.shapes.size() > kMostShapes)
      fail("needed are 1 to 64 recorded shapes.");
    for (std::size_t s = 0; s < spec_.shapes.size(); ++s) {
      need(spec_.shapes[s].size() == spec_.variables.size(), "a shape has other variables", s);
      for (const std::int64_t value : spec_.shapes[s]) {
        need(is_value(value), "a variable at a shape is not within 0 to 2^62", s);
      }
    }
  }

  void sizes() {
    for (std::size_t f = 0; f < spec_.forms.size(); ++f) {
      const SizeForm& form = spec_.forms[f];
      constexpr auto kLargest = static_cast<std::int64_t>(kLargestSize);
      need(form.unit >= 1 && form.unit <= kLargest && form.most >= 0 && form.most <= kLargest,
           "a form's steps or limit are not within 1 to 2^50", f);
      for (const SizeTerm& term : form.terms) {
        need(is_monomial(term.monomial), "a form has an unknown product", f);
        need(is_factor(term.numerator), "a form's factor is not within ±2^62", f);
        need(term.denominator >= 1 && term.denominator <= kMostDenominator,
             "a form's denominator is not within 1 to 1000000", f);
      }
    }
    for (std::size_t t = 0; t < spec_.tables.size(); ++t) {
      const RecordedTable& table = spec_.tables[t];
      need(table.sizes.size() == spec_.shapes.size() && table.forms.size() == table.sizes.size(),
           "a table has not one size and form a shape", t);
      need(std::any_of(table.sizes.begin(), table.sizes.end(), [](Bytes size) { return size > 0; }),
           "a table is empty", t);
      need(std::all_of(table.sizes.begin(), table.sizes.end(),
                       [](Bytes size) { return size <= kLargestSize; }),
           "a table's size is above 2^50 bytes", t);
      for (const std::int32_t form : table.forms) {
        need(form >= -1 && form < static_cast<std::int32_t>(spec_.forms.size()),
             "a table has an unknown form", t);
      }
    }
    for (std::size_t e = 0; e < spec_.extras.size(); ++e) {
      need(spec_.extras[e] > 0 && spec_.extras[e] <= kLargestSize,
           "an extra's size is not within 1 to 2^50 bytes", e);
    }
  }

  void groups() {
    if (spec_.groups.empty()) fail("the group of what always occurs is missing.");
    const ShapeSet all =
        spec_.shapes.size() >= kMostShapes ? ~ShapeSet{0} : (ShapeSet{1} << spec_.shapes.size()) - 1;
    for (std::size_t g = 0; g < spec_.groups.size(); ++g) {
      const RecordedGroup& group = spec_.groups[g];
      need((group.in & ~group.within) == 0 && (group.within & ~all) == 0 && group.within != 0,
           "a group names shapes that are not there", g);
      need(group.monomial < 0 || is_monomial(static_cast<std::uint32_t>(group.monomial)),
           "a group has an unknown product", g);
      need(is_factor(group.from), "a group's threshold is not within ±2^62", g);
    }
  }

  [[nodiscard]] bool is_group(std::uint32_t group) const { return group < spec_.groups.size(); }

  void tensors() {
    std::set<std::int32_t> ranks;
    for (std::size_t t = 0; t < spec_.tensors.size(); ++t) {
      const RecordedTensor& tensor = spec_.tensors[t];
      const bool is_form = tensor.size >= 0 && static_cast<std::size_t>(tensor.size) < spec_.forms.size();
      const bool is_table =
          tensor.size < 0 && static_cast<std::size_t>(-1 - tensor.size) < spec_.tables.size();
      need(is_form || is_table, "a tensor has no size", t);
      need(is_group(tensor.group), "a tensor has an unknown group", t);
      need(tensor.kernel < 0 || static_cast<std::size_t>(tensor.kernel) < spec_.kernels.size(),
           "a workspace has an unknown kernel", t);
      if (tensor.kept < 0) continue;
      need(static_cast<std::uint32_t>(tensor.kept) < spec_.kept && ranks.insert(tensor.kept).second,
           "two tensors are kept at one place in order", t);
    }
    for (std::size_t k = 0; k < spec_.kernels.size(); ++k) {
      need(is_kernel(spec_.kernels[k]), "a kernel has no list of sizes at a recorded shape", k);
    }
    for (std::size_t l = 0; l < spec_.loops.size(); ++l) {
      const RecordedLoop& loop = spec_.loops[l];
      need(loop.count < spec_.variables.size() && loop.plus <= 0 && loop.plus >= -kLargestPlace,
           "a loop has an unknown count", l);
      need(loop.skipped >= -kLargestPlace && loop.skipped <= kLargestPlace,
           "a loop passes over more than 1000000 items", l);
    }
  }

  [[nodiscard]] bool is_kernel(const RecordedKernel& kernel) const {
    const auto is_list = [&](const RecordedKernel::Refusal& refusal) {
      return refusal.shape < spec_.shapes.size() && !refusal.sizes.empty() &&
             std::all_of(refusal.sizes.begin(), refusal.sizes.end(),
                         [](Bytes size) { return size > 0 && size <= kLargestSize; });
    };
    return !kernel.refusals.empty() && std::all_of(kernel.refusals.begin(), kernel.refusals.end(), is_list);
  }

  void program() {
    using Kind = RecordedOp::Kind;
    bool in_loop = false;
    std::vector<bool> allocated(spec_.tensors.size(), false);
    std::vector<bool> may_be_there(spec_.tensors.size(), false);
    for (std::size_t i = 0; i < spec_.program.size(); ++i) {
      const RecordedOp& op = spec_.program[i];
      need(is_group(op.group), "an operation has an unknown group", i);
      if (op.kind == Kind::allocate || op.kind == Kind::free) {
        need(op.what < spec_.tensors.size(), "an operation has an unknown tensor", i);
        if (op.what >= spec_.tensors.size()) continue;
        const bool kept = spec_.tensors[op.what].kept >= 0;
        if (op.kind == Kind::allocate) {
          need(!allocated[op.what], "a tensor is allocated twice", i);
          need(!kept || !in_loop, "a kept tensor is made in a loop", i);
          allocated[op.what] = may_be_there[op.what] = true;
        } else {
          need(may_be_there[op.what] && !kept, "a tensor is freed that is not there", i);
        }
      }
      need(op.kind != Kind::ensure || (op.what < spec_.extras.size() && !in_loop), "an extra is unknown", i);
      need(op.kind != Kind::free_kept || op.what < spec_.kept, "a kept tensor is unknown", i);
      need(op.kind != Kind::loop || (op.what < spec_.loops.size() && !in_loop), "a loop is unknown", i);
      need(op.kind != Kind::end || in_loop, "a loop ends that did not begin", i);
      for (const std::uint32_t other : op.place.outside) {
        need(other < spec_.tensors.size() && spec_.tensors[other].kept < 0, "a free has an unknown tensor",
             i);
      }
      need(std::abs(std::int64_t{op.place.offset}) < kLargestPlace && op.place.step >= -1 &&
               op.place.step <= 1,
           "a free has a wrong place", i);
      if (op.kind == Kind::loop) mark_body(i, may_be_there);
      in_loop = op.kind == Kind::loop || (in_loop && op.kind != Kind::end);
    }
    if (in_loop) fail("a loop does not end.");
  }

  // A round may free what the round before allocated.
  void mark_body(std::size_t at, std::vector<bool>& may_be_there) const {
    for (++at; at < spec_.program.size() && spec_.program[at].kind != RecordedOp::Kind::end; ++at) {
      const RecordedOp& op = spec_.program[at];
      if (op.kind == RecordedOp::Kind::allocate && op.what < may_be_there.size())
        may_be_there[op.what] = true;
    }
  }

  void build() {
    std::vector<bool> live;
    for (std::size_t i = 0; i < spec_.build.size(); ++i) {
      const std::int64_t entry = spec_.build[i];
      if (entry > 0) {
        need(static_cast<Bytes>(entry) <= kLargestSize, "building allocates more than 2^50 bytes", i);
        live.push_back(true);
        continue;
      }
      const bool known = entry < 0 && entry >= -static_cast<std::int64_t>(live.size()) &&
                         live[static_cast<std::size_t>(-entry - 1)];
      need(known, "building frees what is not there", i);
      if (known) live[static_cast<std::size_t>(-entry - 1)] = false;
    }
  }

  void time() {
    for (std::size_t s = 0; s < spec_.time.slopes.size(); ++s) {
      need(is_monomial(spec_.time.slopes[s].monomial), "the time law has an unknown product", s);
      need(spec_.time.slopes[s].seconds >= 0, "the time law falls", s);
    }
    if (!is_monomial(spec_.time.rounds)) fail("the time law counts rounds by an unknown product.");
    if (!(spec_.time.floor_seconds >= 0 && spec_.time.base_seconds >= 0)) {
      fail("the time law has a negative part.");
    }
  }

  void failures() {
    for (std::size_t f = 0; f < spec_.failures.size(); ++f) {
      need(spec_.failures[f].point.size() == spec_.parameters.size(), "a failed step lacks parameters", f);
    }
  }

  const RecordedSpec& spec_;
  std::vector<Problem> problems_;
};

}  // namespace

void check_recorded_spec(const RecordedSpec& spec) { RecordedCheck(spec).run(); }

}  // namespace vramlab
