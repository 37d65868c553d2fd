#include "recordings/alignment/blend.hpp"

#include <algorithm>
#include <utility>

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

bool has_text(Kind kind) { return kind == Kind::settings || kind == Kind::mark; }

class Blender {
 public:
  Blender(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment,
          const Differences& differences, const std::vector<bool>& of_b)
      : a_(a),
        b_(b),
        alignment_(alignment),
        differences_(differences),
        of_b_(of_b),
        number_a_(a.program.blocks + 1),
        number_b_(b.program.blocks + 1) {
    const ClientProgram& base = of_b[0] ? b.program : a.program;
    made_.file = base.file;
    made_.device = base.device;
    made_.settings = base.settings;
    made_.segments = base.segments;
    made_.pools = std::max(a.program.pools, b.program.pools);
    made_.texts = a.program.texts;
    made_.texts.insert(made_.texts.end(), b.program.texts.begin(), b.program.texts.end());
  }

  ClientProgram make() {
    std::size_t at_a = 0;
    std::size_t at_b = 0;
    for (std::size_t i = 0; i < a_.program.actions.size(); ++i) {
      const std::uint32_t partner = alignment_.b_of[i];
      if (partner == kUnpaired) continue;
      add_between({at_a, i}, {at_b, partner});
      add_pair(i, partner);
      at_a = i + 1;
      at_b = partner + 1;
    }
    add_between({at_a, a_.program.actions.size()}, {at_b, b_.program.actions.size()});
    return std::move(made_);
  }

 private:
  static bool follows_block(Kind kind) {
    return kind == Kind::free || kind == Kind::record_stream || kind == Kind::finish;
  }

  using Range = std::pair<std::size_t, std::size_t>;

  // Between two pairs of requests, frees of the same block keep the order. Where there are none either, A's
  // own actions come first.
  void add_between(Range a, Range b) {
    for (; b.first < b.second; ++b.first) {
      const std::size_t partner = free_in_a(b.first);
      for (; partner < a.second && a.first <= partner; ++a.first) add_a(a.first);
      add_b(b.first);
    }
    for (; a.first < a.second; ++a.first) add_a(a.first);
  }

  // Where A frees what B frees here; past its end if it does not.
  [[nodiscard]] std::size_t free_in_a(std::size_t at) const {
    const ClientAction& action = b_.program.actions[at];
    const std::uint32_t born =
        action.kind == Kind::free ? alignment_.a_of[b_.lifetimes[action.block].born] : kUnpaired;
    if (born == kUnpaired) return a_.program.actions.size();
    return a_.lifetimes[a_.program.actions[born].block].freed;
  }

  void add_a(std::size_t at) {
    ClientAction action = a_.program.actions[at];
    if (follows_block(action.kind)) {
      const std::size_t born = a_.lifetimes[action.block].born;
      const std::uint32_t partner = alignment_.b_of[born];
      const CauseId cause = partner == kUnpaired ? differences_.only_a[born] : differences_.life[partner];
      if (!of_b_[cause]) add(action, number_a_[action.block]);
    } else if (!of_b_[differences_.only_a[at]]) {
      add(action, number_a_[action.block]);
    }
  }

  void add_b(std::size_t at) {
    ClientAction action = b_.program.actions[at];
    if (has_text(action.kind)) action.detail += static_cast<std::uint32_t>(a_.program.texts.size());
    if (follows_block(action.kind)) {
      const std::size_t born = b_.lifetimes[action.block].born;
      const bool paired = alignment_.a_of[born] != kUnpaired;
      if (of_b_[paired ? differences_.life[born] : differences_.only_b[born]])
        add(action, number_b_[action.block]);
    } else if (of_b_[differences_.only_b[at]]) {
      add(action, number_b_[action.block]);
    }
  }

  void add_pair(std::size_t at_a, std::size_t at_b) {
    ClientAction action = of_b_[0] ? b_.program.actions[at_b] : a_.program.actions[at_a];
    if (of_b_[0] && has_text(action.kind))
      action.detail += static_cast<std::uint32_t>(a_.program.texts.size());
    const bool size_of_b = of_b_[differences_.size[at_b] == 0 ? 0 : differences_.size[at_b]];
    action.bytes = size_of_b ? b_.program.actions[at_b].bytes : a_.program.actions[at_a].bytes;
    ProgramBlock number = 0;
    add(action, number);
    if (action.kind != Kind::alloc) return;
    number_a_[a_.program.actions[at_a].block] = number;
    number_b_[b_.program.actions[at_b].block] = number;
  }

  // `number`: of the block here; set by its allocation.
  void add(ClientAction action, ProgramBlock& number) {
    if (action.kind == Kind::alloc) {
      action.detail = 0;
      number = made_.blocks++;
    }
    if (action.kind == Kind::alloc || follows_block(action.kind)) action.block = number;
    made_.actions.push_back(action);
  }

  const ReadProgram& a_;
  const ReadProgram& b_;
  const Alignment& alignment_;
  const Differences& differences_;
  const std::vector<bool>& of_b_;
  std::vector<ProgramBlock> number_a_;  ///< by block: its number here
  std::vector<ProgramBlock> number_b_;
  ClientProgram made_;
};

}  // namespace

ClientProgram blended(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment,
                      const Differences& differences, const std::vector<bool>& of_b) {
  return Blender(a, b, alignment, differences, of_b).make();
}

}  // namespace vramlab
