#include "recordings/lifetimes/uses.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/units.hpp"
#include "recordings/lifetimes/rhythm.hpp"

namespace vramlab {
namespace {

using BlockList = std::vector<ProgramBlock>;

// What PyTorch asks for at the first use of cuBLAS on a stream: 32 MiB on Hopper, else :4096:2:16:8, and of
// cuBLASLt 1 MiB right beside it (at::cuda::getChosenWorkspaceSize).
constexpr std::array<Bytes, 2> kBlasWorkspaces{32_MiB, 2 * 4096_KiB + 8 * 16_KiB};
constexpr Bytes kBlasLtWorkspace = 1_MiB;
constexpr Beat kBeside = 2;
// Blocks that belong together are made with no more than this in between.
constexpr Beat kOneGo = 16;
// Of the most blocks that a pass holds; a pass ends where a quarter is left.
constexpr std::size_t kPass = 2;
constexpr std::size_t kPassEnd = 4;
constexpr double kWhole = 0.98;  // of a size that padding may change
// What lives no longer than so many allocations and frees is not saved for anything.
constexpr Beat kBrief = 4;
constexpr double kNearlyAll = 0.9;

bool has_word(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// What the frames of a stack say.
struct StackWords {
  bool optimizer = false;
  bool communication = false;
  bool moved = false;  ///< a module's weights to the card, or to shards
};

bool is_python(const StackFrame& frame) { return frame.file.ends_with(".py"); }

bool is_optimizer(const StackFrame& frame) {
  constexpr std::array<std::string_view, 10> kFiles{"adam.py",    "adamw.py",    "sgd.py",    "optimizer.py",
                                                    "adagrad.py", "rmsprop.py",  "adamax.py", "nadam.py",
                                                    "lbfgs.py",   "adafactor.py"};
  return has_word(frame.file, "/torch/optim/") || std::ranges::find(kFiles, frame.file) != kFiles.end();
}

bool is_communication(const StackFrame& frame) {
  return has_word(frame.file, "/torch/distributed/") || has_word(frame.file, "_fsdp") ||
         frame.file.ends_with("/parallel/distributed.py") || frame.file == "distributed.py" ||
         has_word(frame.function, "c10d::");
}

StackWords words_of(const ClientProgram& program, std::uint32_t stack) {
  StackWords words;
  bool innermost = true;
  for (const std::uint32_t place : program.stacks[stack]) {
    const StackFrame& frame = program.frames[place];
    words.optimizer = words.optimizer || is_optimizer(frame);
    // Every layer of a wrapped model is called from its wrapper, so only the innermost frame counts.
    if (innermost && is_communication(frame)) words.communication = true;
    words.moved = words.moved || frame.function == "_apply" || frame.function == "_init_sharded_param";
    innermost = innermost && !is_python(frame);
  }
  return words;
}

class Uses {
 public:
  explicit Uses(const ClientProgram& program)
      : program_(program),
        beats_(program),
        uses_{std::vector<BlockUse>(program.blocks), 0},
        known_(program.blocks) {}

  ProgramUses find() {
    find_blas_workspaces();
    steps_ = find_gradients(beats_, known_);
    uses_.steps = steps_.size();
    for (const StepGradients& step : steps_)
      set(step.blocks, Category::gradients, Evidence::lifetime_and_size);
    find_weights();
    if (!steps_.empty()) {
      find_optimizer_state();
      find_buckets();
    }
    find_passing();
    if (!steps_.empty()) find_activations();
    hear_marks();
    hear_stacks();
    return std::move(uses_);
  }

 private:
  void set(ProgramBlock block, Category category, Evidence how) {
    uses_.blocks[block] = {category, how};
    known_[block] = true;
  }
  void set(const BlockList& blocks, Category category, Evidence how) {
    for (const ProgramBlock block : blocks) set(block, category, how);
  }
  [[nodiscard]] const Beats::Span& span(ProgramBlock block) const { return beats_.blocks[block]; }

  /// Kept blocks of no known use, made in [from, until).
  [[nodiscard]] BlockList kept(Beat from, Beat until) const {
    BlockList found;
    for (const ProgramBlock block : beats_.kept) {
      if (!known_[block] && span(block).birth >= from && span(block).birth < until) found.push_back(block);
    }
    return found;
  }

  // Alone among what stays: a weight of 4,096 times 4,096 in half precision is as large.
  void find_blas_workspaces() {
    const BlockList& kept = beats_.kept;
    const auto near = [&](std::size_t i, std::size_t other) {
      if (other >= kept.size()) return false;  // also what would be before the first
      const Beat from = span(kept[std::min(i, other)]).birth;
      return span(kept[std::max(i, other)]).birth - from <= kBeside;
    };
    const auto is_lt = [&](std::size_t i) { return span(kept[i]).bytes == kBlasLtWorkspace; };
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (span(kept[i]).initial ||
          std::ranges::find(kBlasWorkspaces, span(kept[i]).bytes) == kBlasWorkspaces.end())
        continue;
      const std::array<std::size_t, 2> beside{i - 1, i + 1};
      const auto is_stranger = [&](std::size_t other) { return near(i, other) && !is_lt(other); };
      if (std::ranges::any_of(beside, is_stranger)) continue;
      set(kept[i], Category::workspaces, Evidence::lifetime_and_size);
      for (const std::size_t other : beside) {
        if (near(i, other)) set(kept[other], Category::workspaces, Evidence::lifetime_and_size);
      }
    }
  }

  /// Where a program without gradients has its model: up to the first workspace, else the first long pause.
  /// Empty where there is neither: what is kept may be anything.
  [[nodiscard]] std::optional<Beat> end_of_building() const {
    constexpr Beat kPause = 64;
    Beat before = 0;
    for (const ProgramBlock block : beats_.kept) {
      const Beat birth = span(block).birth;
      if (known_[block] || (before > 0 && birth - before > kPause)) return birth;
      before = birth;
    }
    return std::nullopt;
  }

  void find_weights() {
    const std::optional<Beat> built = steps_.empty() ? end_of_building() : steps_.front().first;
    const BlockList candidates = kept(0, built.value_or(beats_.end));
    if (steps_.empty()) {  // where recording began late, its model was there already, among other things
      const bool cut =
          std::ranges::any_of(candidates, [&](ProgramBlock block) { return span(block).initial; });
      if (!cut && built) set(candidates, Category::weights, Evidence::lifetime);
      ask_for_moves_ = !cut && !built;
      return;
    }
    const SizeCounts sizes = count_sizes(beats_, steps_.front().blocks);
    const Bytes bytes = beats_.sum(steps_.front().blocks);
    const bool one_by_one = take(candidates, sizes, bytes, Category::weights);
    SizeCounts masters;  // of half-precision weights, in single precision
    for (const auto& [size, count] : sizes) masters[2 * size] = count;
    take(candidates, masters, 2 * bytes, Category::optimizer_state);
    const Beat first = steps_.front().first;
    for (const ProgramBlock block : kept(0, first)) {
      if (!span(block).initial && one_by_one && span(block).bytes == kBlasLtWorkspace) {
        set(block, Category::workspaces, Evidence::lifetime_and_size);
      } else if (!span(block).initial) {
        set(block, Category::weights,
            Evidence::lifetime);  // buffers, frozen weights, shards of shared blocks
      } else if (sizes.contains(span(block).bytes) || masters.contains(span(block).bytes)) {
        set(block, Category::optimizer_state, Evidence::lifetime_and_size);
      }
    }
  }

  // Where nearly all of `sizes` is there.
  bool take(const BlockList& from, const SizeCounts& sizes, Bytes bytes, Category category) {
    const BlockList found = matching(beats_, from, sizes);
    const bool all = static_cast<double>(beats_.sum(found)) >= kNearlyAll * static_cast<double>(bytes);
    if (all) set(found, category, Evidence::lifetime_and_size);
    return all;
  }

  // The most that is made in one go between the first backward pass and the next step, and stays.
  void find_optimizer_state() {
    const StepGradients& first = steps_.front();
    const Beat until = steps_.size() > 1 ? std::min(first.freed, steps_[1].first) : beats_.end;
    BlockList most;
    for (BlockList& burst : bursts(kept(first.last, until))) {
      if (beats_.sum(burst) > beats_.sum(most)) most = std::move(burst);
    }
    const Bytes gradients = beats_.sum(first.blocks);
    // Momentum or two moments, in the precision of the weights or in single.
    const bool whole = std::ranges::any_of(std::array{1, 2, 4}, [&](int times) {
      return is_whole(beats_.sum(most), static_cast<Bytes>(times) * gradients);
    });
    set(most, Category::optimizer_state, whole ? Evidence::lifetime_and_size : Evidence::lifetime);
  }

  [[nodiscard]] static bool is_whole(Bytes bytes, Bytes whole) {
    return static_cast<double>(bytes) >= kWhole * static_cast<double>(whole) &&
           kWhole * static_cast<double>(bytes) <= static_cast<double>(whole);
  }

  [[nodiscard]] std::vector<BlockList> bursts(const BlockList& blocks) const {
    std::vector<BlockList> found;
    for (const ProgramBlock block : blocks) {
      if (found.empty() || span(block).birth - span(found.back().back()).birth > kOneGo) found.emplace_back();
      found.back().push_back(block);
    }
    return found;
  }

  // Flat copies of all gradients, which they are exchanged in: first one block, then some made in one go.
  void find_buckets() {
    const Bytes gradients = beats_.sum(steps_.front().blocks);
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (span(block).birth > steps_.front().first) break;
      if (!known_[block] && span(block).bytes == gradients)
        set(block, Category::communication, Evidence::lifetime_and_size);
    }
    for (const BlockList& burst : bursts(kept(steps_.front().last, steps_.back().last))) {
      if (is_whole(beats_.sum(burst), gradients))
        set(burst, Category::communication, Evidence::lifetime_and_size);
    }
  }

