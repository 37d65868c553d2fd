#include "lab/judge/atoms.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace vramlab {
namespace {

using Act = ClientAction::Kind;
using Type = Atom::Type;

// What an optimizer makes is told by its stack, or by what stays.
bool is_optimizers(const BlockUse& use) {
  return use.category == Category::optimizer_state ||
         (use.category == Category::temporaries && use.how == Evidence::stack);
}

bool is_compared(Act kind) {
  return kind != Act::free && kind != Act::record_stream && kind != Act::finish && kind != Act::mark;
}

class Finder {
 public:
  Finder(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment, std::size_t first)
      : a_(a), b_(b), alignment_(alignment), first_(first) {}

  Atoms find() {
    for (std::uint32_t i = 0; i < a_.program.actions.size(); ++i) {
      if (alignment_.b_of[i] == kUnpaired && is_compared(a_.program.actions[i].kind)) add_only_a(i);
    }
    for (std::uint32_t i = 0; i < b_.program.actions.size(); ++i) {
      const ClientAction& action = b_.program.actions[i];
      if (!is_compared(action.kind)) continue;
      const std::uint32_t partner = alignment_.a_of[i];
      if (partner == kUnpaired) {
        add_only_b(i);
      } else if (action.kind == Act::alloc) {
        add_pair(partner, i);
      }
    }
    return std::move(atoms_);
  }

 private:
  void add(Atom atom) {
    if (atom.stretch >= first_) atoms_.all.push_back(atom);
  }

  static void take(Atom& atom, const ReadProgram& read, std::uint32_t at, Category& category) {
    const ClientAction& action = read.program.actions[at];
    atom.alloc = action.kind == Act::alloc;
    if (!atom.alloc) return;
    const BlockUse& use = read.uses.blocks[action.block];
    category = use.category;
    atom.by_optimizer = atom.by_optimizer || is_optimizers(use);
  }
  void take_a(Atom& atom, std::uint32_t at) const {
    atom.a = at;
    atom.site = alignment_.site_a[at];
    atom.bytes_a = a_.program.actions[at].bytes;
    take(atom, a_, at, atom.category_a);
  }
  void take_b(Atom& atom, std::uint32_t at) const {
    atom.b = at;
    atom.site = alignment_.site_b[at];
    atom.bytes_b = b_.program.actions[at].bytes;
    take(atom, b_, at, atom.category_b);
  }

  void add_only_a(std::uint32_t at) {
    Atom atom{.type = Type::only_a, .stretch = a_.steps.stretch_of(at), .gap = alignment_.rank_a[at]};
    take_a(atom, at);
    add(atom);
  }
  void add_only_b(std::uint32_t at) {
    Atom atom{.type = Type::only_b, .stretch = b_.steps.stretch_of(at), .gap = alignment_.rank_b[at]};
    take_b(atom, at);
    add(atom);
  }
  void add_pair(std::uint32_t at_a, std::uint32_t at_b) {
    Atom atom{.type = Type::size, .stretch = b_.steps.stretch_of(at_b), .gap = alignment_.rank_b[at_b]};
    take_a(atom, at_a);
    take_b(atom, at_b);
    if (atom.bytes_a != atom.bytes_b) add(atom);
    const std::size_t freed_a = a_.lifetimes[a_.program.actions[at_a].block].freed;
    const std::size_t freed_b = b_.lifetimes[b_.program.actions[at_b].block].freed;
    atom.type = Type::life;
    atom.never_a = freed_a >= a_.program.actions.size();
    atom.never_b = freed_b >= b_.program.actions.size();
    if (atom.never_a && atom.never_b) return;
    if (!atom.never_a && !atom.never_b) {
      atom.shift = std::int64_t{alignment_.rank_b[freed_b]} - std::int64_t{alignment_.rank_a[freed_a]};
      if (std::abs(atom.shift) <= kSameMoment) {
        atoms_.moved_frees += atom.shift == 0 ? 0 : 1;
        return;
      }
    } else {
      atom.shift =
          atom.never_b ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
    }
    add(atom);
  }

