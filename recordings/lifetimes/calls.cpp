#include "recordings/lifetimes/calls.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "recordings/lifetimes/call_paths.hpp"
#include "recordings/snapshot/annotated_stacks.hpp"

namespace vramlab {
namespace {

using CallStackId = std::uint32_t;

// A line that calls whatever it was given: the call is named by who gave it.
bool only_passes_on(const StackFrame& frame) { return frame.function == "__call__" || is_container(frame); }

// "model.layers.*" for "model.layers.3", of annotations "layer *" for "layer 3": repeats of a list are
// counted.
std::string module_place(const StackFrame& frame) {
  const std::string& name = frame.function;
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last == std::string::npos || last + 1 == name.size()) return name;
  const bool annotated =
      frame.file == kAnnotationFile && std::isalnum(static_cast<unsigned char>(name[last])) == 0;
  return name[last] == '.' || annotated ? name.substr(0, last + 1) + '*' : name;
}

/// Reads the calls of a program from the stacks of its allocations.
class StackCalls {
 public:
  explicit StackCalls(const ClientProgram& program) : program_(program), paths_(call_paths(program)) {
    find_main_function();
  }

  ModelCalls read() {
    const bool annotated = std::ranges::any_of(
        program_.frames, [](const StackFrame& frame) { return frame.file == kAnnotationFile; });
    calls_.source = annotated ? CallSource::annotations : CallSource::stacks;
    std::size_t end = program_.actions.size();
    for (std::size_t i = program_.initial_actions; i < program_.actions.size(); ++i) {
      const ClientAction& action = program_.actions[i];
      if (action.kind != ClientAction::Kind::alloc) continue;
      const bool forward = is_forward(action.detail);
      if (forward && end < i) end_pass(end, i);
      if (forward) {
        end = program_.actions.size();
        allocs_.push_back(i);
      } else if (!allocs_.empty() && end == program_.actions.size()) {
        end = i;
      }
    }
    if (end < program_.actions.size()) end_pass(end, program_.actions.size());
    return std::move(calls_);
  }

 private:
  using Function = std::pair<std::string, std::string>;

  [[nodiscard]] Function function_of(std::uint32_t frame) const {
    return {program_.frames[frame].file, program_.frames[frame].function};
  }

