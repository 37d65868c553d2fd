#include "fit/union_program.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "fit/alignment.hpp"

namespace vramlab {

namespace {

using Kind = RecordedOp::Kind;

ShapeProgram written_program(const StepRecord& step, std::optional<std::uint32_t> extra) {
  ShapeProgram program{.parameters = step.mark.parameters};
  std::vector<std::uint32_t> number(step.allocations.size(), 0);
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < step.allocations.size(); ++i) {
    const StepAllocation& allocation = step.allocations[i];
    if (allocation.fate == Fate::forever) continue;
    number[i] = static_cast<std::uint32_t>(program.allocations.size());
    program.allocations.push_back({{allocation.size},
                                   -1,
                                   allocation.fate == Fate::kept ? rank++ : -1,
                                   allocation.is_brief(),
                                   allocation.stream});
  }
  for (const StepAction& action : step.actions) {
    switch (action.kind) {
      case StepAction::Kind::allocate:
        if (step.allocations[action.what].fate != Fate::forever) {
          program.ops.push_back({Kind::allocate, number[action.what]});
        } else if (extra) {
          program.ops.push_back({Kind::ensure, (*extra)++});
        }
        break;
      case StepAction::Kind::free:
        program.ops.push_back({Kind::free, number[action.what]});
        break;
      case StepAction::Kind::free_kept:
        if (!extra) program.ops.push_back({Kind::free_kept, action.what});
        break;
    }
  }
  return program;
}

}  // namespace

ShapeProgram shape_program(const StepRecord& step) { return written_program(step, std::nullopt); }

ShapeProgram making_program(const StepRecord& step, std::uint32_t first_extra) {
  return written_program(step, first_extra);
}

namespace {

__extension__ using Wide = __int128;

/// Both sequences merged by their alignment: pairs once, everything else at its place (the first sequence's
/// before the second's). Each entry gives the places in both; `kNoPlace` where one has none.
constexpr std::size_t kNoPlace = static_cast<std::size_t>(-1);
template <class Score>
Alignment merge_sequences(std::size_t first, std::size_t second, const Score& score) {
  Alignment merged;
  std::size_t i = 0;
  std::size_t j = 0;
  const auto advance = [&](std::size_t to_i, std::size_t to_j) {
    while (i < to_i) merged.emplace_back(i++, kNoPlace);
    while (j < to_j) merged.emplace_back(kNoPlace, j++);
  };
  for (const auto& [a, b] : align_sequences(first, second, score)) {
    advance(a, b);
    merged.emplace_back(i++, j++);
  }
  advance(first, second);
  return merged;
}

// --- Shapes merged one after the other ---

constexpr std::int64_t kOneProduct = 30;
constexpr std::int64_t kSimilar = 10;
constexpr std::int64_t kBothLarge = 6;
constexpr std::int64_t kSameLoop = 1'000'000;
constexpr std::int64_t kSameAllocation = 100'000;  // above all frees together
constexpr std::int64_t kSameBody = 100;            // two allocations of one loop's body
constexpr Bytes kLarge = 1_MiB;

/// What alignment of allocations sees: allocations, and the borders of loops between them.
std::vector<RecordedOp> items_of(const ShapeProgram& program) {
  std::vector<RecordedOp> items;
  std::copy_if(program.ops.begin(), program.ops.end(), std::back_inserter(items), [](const RecordedOp& op) {
    return op.kind == Kind::allocate || op.kind == Kind::loop || op.kind == Kind::end;
  });
  return items;
}

Bytes bytes_of(const ShapeProgram& program) {
  Bytes total = 0;
  for (const ShapeAllocation& one : program.allocations) {
    total = std::accumulate(one.sizes.begin(), one.sizes.end(), total);
  }
  return total;
}

/// An entry of the union's list of allocations and borders.
struct UnionItem {
  RecordedOp op;
  UnionTensor tensor{};  ///< of an allocation
};

/// By allocation of a program: its number in the union, if it has one.
using Numbers = std::vector<std::optional<std::uint32_t>>;

class Merger {
 public:
  Merger(const std::vector<ShapeProgram>& shapes, const std::vector<std::vector<std::int64_t>>& monomials,
         const std::vector<std::vector<std::int64_t>>& in_loops)
      : shapes_(shapes),
        monomials_(monomials),
        in_loops_(in_loops),
        memory_(2 * shapes.size() * shapes.size()) {}

