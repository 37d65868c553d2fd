#include "recordings/lifetimes/rhythm.hpp"

#include <algorithm>

namespace vramlab {
namespace {

using Blocks = std::vector<ProgramBlock>;

// Of what is kept before, weights and their copies in single precision, this share must have gradients for
// the first step to count; of the first step's gradients, this share must come again.
constexpr double kLeastOfWeights = 0.3;
constexpr double kLeastWhereCut = 0.2;  // beside the weights there is the optimizer's state, not told apart
constexpr double kLeastAgain = 0.9;
// Shards and flat buffers are padded.
constexpr double kPadding = 0.02;
// More than this happens between building a model and its first gradient.
constexpr Beat kLeastOfForward = 8;

bool at_least(double share, Bytes part, Bytes whole) {
  return static_cast<double>(part) >= share * static_cast<double>(whole);
}

StepGradients step_of(const Beats& beats, Blocks blocks) {
  StepGradients step;
  step.first = kNeverFreed;
  for (const ProgramBlock block : blocks) {
    const Beats::Span& span = beats.blocks[block];
    step.first = std::min(step.first, span.birth);
    step.last = std::max(step.last, span.birth);
    step.freed = std::min(step.freed, span.death);
  }
  step.blocks = std::move(blocks);
  return step;
}

/// What is kept and may be weights, with the sums up to each.
struct Weights {
  Blocks blocks;
  std::vector<Bytes> sums{0};
  bool cut = false;  ///< some were there when recording began