  const ReadProgram& a_;
  const ReadProgram& b_;
  const Alignment& alignment_;
  std::size_t first_;
  Atoms atoms_;
};

constexpr double kNearlyAll = 0.9;  // of the weights' bytes have one ratio

/// Sizes of blocks of one category, in their order.
std::vector<Bytes> sizes_of(const ReadProgram& read, Category category, std::size_t before) {
  std::vector<Bytes> sizes;
  for (ProgramBlock block = 0; block < read.lifetimes.size(); ++block) {
    const bool counts = read.uses.blocks[block].category == category && read.lifetimes[block].born < before;
    if (counts) sizes.push_back(read.lifetimes[block].requested);
  }
  return sizes;
}

// What stays from the first step on may be anything, where the model was built before it.
std::vector<Bytes> weight_sizes(const ReadProgram& read) {
  std::vector<Bytes> built = sizes_of(read, Category::weights, read.steps.ends.front());
  return built.empty() ? sizes_of(read, Category::weights, read.program.actions.size()) : built;
}

Bytes sum_of(const std::vector<Bytes>& sizes) {
  Bytes sum = 0;
  for (const Bytes size : sizes) sum += size;
  return sum;
}

/// By which power of 2 the sizes in `a` must be multiplied so that nearly all bytes of those with fewer
/// blocks are among the others: some weights may look like something else. 1 where none does, or they are the
/// same. Both are sorted.
double precision_ratio(const std::vector<Bytes>& a, const std::vector<Bytes>& b) {
  const auto share = [&](std::uint64_t times, std::uint64_t part) {
    std::vector<Bytes> scaled_a(a);
    std::vector<Bytes> scaled_b(b);
    for (Bytes& size : scaled_a) size *= times;
    for (Bytes& size : scaled_b) size *= part;
    std::vector<Bytes> both;
    std::ranges::set_intersection(scaled_a, scaled_b, std::back_inserter(both));
    const Bytes fewer = std::min(sum_of(scaled_a), sum_of(scaled_b));
    return fewer == 0 ? 0.0 : static_cast<double>(sum_of(both)) / static_cast<double>(fewer);
  };
  const double as_it_is = share(1, 1);
  for (const auto& [times, part] : {std::pair{2U, 1U}, {1U, 2U}, {4U, 1U}, {1U, 4U}}) {
    const double scaled = share(times, part);
    if (scaled >= kNearlyAll && scaled > as_it_is) return static_cast<double>(times) / part;
  }
  return 1;
}

}  // namespace

std::int64_t Atom::change() const {
  const auto golden = static_cast<std::int64_t>(bytes_a);
  const auto now = static_cast<std::int64_t>(bytes_b);
  if (type != Type::life) return now - golden;
  return shift > 0 ? now : -now;
}

Atoms atoms_of(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment, std::size_t first) {
  return Finder(a, b, alignment, first).find();
}

void Ratios::add(Bytes a, Bytes b) {
  all_ += a;
  if (a > 0) bytes_[static_cast<double>(b) / static_cast<double>(a)] += a;
}

double Ratios::of_most(double share) const {
  if (bytes_.empty()) return 1;
  const auto most = std::ranges::max_element(bytes_, {}, [](const auto& one) { return one.second; });
  return static_cast<double>(most->second) >= share * static_cast<double>(all_) ? most->first : 1;
}

Bytes bytes_of(const ReadProgram& read, Category category) {
  return sum_of(sizes_of(read, category, read.program.actions.size()));
}

bool in_backward(const ReadProgram& read, std::size_t at) {
  const std::size_t step = read.steps.stretch_of(at);
  if (step == 0 || step > read.steps.count()) return true;
  for (std::size_t i = read.steps.begin_of(step); i < read.steps.ends[step]; ++i) {
    const ClientAction& action = read.program.actions[i];
    const bool is_gradient =
        action.kind == Act::alloc && read.uses.blocks[action.block].category == Category::gradients;
    if (is_gradient) return i < at;
  }
  return true;
}

WeightChange weight_change(const ReadProgram& a, const ReadProgram& b) {
  std::vector<Bytes> in_a = weight_sizes(a);
  std::vector<Bytes> in_b = weight_sizes(b);
  WeightChange change{.a = sum_of(in_a), .b = sum_of(in_b), .count_a = in_a.size(), .count_b = in_b.size()};
  if (in_a.size() == in_b.size()) {
    Ratios ratios;
    for (std::size_t i = 0; i < in_a.size(); ++i) ratios.add(in_a[i], in_b[i]);
    change.ratio = ratios.of_most(kNearlyAll);
    std::ranges::sort(in_a);
    std::ranges::sort(in_b);
    if (in_a == in_b) change.ratio = 1;
    change.resized = in_a != in_b && change.ratio == 1;
    return change;
  }
  std::ranges::sort(in_a);
  std::ranges::sort(in_b);
  const auto& fewer = in_a.size() < in_b.size() ? in_a : in_b;
  const auto& more = in_a.size() < in_b.size() ? in_b : in_a;
  const std::set<Bytes> known(fewer.begin(), fewer.end());
  change.ratio = precision_ratio(in_a, in_b);
  if (change.ratio != 1) return change;
  change.repeated = !fewer.empty() && std::ranges::includes(more, fewer) &&
                    std::ranges::all_of(more, [&](Bytes size) { return known.contains(size); });
  return change;
}

}  // namespace vramlab