  UnionProgram run(const std::vector<MakingStep>& making) {
    std::vector<std::size_t> order(shapes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const std::size_t count_a = shapes_[a].allocations.size();
      const std::size_t count_b = shapes_[b].allocations.size();
      return count_a != count_b ? count_a > count_b : bytes_of(shapes_[a]) > bytes_of(shapes_[b]);
    });
    for (const std::size_t shape : order) add_allocations(shape);
    // Every shape allocates in the order of the list. With all of it there from the start, two shapes cannot
    // put their own tensors into an order that a third contradicts.
    for (UnionItem& item : list_) {
      if (item.op.kind == Kind::allocate) number(item);
      result_.ops.push_back({item.op, 0});
    }
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      merge(renumbered(shapes_[shape], numbers_[shape]), ShapeSet{1} << shape);
    }
    // Only extras are taken from these steps; the rest is the same step once more, and what is not tells
    // nothing of their place.
    for (const MakingStep& step : making) {
      merge(renumbered(step.program, numbers_of_first_step(step.program, step.shape)), 0);
    }
    std::erase_if(result_.ops,
                  [](const UnionOp& op) { return op.shapes == 0 && op.op.kind != Kind::ensure; });
    return std::move(result_);
  }

 private:
  void number(UnionItem& item) {
    item.op.what = static_cast<std::uint32_t>(result_.tensors.size());
    for (std::size_t shape = 0; shape < shapes_.size(); ++shape) {
      const std::int32_t local = item.tensor.in_shape[shape];
      if (local >= 0) numbers_[shape][static_cast<std::size_t>(local)] = item.op.what;
    }
    result_.tensors.push_back(std::move(item.tensor));
  }

  void add_allocations(std::size_t shape) {
    const std::vector<RecordedOp> items = items_of(shapes_[shape]);
    numbers_[shape].resize(shapes_[shape].allocations.size());
    std::vector<UnionItem> merged;
    const auto score_of = [&](std::size_t i, std::size_t j) { return score(list_[i], shape, items[j]); };
    for (const auto& [i, j] : merge_sequences(list_.size(), items.size(), score_of)) {
      UnionItem item;
      if (i != kNoPlace) {
        item = std::move(list_[i]);
      } else {
        item.op = items[j];
        item.tensor.in_shape.assign(shapes_.size(), -1);
      }
      if (j != kNoPlace) item.tensor.in_shape[shape] = static_cast<std::int32_t>(items[j].what);
      merged.push_back(std::move(item));
    }
    list_ = std::move(merged);
  }

  std::int64_t score(const UnionItem& item, std::size_t shape, const RecordedOp& other) {
    if (item.op.kind != other.kind) return 0;
    if (other.kind != Kind::allocate) return item.op.what == other.what ? kSameLoop : 0;
    const ShapeAllocation& one = shapes_[shape].allocations[other.what];
    std::int64_t best = 0;
    for (std::size_t at = 0; at < shapes_.size(); ++at) {
      const ShapeAllocation* known = item.tensor.in(shapes_, at);
      if (known == nullptr) continue;
      if (known->loop != one.loop || (known->kept >= 0) != (one.kept >= 0) || known->stream != one.stream) {
        return 0;
      }
      best = std::max(best, relation(at, known->sizes[0], shape, one.sizes[0], one.loop >= 0));
    }
    return best;
  }

  // In loops sizes differ from item to item, so that they say less than the order.
  std::int64_t relation(std::size_t a, Bytes size_a, std::size_t b, Bytes size_b, bool in_loop) {
    auto& known = memory_[((in_loop ? shapes_.size() : 0) + a) * shapes_.size() + b];
    const auto [entry, fresh] = known.try_emplace({size_a, size_b}, 0);
    const auto& values = in_loop ? in_loops_ : monomials_;
    if (fresh) entry->second = compare(values[a], size_a, values[b], size_b);
    return in_loop ? kSameBody + entry->second : entry->second;
  }

  [[nodiscard]] static std::int64_t compare(const std::vector<std::int64_t>& values_a, Bytes size_a,
                                            const std::vector<std::int64_t>& values_b, Bytes size_b) {
    for (std::size_t m = 0; m < values_a.size(); ++m) {
      if (static_cast<Wide>(size_a) * values_b[m] == static_cast<Wide>(size_b) * values_a[m] &&
          values_a[m] != 0) {
        return kOneProduct;
      }
    }
    const Bytes low = std::min(size_a, size_b);
    const Bytes high = std::max(size_a, size_b);
    if (100 * static_cast<Wide>(high) <= 107 * static_cast<Wide>(low)) return kSimilar;
    return low >= kLarge && high <= 4 * low ? kBothLarge : 0;
  }

  // Those that the settled step of the shape makes, too.
  [[nodiscard]] Numbers numbers_of_first_step(const ShapeProgram& first, std::size_t shape) const {
    const ShapeProgram& settled = shapes_[shape];
    if (first.allocations.size() == settled.allocations.size()) return numbers_[shape];
    const std::vector<RecordedOp> known = items_of(settled);
    const std::vector<RecordedOp> items = items_of(first);
    const auto score_of = [&](std::size_t i, std::size_t j) -> std::int64_t {
      if (known[i].kind != items[j].kind) return 0;
      if (items[j].kind != Kind::allocate) return known[i].what == items[j].what ? kSameLoop : 0;
      const ShapeAllocation& a = settled.allocations[known[i].what];
      const ShapeAllocation& b = first.allocations[items[j].what];
      return a.loop == b.loop && a.sizes[0] == b.sizes[0] ? kSameAllocation : 0;
    };
    Numbers numbers(first.allocations.size());
    for (const auto& [i, j] : merge_sequences(known.size(), items.size(), score_of)) {
      if (i == kNoPlace || j == kNoPlace || items[j].kind != Kind::allocate) continue;
      numbers[items[j].what] = numbers_[shape][known[i].what];
    }
    return numbers;
  }

  // The operations on what has a number, with the numbers of the union.
  static std::vector<RecordedOp> renumbered(const ShapeProgram& program, const Numbers& numbers) {
    std::vector<RecordedOp> ops;
    for (RecordedOp op : program.ops) {
      std::erase_if(op.place.outside, [&](std::uint32_t other) { return !numbers[other]; });
      for (std::uint32_t& other : op.place.outside) other = *numbers[other];
      if (op.kind == Kind::allocate || op.kind == Kind::free) {
        if (!numbers[op.what]) continue;
        op.what = *numbers[op.what];
      }
      ops.push_back(std::move(op));
    }
    return ops;
  }

  void merge(const std::vector<RecordedOp>& ops, ShapeSet bit) {
    const auto& known = result_.ops;
    const auto score_of = [&](std::size_t i, std::size_t j) -> std::int64_t {
      if (known[i].op.kind != ops[j].kind || known[i].op.what != ops[j].what) return 0;
      if (ops[j].kind == Kind::loop || ops[j].kind == Kind::end) return kSameLoop;
      if (ops[j].kind == Kind::allocate) return kSameAllocation;
      return known[i].op == ops[j] ? 1 : 0;
    };
    std::vector<UnionOp> merged;
    for (const auto& [i, j] : merge_sequences(known.size(), ops.size(), score_of)) {
      UnionOp op = i != kNoPlace ? known[i] : UnionOp{ops[j], 0};
      if (j != kNoPlace) op.shapes |= bit;
      merged.push_back(std::move(op));
    }
    result_.ops = std::move(merged);
  }

  const std::vector<ShapeProgram>& shapes_;
  const std::vector<std::vector<std::int64_t>>& monomials_;
  const std::vector<std::vector<std::int64_t>>& in_loops_;
  std::vector<std::map<std::pair<Bytes, Bytes>, std::int64_t>> memory_;  // by pair of shapes
  std::vector<UnionItem> list_;
  std::vector<Numbers> numbers_ = std::vector<Numbers>(shapes_.size());  // by shape
  UnionProgram result_;
};

}  // namespace

ShapeSet UnionTensor::shapes() const {
  ShapeSet shapes = 0;
  for (std::size_t shape = 0; shape < in_shape.size(); ++shape) {
    if (in_shape[shape] >= 0) shapes |= ShapeSet{1} << shape;
  }
  return shapes;
}

const ShapeAllocation* UnionTensor::in(const std::vector<ShapeProgram>& shapes, std::size_t shape) const {
  return in_shape[shape] < 0 ? nullptr
                             : &shapes[shape].allocations[static_cast<std::size_t>(in_shape[shape])];
}

UnionProgram merge_shapes(const std::vector<ShapeProgram>& shapes,
                          const std::vector<std::vector<std::int64_t>>& monomials,
                          const std::vector<std::vector<std::int64_t>>& in_loops,
                          const std::vector<MakingStep>& making) {
  return Merger(shapes, monomials, in_loops).run(making);
}

}  // namespace vramlab
