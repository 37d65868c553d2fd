// Workspaces of PyTorch's reductions: their size is its own rule, and not a library's secret.
//
// Where a sum over rows (the gradient of a bias, of a norm's weight) is shared by several blocks of threads,
// they meet in a buffer and count themselves in another (aten/src/ATen/native/cuda/Reduce.cuh of PyTorch
// 2.11). A block that sums over rows has 32 x 4 threads, each with 4 columns:
//   counters   4 bytes for each block of 128 columns
//   buffer     4 bytes for each column and lane, 128 of each in a block, for each block along the rows
//   blocks along the rows, each with 64 rows or more: as many as fill the card, or as many as leave a thread
//   256 values; none below 256 values a thread, and then neither buffer is there
#include <algorithm>

#include "fit/size_laws.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kLanes = 128;         // columns of a block
constexpr std::int64_t kCounter = 4;         // bytes
constexpr std::int64_t kRows = 64;           // of a block at least: 16 values a thread, 4 threads deep
constexpr std::int64_t kFirstRows = 1021;    // from here on a thread of one block would have 256
constexpr std::int64_t kLeastBlocks = 16;    // so many of 64 rows are there then
constexpr std::int64_t kBlockThreads = 128;  // 32 x 4
constexpr Bytes kLargestCounters = 64_KiB;

/// Threads that a card holds at once, 2,048 a multiprocessor: an H100 (as its data sheet says) and an H200,
/// on which the limit was seen, have 132.
std::int64_t threads_of_card(Bytes total) {
  return total == 85'017'493'504 || total == 150'109'880'320 ? 132 * 2048 : 0;
}

class Reductions {
 public:
  Reductions(const std::vector<ShapeProgram>& shapes, const SampleValues& values, Bytes card,
             RecordedSpec& spec, std::vector<SizeKnowledge>& knowledge)
      : shapes_(shapes),
        values_(values),
        threads_(threads_of_card(card)),
        spec_(spec),
        forms_(spec.forms.size()),
        knowledge_(knowledge) {}

  FoundReductions run(const UnionProgram& program) {
    FoundReductions found{.begins = std::vector<std::optional<ReductionBegin>>(program.tensors.size()),
                          .has_limit = threads_ > 0};
    for (std::size_t t = 0; t + 1 < program.tensors.size(); ++t) {
      const UnionTensor& buffer = program.tensors[t];
      const UnionTensor& counters = program.tensors[t + 1];
      if (buffer.shapes() != counters.shapes() || !are_nested(buffer, counters)) continue;
      const auto rule = rule_of(buffer, counters);
      if (!rule) continue;
      spec_.tensors[t].size = number_of(rule->form);
      knowledge_[t] = SizeKnowledge::exact;
      found.begins[t] = found.begins[t + 1] = rule->begin;
      ++found.count;
    }
    return found;
  }

 private:
  struct Rule {
    SizeForm form;
    ReductionBegin begin;
  };

