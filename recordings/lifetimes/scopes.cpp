#include "recordings/lifetimes/scopes.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace vramlab {
namespace {

/// Allocations that follow each other from one stack: an operation, or several of one line.
struct StackRun {
  std::size_t begin = 0;  ///< action of its first
  std::uint32_t stack = 0;
  std::size_t result = 0;  ///< action of the largest that is there behind it, of equal ones the last
};

/// The runs of one call.
class CallScopes {
 public:
  CallScopes(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
             const std::vector<CallPath>& paths, std::size_t begin, std::size_t end)
      : program_(program), lifetimes_(lifetimes), paths_(paths), end_(end) {
    for (std::size_t i = begin; i < end; ++i) {
      const ClientAction& action = program.actions[i];
      if (action.kind != ClientAction::Kind::alloc) continue;
      if (runs_.empty() || runs_.back().stack != action.detail) runs_.push_back({i, action.detail, i});
    }
    for (std::size_t run = 0; run < runs_.size(); ++run) find_result(run);
  }

  [[nodiscard]] bool has_lines() const { return runs_.size() > 1; }

  /// The operation that saved what backward frees in one go, `latest` of which was made last.
  [[nodiscard]] std::size_t saver_of(std::size_t latest) const {
    const std::size_t run = run_of(latest);
    return runs_[run].result == latest ? run + 1 : run;
  }

  [[nodiscard]] std::size_t let_go(std::size_t born, std::size_t saver) const {
    const std::size_t own = run_of(born);
    if (saver <= own) return begin_of(own + 1);
    if (saver >= runs_.size()) return end_;
    const auto [depth, same_line] = holder(own, saver);
    std::size_t run = saver + 1;
    while (run < runs_.size() && still_in(run, saver, depth, same_line)) ++run;
    return begin_of(run);
  }

 private:
  using Lines = std::vector<CallPath::Line>;

  [[nodiscard]] std::size_t begin_of(std::size_t run) const {
    return run < runs_.size() ? runs_[run].begin : end_;
  }
  [[nodiscard]] const Lines& lines(std::size_t run) const { return paths_[runs_[run].stack].lines; }

  [[nodiscard]] std::size_t run_of(std::size_t action) const {
    const auto after = std::ranges::upper_bound(runs_, action, {}, &StackRun::begin);
    return static_cast<std::size_t>(after - runs_.begin()) - 1;
  }

  void find_result(std::size_t run) {
    const std::size_t next = begin_of(run + 1);
    Bytes most = 0;
    for (std::size_t i = runs_[run].begin; i < next; ++i) {
      const ClientAction& action = program_.actions[i];
      if (action.kind != ClientAction::Kind::alloc) continue;
      const Lifetime& lifetime = lifetimes_[action.block];
      if (lifetime.freed < next || lifetime.rounded < most) continue;
      most = lifetime.rounded;
      runs_[run].result = i;
    }
  }

  [[nodiscard]] bool is_same_function(const CallPath::Line& a, const CallPath::Line& b) const {
    if (a.frame == b.frame) return true;
    const StackFrame& one = program_.frames[a.frame];
    const StackFrame& other = program_.frames[b.frame];
    return one.function == other.function && one.file == other.file;
  }

  // The innermost function that both runs lie in, and whether they come from one line of it.
  [[nodiscard]] std::pair<std::size_t, bool> holder(std::size_t a, std::size_t b) const {
    const Lines& one = lines(a);
    const Lines& other = lines(b);
    std::size_t depth = 0;
    while (depth < one.size() && depth < other.size() && is_same_function(one[depth], other[depth])) {
      if (one[depth].frame != other[depth].frame) return {depth, false};
      ++depth;
    }
    return {depth == 0 ? 0 : depth - 1, true};
  }

  // On the line of the saver; in what that line called, where the block was passed on within it.
  [[nodiscard]] bool still_in(std::size_t run, std::size_t saver, std::size_t depth, bool same_line) const {
    const Lines& one = lines(run);
    const Lines& other = lines(saver);
    if (one.size() <= depth || other.size() <= depth || one[depth].frame != other[depth].frame) return false;
    if (!same_line) return true;
    return one.size() > depth + 1 && other.size() > depth + 1 &&
           is_same_function(one[depth + 1], other[depth + 1]);
  }

  const ClientProgram& program_;
  const std::vector<Lifetime>& lifetimes_;
  const std::vector<CallPath>& paths_;
  std::size_t end_;
  std::vector<StackRun> runs_;
};

}  // namespace

std::vector<std::size_t> Scopes::let_go(std::size_t begin, std::size_t end,
                                        const std::vector<ProgramBlock>& saved) const {
  std::vector<std::size_t> moments(saved.size(), end);
  if (paths_.size() < 2) return moments;
  const CallScopes scopes(program_, lifetimes_, paths_, begin, end);
  if (!scopes.has_lines()) return moments;
  std::map<std::size_t, std::size_t> latest;  // by the first action of a run of frees
  std::vector<std::size_t> groups;
  for (const ProgramBlock block : saved) {
    std::size_t first = lifetimes_[block].freed;
    while (first > 0 && program_.actions[first - 1].kind == ClientAction::Kind::free) --first;
    groups.push_back(first);
    latest[first] = std::max(latest[first], lifetimes_[block].born);
  }
  for (std::size_t i = 0; i < saved.size(); ++i)
    moments[i] = scopes.let_go(lifetimes_[saved[i]].born, scopes.saver_of(latest[groups[i]]));
  return moments;
}

}  // namespace vramlab