  // What comes and goes. A recording that ends within a step holds some of that.
  [[nodiscard]] bool is_passing(ProgramBlock block) const {
    if (known_[block]) return false;
    if (span(block).death != kNeverFreed) return true;
    return !steps_.empty() && span(block).birth > steps_.back().last;
  }

  // What is freed by the next operation was only lent to the one before.
  void find_passing() {
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (!is_passing(block)) continue;
      const Beat lived = span(block).death - span(block).birth;  // huge where it is never freed
      const bool at_once = lived == 1;
      uses_.blocks[block] = {at_once ? Category::workspaces : Category::temporaries,
                             at_once ? Evidence::lifetime : Evidence::rest};
      if (lived <= kBrief) known_[block] = true;
    }
    // The optimizer's own, made and freed in one go with the sizes of the weights.
    BlockList weights;
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (uses_.blocks[block].category == Category::weights) weights.push_back(block);
    }
    const SizeCounts sizes = count_sizes(beats_, weights);
    const Bytes bytes = beats_.sum(weights);
    for (const BlockList& run : beats_.runs) {
      if (2 * beats_.sum(run) < bytes) continue;
      BlockList found = matching(beats_, run, sizes);
      std::erase_if(found, [&](ProgramBlock block) { return known_[block]; });
      if (found.size() > 1 && 2 * beats_.sum(found) >= bytes && !made_apart(beats_, found))
        set(found, Category::temporaries, Evidence::lifetime_and_size);
    }
  }

  void find_activations() {
    Beat built = 0;  // what building passes through is no activation
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (uses_.blocks[block].category == Category::weights) built = std::max(built, span(block).birth);
    }
    for (ProgramBlock block = 0; block < program_.blocks && span(block).birth < built; ++block)
      known_[block] = true;
    std::vector<std::int8_t> changes(beats_.end);
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (!is_passing(block)) continue;
      changes[span(block).birth] = 1;
      if (span(block).death != kNeverFreed) changes[span(block).death] = -1;
    }
    tops_ = tops_of(changes);
    for (ProgramBlock block = 0; block < program_.blocks; ++block) {
      if (!is_passing(block)) continue;
      const auto top = std::lower_bound(tops_.begin(), tops_.end(), span(block).birth);
      if (top != tops_.end() && *top < span(block).death)
        uses_.blocks[block] = {Category::activations, Evidence::lifetime};
    }
    find_inputs();
  }

  // The beats at which each pass holds the most blocks.
  static std::vector<Beat> tops_of(const std::vector<std::int8_t>& changes) {
    std::size_t most = 0;
    std::size_t held = 0;
    for (const std::int8_t change : changes) {
      held = change < 0 ? held - 1 : held + static_cast<std::size_t>(change);
      most = std::max(most, held);
    }
    std::vector<Beat> tops;
    std::size_t highest = 0;
    Beat at = 0;
    held = 0;
    for (Beat beat = 0; beat < changes.size(); ++beat) {
      held = changes[beat] < 0 ? held - 1 : held + static_cast<std::size_t>(changes[beat]);
      if (held > highest) {
        highest = held;
        at = beat;
      }
      const bool over = held * kPassEnd < most || beat + 1 == changes.size();
      if (over && highest * kPass >= most) tops.push_back(at);
      if (over) highest = 0;
    }
    return tops;
  }

  // What a step made before its first activation and held until its backward pass was over.
  void find_inputs() {
    Beat before = 0;
    ProgramBlock block = 0;
    for (const StepGradients& step : steps_) {
      while (block < program_.blocks && span(block).birth < before) ++block;
      for (; block < program_.blocks && span(block).birth < step.first; ++block) {
        if (uses_.blocks[block].category != Category::activations) continue;
        if (span(block).death < step.last) break;
        uses_.blocks[block] = {Category::inputs, Evidence::lifetime};
      }
      before = step.last;
    }
  }

  // Programs that name their phases.
  void hear_marks() {
    std::size_t end = program_.actions.size();
    std::string_view mark;
    std::vector<std::size_t> frees(program_.blocks, program_.actions.size());
    for (std::size_t i = program_.actions.size(); i-- > 0;) {
      const ClientAction& action = program_.actions[i];
      if (action.kind == ClientAction::Kind::mark) {
        mark = program_.texts[action.detail];
        if (mark.starts_with("before ")) mark = {};  // own_marks(): what comes before a named stretch
        end = i;
      }
      if (action.kind == ClientAction::Kind::free) frees[action.block] = i;
      if (action.kind != ClientAction::Kind::alloc || mark.empty()) continue;
      BlockUse& use = uses_.blocks[action.block];
      const bool stays = frees[action.block] > end;
      if (use.how <= Evidence::lifetime_and_size) continue;
      if (stays && (has_word(mark, "Optimizer.step") || has_word(mark, "optimizer")))
        use = {Category::optimizer_state, Evidence::annotation};
      else if (stays && frees[action.block] != program_.actions.size() && has_word(mark, "forward"))
        use = {Category::activations, Evidence::annotation};
      else if (has_word(mark, "nccl") || has_word(mark, "all_reduce") || has_word(mark, "all_gather"))
        use = {Category::communication, Evidence::annotation};
    }
  }

  void hear_stacks() {
    std::vector<StackWords> words;
    for (std::uint32_t stack = 0; stack < program_.stacks.size(); ++stack)
      words.push_back(words_of(program_, stack));
    for (const ClientAction& action : program_.actions) {
      if (action.kind != ClientAction::Kind::alloc || action.detail >= words.size()) continue;
      if (program_.stacks[action.detail].empty()) continue;
      hear(words[action.detail], span(action.block).death == kNeverFreed, uses_.blocks[action.block]);
    }
  }

  void hear(const StackWords& words, bool kept, BlockUse& use) const {
    const bool model = use.category == Category::weights || use.category == Category::gradients;
    if (model) {
      if (words.moved && use.category == Category::weights) use.how = Evidence::stack;
    } else if (words.optimizer) {
      use = {kept ? Category::optimizer_state : Category::temporaries, Evidence::stack};
    } else if (words.communication) {
      use = {Category::communication, Evidence::stack};
    } else if (ask_for_moves_ && words.moved && kept) {
      use = {Category::weights, Evidence::stack};
    }
  }

  const ClientProgram& program_;
  Beats beats_;
  ProgramUses uses_;
  std::vector<bool> known_;  ///< by block: its use does not change any more
  std::vector<StepGradients> steps_;
  std::vector<Beat> tops_;
  bool ask_for_moves_ = false;  ///< only stacks tell the model from all else that is kept
};

}  // namespace

ProgramUses uses_of(const ClientProgram& program) { return Uses(program).find(); }

}  // namespace vramlab