  Weights(const Beats& beats, const std::vector<bool>& before) {
    for (const ProgramBlock block : beats.kept) {
      if (before[block]) continue;
      blocks.push_back(block);
      sums.push_back(sums.back() + beats.blocks[block].bytes);
      cut = cut || beats.blocks[block].initial;
    }
  }
  // Program blocks are numbered in the order of their births.
  [[nodiscard]] std::size_t older_than(ProgramBlock block) const {
    return static_cast<std::size_t>(std::lower_bound(blocks.begin(), blocks.end(), block) - blocks.begin());
  }
  [[nodiscard]] Blocks first(std::size_t count) const {
    return {blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

// The oldest blocks of a run that together are as large as `whole`: shards of several weights share a block.
Blocks oldest_of_size(const Beats& beats, Blocks run, Bytes whole) {
  std::sort(run.begin(), run.end());
  const auto padding = static_cast<Bytes>(kPadding * static_cast<double>(whole));
  Bytes sum = 0;
  std::size_t taken = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    sum += beats.blocks[run[i]].bytes;
    if (sum > whole + padding) break;
    if (sum + padding >= whole) taken = i + 1;
  }
  run.resize(taken);
  return run;
}

Blocks first_gradients(const Beats& beats, const Weights& weights) {
  const double least = weights.cut ? kLeastWhereCut : kLeastOfWeights;
  for (const bool shared : {false, true}) {
    for (const Blocks& run : beats.runs) {
      const std::size_t older = weights.older_than(*std::min_element(run.begin(), run.end()));
      const Bytes whole = weights.sums[older];
      if (whole == 0 || !at_least(least, beats.sum(run), whole)) continue;
      Blocks found = shared ? oldest_of_size(beats, run, whole)
                            : matching(beats, run, count_sizes(beats, weights.first(older)));
      if (found.size() > 1 && at_least(least, beats.sum(found), whole) && made_apart(beats, found))
        return found;
    }
  }
  return {};
}

// Gradients that are set to zero, or of the only step of a recording, are kept: a second copy of the weights,
// made over the length of a backward pass.
Blocks kept_gradients(const Beats& beats, const Weights& weights) {
  if (weights.cut) return {};  // what was there before has no order
  for (std::size_t i = 1; i < weights.blocks.size(); ++i) {
    const Beat gap = beats.blocks[weights.blocks[i]].birth - beats.blocks[weights.blocks[i - 1]].birth;
    if (gap <= kLeastOfForward) continue;
    const Blocks rest{weights.blocks.begin() + static_cast<std::ptrdiff_t>(i), weights.blocks.end()};
    Blocks found = matching(beats, rest, count_sizes(beats, weights.first(i)));
    if (at_least(kLeastAgain, beats.sum(found), weights.sums[i]) && made_apart(beats, found)) return found;
  }
  return {};
}

}  // namespace

Beats::Beats(const ClientProgram& program) : blocks(program.blocks) {
  using Kind = ClientAction::Kind;
  std::vector<ProgramBlock> run;
  Beat beat = 0;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    const ClientAction& action = program.actions[i];
    if (action.kind == Kind::alloc) {
      blocks[action.block] = {action.bytes, beat++, kNeverFreed, i < program.initial_actions};
      if (run.size() > 1) runs.push_back(run);
      run.clear();
    } else if (action.kind == Kind::free && blocks[action.block].death == kNeverFreed) {
      blocks[action.block].death = beat++;
      run.push_back(action.block);
    }
  }
  end = beat;
  if (run.size() > 1) runs.push_back(run);
  for (const ProgramBlock block : run) {  // of a program that ends, what it had for long
    if (2 * blocks[block].birth < end) blocks[block].death = kNeverFreed;
  }
  for (ProgramBlock block = 0; block < program.blocks; ++block) {
    if (blocks[block].death == kNeverFreed) kept.push_back(block);
  }
}

Bytes Beats::sum(const std::vector<ProgramBlock>& of) const {
  Bytes bytes = 0;
  for (const ProgramBlock block : of) bytes += blocks[block].bytes;
  return bytes;
}

SizeCounts count_sizes(const Beats& beats, const std::vector<ProgramBlock>& blocks) {
  SizeCounts counts;
  for (const ProgramBlock block : blocks) ++counts[beats.blocks[block].bytes];
  return counts;
}

std::vector<ProgramBlock> matching(const Beats& beats, const std::vector<ProgramBlock>& from,
                                   SizeCounts counts) {
  Blocks sorted = from;
  std::sort(sorted.begin(), sorted.end());
  Blocks found;
  for (const ProgramBlock block : sorted) {
    const auto count = counts.find(beats.blocks[block].bytes);
    if (count == counts.end() || count->second == 0) continue;
    --count->second;
    found.push_back(block);
  }
  return found;
}

bool made_apart(const Beats& beats, const std::vector<ProgramBlock>& blocks) {
  Blocks sorted = blocks;
  std::sort(sorted.begin(), sorted.end());
  std::size_t in_one_go = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Beats::Span& span = beats.blocks[sorted[i]];
    if (!span.initial && span.birth - beats.blocks[sorted[i - 1]].birth == 1) ++in_one_go;
  }
  return 2 * in_one_go < sorted.size() - 1;
}

std::vector<StepGradients> find_gradients(const Beats& beats, const std::vector<bool>& before) {
  const Weights weights(beats, before);
  const Blocks first = first_gradients(beats, weights);
  if (first.empty()) {
    Blocks kept = kept_gradients(beats, weights);
    return kept.empty() ? std::vector<StepGradients>{} : std::vector{step_of(beats, std::move(kept))};
  }
  const SizeCounts sizes = count_sizes(beats, first);
  const Bytes bytes = beats.sum(first);
  std::vector<StepGradients> steps;
  for (const Blocks& run : beats.runs) {
    if (!at_least(kLeastAgain, beats.sum(run), bytes)) continue;
    Blocks found = matching(beats, run, sizes);
    if (at_least(kLeastAgain, beats.sum(found), bytes) && made_apart(beats, found))
      steps.push_back(step_of(beats, std::move(found)));
  }
  Blocks rest;  // the last step's are kept
  for (const ProgramBlock block : weights.blocks) {
    if (beats.blocks[block].birth > steps.back().freed) rest.push_back(block);
  }
  if (Blocks last = matching(beats, rest, sizes); !last.empty())
    steps.push_back(step_of(beats, std::move(last)));
  return steps;
}

}  // namespace vramlab