  // The threads of backward enter the program's code elsewhere.
  void find_main_function() {
    std::map<Function, std::size_t> counts;
    for (const ClientAction& action : program_.actions) {
      if (action.kind == ClientAction::Kind::alloc && !lines(action.detail).empty())
        ++counts[function_of(lines(action.detail).front().frame)];
    }
    const auto most = std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; });
    if (most != counts.end()) main_ = most->first;
  }

  [[nodiscard]] const std::vector<CallPath::Line>& lines(CallStackId stack) const {
    return stack < paths_.size() ? paths_[stack].lines : none_;
  }
  [[nodiscard]] const std::vector<CallPath::Line>& lines_at(std::size_t alloc) const {
    return lines(program_.actions[allocs_[alloc]].detail);
  }
  [[nodiscard]] bool is_forward(CallStackId stack) const {
    return !lines(stack).empty() && !paths_[stack].of_autograd &&
           function_of(lines(stack).front().frame) == main_;
  }

  // `allocs_` holds those of the forward.
  void end_pass(std::size_t backward, std::size_t end) {
    calls_.passes.push_back({allocs_.front(), backward, end});
    numbers_.clear();
    split(0, allocs_.size(), 0, kNoCall);
    allocs_.clear();
  }

  // Allocations [from, to) have their first `depth` lines in common.
  void split(std::size_t from, std::size_t to, std::size_t depth, std::uint32_t parent) {
    for (std::size_t i = from; i < to;) {
      if (lines_at(i).size() <= depth) {
        ++i;
        continue;
      }
      const CallPath::Line line = lines_at(i)[depth];
      std::size_t next = i + 1;
      while (next < to && lines_at(next).size() > depth && lines_at(next)[depth] == line) ++next;
      if (line.calls && !calls_container(i, depth)) {
        add_calls(i, next, depth, parent);
      } else {
        split(i, next, depth + 1, parent);
      }
      i = next;
    }
  }

  void add_calls(std::size_t from, std::size_t to, std::size_t depth, std::uint32_t parent) {
    const std::vector<std::size_t> begins = beginnings(from, to, depth);
    for (std::size_t k = 0; k < begins.size(); ++k) {
      const std::size_t end = k + 1 < begins.size() ? begins[k + 1] : to;
      const std::uint32_t place = place_of(lines_at(begins[k]), depth);
      const auto number = static_cast<std::uint32_t>(calls_.calls.size());
      calls_.calls.push_back({.place = place,
                              .number = numbers_[place]++,
                              .pass = static_cast<std::uint32_t>(calls_.passes.size() - 1),
                              .parent = parent,
                              .begin = allocs_[begins[k]],
                              .end = end < allocs_.size() ? allocs_[end] : calls_.passes.back().backward,
                              .has_calls = false});
      if (parent != kNoCall) calls_.calls[parent].has_calls = true;
      split(begins[k], end, depth + 1, number);
    }
  }

  std::uint32_t place_of(const std::vector<CallPath::Line>& path, std::size_t depth) {
    while (depth > 0 && only_passes_on(program_.frames[path[depth].frame])) --depth;
    const StackFrame& frame = program_.frames[path[depth].frame];
    const std::string name = is_module_name(frame)
                                 ? module_place(frame)
                                 : std::string{last_part(frame.file)} + ':' + std::to_string(frame.line);
    const auto [place, is_new] = places_.try_emplace(name, static_cast<std::uint32_t>(places_.size()));
    if (is_new) calls_.places.push_back(name);
    return place->second;
  }

  // Where each call of one line begins.
  [[nodiscard]] std::vector<std::size_t> beginnings(std::size_t from, std::size_t to,
                                                    std::size_t depth) const {
    if (is_one_line(from, to, depth + 1)) return {from};  // and what repeats is called from there
    std::vector<std::size_t> changes;                     // of one stack to another
    for (std::size_t i = from; i < to; ++i) {
      if (i == from || stack_at(i) != stack_at(i - 1)) changes.push_back(i);
    }
    const std::size_t period = period_of(changes);
    std::vector<std::size_t> begins{from};
    // A name is that of one module, and of one call of it, unless the whole shows several.
    if (is_module_name(program_.frames[lines_at(from)[depth].frame]) && period == changes.size())
      return begins;
    std::size_t begun = 0;  // in `changes`
    for (std::size_t k = 1; k < changes.size(); ++k) {
      const bool again =
          period < changes.size()
              ? k % period == 0
              : callee(changes[k], depth) != callee(changes[begun], depth) ||
                    (begins_alike(changes, begun, k) && !is_one_line(changes[begun], changes[k], depth + 1));
      if (!again) continue;
      begins.push_back(changes[k]);
      begun = k;
    }
    return begins;
  }

  [[nodiscard]] bool is_one_line(std::size_t from, std::size_t to, std::size_t depth) const {
    for (std::size_t i = from; i < to; ++i) {
      if (lines_at(i).size() <= depth || lines_at(i)[depth] != lines_at(from)[depth]) return false;
    }
    return true;
  }

  // A call goes on to other lines before it is made again. A line that calls one function twice shows its
  // stack twice in one call, but not what comes behind it.
  [[nodiscard]] bool begins_alike(const std::vector<std::size_t>& changes, std::size_t a,
                                  std::size_t b) const {
    if (stack_at(changes[a]) != stack_at(changes[b])) return false;
    if (b + 1 == changes.size()) return b == a + 1;
    return stack_at(changes[a + 1]) == stack_at(changes[b + 1]);
  }

  [[nodiscard]] CallStackId stack_at(std::size_t alloc) const {
    return program_.actions[allocs_[alloc]].detail;
  }
  [[nodiscard]] std::optional<Function> callee(std::size_t alloc, std::size_t depth) const {
    const auto& path = lines_at(alloc);
    return depth + 1 < path.size() ? std::optional(function_of(path[depth + 1].frame)) : std::nullopt;
  }
  // A container's parts are calls from the line that calls it.
  [[nodiscard]] bool calls_container(std::size_t alloc, std::size_t depth) const {
    const auto& path = lines_at(alloc);
    return depth + 1 < path.size() && is_container(program_.frames[path[depth + 1].frame]);
  }

  // The shortest one that the stacks have throughout; their number if they have none.
  [[nodiscard]] std::size_t period_of(const std::vector<std::size_t>& changes) const {
    for (std::size_t period = 1; 2 * period <= changes.size(); ++period) {
      if (changes.size() % period != 0) continue;
      std::size_t k = period;
      while (k < changes.size() && stack_at(changes[k]) == stack_at(changes[k - period])) ++k;
      if (k == changes.size()) return period;
    }
    return changes.size();
  }

  const ClientProgram& program_;
  std::vector<CallPath> paths_;  ///< by stack
  const std::vector<CallPath::Line> none_;
  Function main_;
  std::vector<std::size_t> allocs_;  ///< actions of the forward that is read
  std::map<std::string, std::uint32_t> places_;
  std::map<std::uint32_t, std::uint32_t> numbers_;  ///< by place: calls in this pass so far
  ModelCalls calls_;
};