  // Allocated one after the other, and freed the other way round, wherever they are.
  [[nodiscard]] bool are_nested(const UnionTensor& outer, const UnionTensor& inner) const {
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      if (outer.in_shape[shape] < 0) continue;
      const auto first = static_cast<std::uint32_t>(outer.in_shape[shape]);
      const auto second = static_cast<std::uint32_t>(inner.in_shape[shape]);
      const std::vector<RecordedOp>& ops = shapes_[shape].ops;
      const auto is = [&](std::size_t at, RecordedOp::Kind kind, std::uint32_t what) {
        return at < ops.size() && ops[at].kind == kind && ops[at].what == what;
      };
      const auto begin = std::find_if(ops.begin(), ops.end(), [&](const RecordedOp& op) {
        return op.kind == RecordedOp::Kind::allocate && op.what == first;
      });
      const auto at = static_cast<std::size_t>(begin - ops.begin());
      if (!is(at + 1, RecordedOp::Kind::allocate, second) || !is(at + 2, RecordedOp::Kind::free, second) ||
          !is(at + 3, RecordedOp::Kind::free, first)) {
        return false;
      }
    }
    return true;
  }

  // The input of the reduction lies among the allocations with an exact form: its rows decide.
  [[nodiscard]] std::optional<Rule> rule_of(const UnionTensor& buffer, const UnionTensor& counters) const {
    const std::vector<SizeSample> samples = size_samples(buffer, shapes_, values_);
    const std::vector<SizeSample> counted = size_samples(counters, shapes_, values_);
    const Bytes count = counted.front().size;
    const bool constant = std::all_of(counted.begin(), counted.end(),
                                      [&](const SizeSample& sample) { return sample.size == count; });
    if (!constant || count % kCounter != 0 || count > kLargestCounters) return std::nullopt;
    const auto blocks = static_cast<std::int64_t>(count) / kCounter;
    const std::int64_t unit = blocks * kLanes * kLanes * kCounter;
    if (std::any_of(samples.begin(), samples.end(), [&](const SizeSample& sample) {
          return sample.size % static_cast<Bytes>(unit) != 0 ||
                 sample.size < static_cast<Bytes>(kLeastBlocks * unit);
        })) {
      return std::nullopt;
    }
    for (const std::int64_t element : {2, 4}) {  // bytes of a value of the input
      for (std::size_t f = 0; f < forms_; ++f) {
        const SizeForm& input = spec_.forms[f];
        const bool moves = std::any_of(input.terms.begin(), input.terms.end(),
                                       [](const SizeTerm& term) { return term.monomial != 0; });
        if (!moves || input.unit > 1) continue;
        const std::int64_t row = blocks * kLanes * element;
        if (auto rule = rule_with(input, row, unit, samples)) return rule;
      }
    }
    return std::nullopt;
  }

  // `row`: bytes of a row of the input.
  [[nodiscard]] std::optional<Rule> rule_with(const SizeForm& input, std::int64_t row, std::int64_t unit,
                                              const std::vector<SizeSample>& samples) const {
    const std::int64_t blocks = unit / (kLanes * kLanes * kCounter);
    Rule rule{.form = {.terms = {}, .unit = unit}, .begin = {}};
    for (const SizeTerm& term : input.terms) {
      // unit / 64 bytes of the buffer for each row; a whole multiple of a byte of the input
      rule.form.terms.push_back({term.monomial, term.numerator * (unit / kRows / row), term.denominator});
    }
    if (threads_ > 0) {
      const std::int64_t resident = threads_ / kBlockThreads;
      if (blocks > resident) return std::nullopt;
      rule.form.most = unit * ((resident + blocks - 1) / blocks);
    }
    if (!std::all_of(samples.begin(), samples.end(), [&](const SizeSample& sample) {
          return rule.form.value(sample.monomials) == sample.size;
        })) {
      return std::nullopt;
    }
    if (input.terms.size() == 1) {
      const SizeTerm& term = input.terms.front();
      rule.begin = {static_cast<std::int32_t>(term.monomial),
                    (kFirstRows * row * term.denominator + term.numerator - 1) / term.numerator};
    }
    return rule;
  }

  std::int32_t number_of(const SizeForm& form) {
    const auto known = std::find(spec_.forms.begin(), spec_.forms.end(), form);
    if (known == spec_.forms.end()) {
      spec_.forms.push_back(form);
      return static_cast<std::int32_t>(spec_.forms.size() - 1);
    }
    return static_cast<std::int32_t>(known - spec_.forms.begin());
  }

  const std::vector<ShapeProgram>& shapes_;
  const SampleValues& values_;
  std::int64_t threads_;  ///< of the card at once; 0 = not known
  RecordedSpec& spec_;
  std::size_t forms_;  ///< before those found here
  std::vector<SizeKnowledge>& knowledge_;
};

}  // namespace

FoundReductions find_reductions(const UnionProgram& program, const std::vector<ShapeProgram>& shapes,
                                const SampleValues& values, Bytes card, RecordedSpec& spec,
                                std::vector<SizeKnowledge>& knowledge) {
  return Reductions(shapes, values, card, spec, knowledge).run(program);
}

}  // namespace vramlab