/// A stretch of allocations that repeats: `count` times `period` of them from `first` on.
struct Repetition {
  std::size_t first = 0;
  std::size_t period = 0;
  std::size_t count = 0;
};

constexpr std::size_t kLeastPeriod = 4;  // operations of a layer
constexpr std::size_t kLongestForward = 20'000;

/// The activations of a forward.
struct Held {
  std::size_t count = 0;
  Bytes bytes = 0;
  Bytes most = 0;

  void add(Bytes more) {
    ++count;
    bytes += more;
    most = std::max(most, bytes);
  }
  /// Without that block nothing is left but what a program keeps to look at (a loss).
  bool ends_with(Bytes freed) {
    bytes -= std::min(bytes, freed);
    return bytes <= most / 100;
  }
};

/// Reads calls from the sizes alone: layers that are alike ask for the same ones.
class StructureCalls {
 public:
  StructureCalls(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                 const ProgramUses& uses)
      : program_(program), lifetimes_(lifetimes), uses_(uses) {}

  ModelCalls read() {
    find_passes();
    std::size_t period = 0;
    for (std::uint32_t pass = 0; pass < calls_.passes.size(); ++pass) {
      const std::vector<std::size_t> allocs = allocs_of(calls_.passes[pass]);
      if (allocs.size() > kLongestForward) continue;
      const Repetition found = repetition(allocs, period);
      if (found.count < 2) continue;
      period = found.period;
      add_calls(pass, allocs, found);
    }
    calls_.source = calls_.calls.empty() ? CallSource::none : CallSource::structure;
    return std::move(calls_);
  }

 private:
  // A pass ends with the last of the gradients that were made together. Later parts of a batch add theirs to
  // those of the first: they end where the activations of a forward that is like the one before are freed.
  void find_passes() {
    std::size_t last_activation = 0;
    std::size_t begin = program_.initial_actions;
    std::size_t known = 0;  // activations of the forward before
    Held held;
    bool in_backward = false;
    for (std::size_t i = program_.initial_actions; i < program_.actions.size(); ++i) {
      const ClientAction& action = program_.actions[i];
      const Category category = uses_.blocks[action.block].category;
      if (action.kind == ClientAction::Kind::free) {
        const bool ends =
            category == Category::activations && held.ends_with(lifetimes_[action.block].rounded);
        if (!ends || in_backward || !are_alike(held.count, known)) continue;
        calls_.passes.push_back({begin, last_activation + 1, i + 1});
        in_backward = true;
      } else if (action.kind != ClientAction::Kind::alloc) {
        continue;
      } else if (category == Category::gradients && last_activation > begin) {
        if (!in_backward) {
          calls_.passes.push_back({begin, last_activation + 1, i});
          known = held.count;
        }
        in_backward = true;
        calls_.passes.back().end = end_of_backward(calls_.passes.back(), i);
      } else if (category == Category::activations) {
        if (in_backward && i > calls_.passes.back().end) {
          begin = calls_.passes.back().end;
          in_backward = false;
          held = {};
        }
        if (!in_backward) {
          last_activation = i;
          held.add(lifetimes_[action.block].rounded);
        }
      }
    }
  }

  // The first part of a step also makes what the whole step needs once.
  static bool are_alike(std::size_t a, std::size_t b) { return 50 * (std::max(a, b) - std::min(a, b)) <= b; }

  // Where the last activation of its forward is freed.
  [[nodiscard]] std::size_t end_of_backward(const Pass& pass, std::size_t gradient) const {
    std::size_t end = gradient + 1;
    for (std::size_t i = pass.begin; i < pass.backward; ++i) {
      const ClientAction& action = program_.actions[i];
      if (action.kind != ClientAction::Kind::alloc || lifetimes_[action.block].outlives(program_)) continue;
      if (uses_.blocks[action.block].category == Category::activations)
        end = std::max(end, lifetimes_[action.block].freed + 1);
    }
    return end;
  }

  [[nodiscard]] std::vector<std::size_t> allocs_of(const Pass& pass) const {
    std::vector<std::size_t> allocs;
    for (std::size_t i = pass.begin; i < pass.backward; ++i) {
      if (program_.actions[i].kind == ClientAction::Kind::alloc) allocs.push_back(i);
    }
    return allocs;
  }

  [[nodiscard]] Bytes size_at(const std::vector<std::size_t>& allocs, std::size_t i) const {
    return program_.actions[allocs[i]].bytes;
  }

  // The one that covers most of the forward, of those that do nearly so the shortest. A program's passes have
  // one period, which the first of them shows.
  [[nodiscard]] Repetition repetition(const std::vector<std::size_t>& allocs, std::size_t known) const {
    Repetition best;
    const std::size_t longest = known > 0 ? known : allocs.size() / 2;
    for (std::size_t period = known > 0 ? known : kLeastPeriod; period <= longest; ++period) {
      std::size_t run = 0;
      for (std::size_t i = period; i <= allocs.size(); ++i) {
        if (i < allocs.size() && size_at(allocs, i) == size_at(allocs, i - period)) {
          ++run;
          continue;
        }
        const std::size_t count = run / period + 1;
        if (count >= 2 && 20 * count * period > 21 * best.count * best.period)
          best = {i - run - period, period, count};
        run = 0;
      }
    }
    return best;
  }

  // A layer begins where least is passed on from one to the next.
  void add_calls(std::uint32_t pass, const std::vector<std::size_t>& allocs, Repetition found) {
    std::size_t best = 0;
    Bytes least = ~Bytes{0};
    for (std::size_t shift = 0; shift < found.period; ++shift) {
      const std::size_t cut = found.first + found.period * (found.count / 2) + shift;
      if (cut >= allocs.size()) break;
      const Bytes passed = passed_on(calls_.passes[pass], allocs, cut, found.period);
      if (passed < least) {
        least = passed;
        best = shift;
      }
    }
    const std::size_t first = found.first + best;
    std::size_t count = found.count;
    while (count > 1 && first + count * found.period > allocs.size()) --count;
    if (calls_.places.empty()) calls_.places.emplace_back("layer");
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t end = first + (k + 1) * found.period;
      calls_.calls.push_back({.place = 0,
                              .number = static_cast<std::uint32_t>(k),
                              .pass = pass,
                              .parent = kNoCall,
                              .begin = allocs[first + k * found.period],
                              .end = end < allocs.size() ? allocs[end] : calls_.passes[pass].backward,
                              .has_calls = false});
    }
  }

  // Bytes made in the period before a cut and freed behind it, still in forward.
  [[nodiscard]] Bytes passed_on(const Pass& pass, const std::vector<std::size_t>& allocs, std::size_t cut,
                                std::size_t period) const {
    Bytes bytes = 0;
    for (std::size_t i = cut - std::min(cut, period); i < cut; ++i) {
      const Lifetime& lifetime = lifetimes_[program_.actions[allocs[i]].block];
      if (lifetime.freed > allocs[cut] && lifetime.freed < pass.backward) bytes += lifetime.rounded;
    }
    return bytes;
  }

  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  const ProgramUses& uses_;
  ModelCalls calls_;
};

}  // namespace

ModelCalls calls_of(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
                    const ProgramUses& uses) {
  const bool has_stacks =
      std::ranges::any_of(program.stacks, [](const auto& stack) { return !stack.empty(); });
  if (has_stacks) {
    ModelCalls calls = StackCalls(program).read();
    if (!calls.calls.empty()) return calls;
  }
  return StructureCalls(program, lifetimes, uses).read();
}

std::string name_of(const ModelCalls& calls, const Call& call) {
  return calls.places[call.place] + '#' + std::to_string(call.number);
}

}  // namespace vramlab
