#include "recordings/alignment/alignment.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "recordings/alignment/common_subsequence.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;
using Key = std::uint32_t;

// Sizes do not tell requests apart where without them this part of the differences is left.
constexpr std::size_t kSizesChanged = 2;

bool has_partner(Kind kind) {
  return kind != Kind::free && kind != Kind::record_stream && kind != Kind::finish && kind != Kind::mark;
}

/// "file.py:12 function" without its line: "file.py function".
std::string function_of(const std::string& line) {
  const std::size_t colon = line.find_last_of(':', line.find(' '));
  if (colon == std::string::npos) return line;
  const std::size_t end = line.find_first_not_of("0123456789", colon + 1);
  return end == std::string::npos ? line.substr(0, colon) : line.substr(0, colon) + line.substr(end);
}

/// Numbers things by what they are.
template <class What>
class Numbers {
 public:
  Key operator()(const What& what) {
    return numbers_.try_emplace(what, static_cast<Key>(numbers_.size())).first->second;
  }

 private:
  std::map<What, Key> numbers_;
};

/// What of a request is compared.
struct RequestKeys {
  std::vector<std::size_t> actions;
  std::vector<Key> with_size;
  std::vector<Key> without;
  std::vector<bool> known;  ///< has a stack
};

class Aligner {
 public:
  Aligner(const ReadProgram& a, const ReadProgram& b) : a_(a), b_(b), stacks_(a.has_stacks && b.has_stacks) {
    found_.b_of.assign(a.program.actions.size(), kUnpaired);
    found_.a_of.assign(b.program.actions.size(), kUnpaired);
    found_.sites.emplace_back();
  }

  Alignment find() {
    const std::vector<Functions> functions{functions_of(a_.program), functions_of(b_.program)};
    const std::size_t stretches = std::min(a_.steps.ends.size(), b_.steps.ends.size());
    const std::vector<std::vector<std::uint32_t>> streams{stream_numbers(a_.program),
                                                          stream_numbers(b_.program)};
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
      pair_up(keys(a_, functions[0], streams[0], stretch), keys(b_, functions[1], streams[1], stretch));
    }
    name_sites();
    found_.rank_a = ranks(found_.b_of);
    found_.rank_b = ranks(found_.a_of);
    return std::move(found_);
  }

 private:
  using Functions = std::vector<Key>;  ///< by stack

  Functions functions_of(const ClientProgram& program) {
    Functions functions;
    for (const auto& stack : program.stacks)
      functions.push_back(stack.empty() || !stacks_
                              ? 0
                              : 1 + function_(function_of(shown_frames(program.frames, stack).front())));
    return functions;
  }

  RequestKeys keys(const ReadProgram& read, const Functions& functions,
                   const std::vector<std::uint32_t>& streams, std::size_t stretch) {
    RequestKeys keys;
    for (std::size_t i = read.steps.begin_of(stretch); i < read.steps.ends[stretch]; ++i) {
      const ClientAction& action = read.program.actions[i];
      if (!has_partner(action.kind)) continue;
      const bool alloc = action.kind == Kind::alloc;
      const Key function = alloc && action.detail < functions.size() ? functions[action.detail] : 0;
      const Key use = alloc && function == 0 ? static_cast<Key>(read.uses.blocks[action.block].category) : 0;
      const auto kind = static_cast<Key>(action.kind);
      keys.actions.push_back(i);
      keys.with_size.push_back(sized_({kind, action.bytes, streams[i], action.pool, function}));
      keys.without.push_back(unsized_({kind, streams[i], action.pool, function, use}));
      keys.known.push_back(function != 0);
    }
    return keys;
  }

  void pair_up(const RequestKeys& a, const RequestKeys& b) {
    const auto exact = common_subsequence(a.with_size, b.with_size);
    const auto loose = common_subsequence(a.without, b.without);
    const auto differences = [&](std::size_t pairs) {
      return a.actions.size() + b.actions.size() - 2 * pairs;
    };
    if (kSizesChanged * differences(loose.size()) < differences(exact.size())) {
      for (const auto& [x, y] : loose) set(a.actions[x], b.actions[y]);
      return;
    }
    std::size_t from_a = 0;
    std::size_t from_b = 0;
    const auto close = [&](std::size_t to_a, std::size_t to_b) {
      pair_gap(a, from_a, to_a, b, from_b, to_b);
    };
    for (const auto& [x, y] : exact) {
      close(x, y);
      set(a.actions[x], b.actions[y]);
      from_a = x + 1;
      from_b = y + 1;
    }
    close(a.actions.size(), b.actions.size());
  }

  // Without stacks nothing but their number says that requests of other sizes are the same ones.
  void pair_gap(const RequestKeys& a, std::size_t from_a, std::size_t to_a, const RequestKeys& b,
                std::size_t from_b, std::size_t to_b) {
    if (from_a == to_a || from_b == to_b) return;
    const bool as_many = to_a - from_a == to_b - from_b;
    const std::span<const Key> keys_a{a.without.data() + from_a, to_a - from_a};
    const std::span<const Key> keys_b{b.without.data() + from_b, to_b - from_b};
    for (const auto& [x, y] : common_subsequence(keys_a, keys_b)) {
      if (as_many || a.known[from_a + x]) set(a.actions[from_a + x], b.actions[from_b + y]);
    }
  }

  void set(std::size_t a, std::size_t b) {
    found_.b_of[a] = static_cast<std::uint32_t>(b);
    found_.a_of[b] = static_cast<std::uint32_t>(a);
  }

  // A line of A that nearly always became another one of B is that one.
  void name_sites() {
    std::unordered_map<std::string, SiteId> numbers;
    const auto number = [&](const std::string& line) {
      const auto [place, is_new] = numbers.try_emplace(line, static_cast<SiteId>(found_.sites.size()));
      if (is_new) found_.sites.push_back(line);
      return place->second;
    };
    const auto sites = [&](const ClientProgram& program) {
      std::vector<SiteId> by_stack;
      for (const auto& stack : program.stacks)
        by_stack.push_back(stack.empty() ? 0 : number(shown_frames(program.frames, stack).front()));
      std::vector<SiteId> by_action(program.actions.size());
      for (std::size_t i = 0; i < program.actions.size(); ++i) {
        const ClientAction& action = program.actions[i];
        if (action.kind == Kind::alloc && action.detail < by_stack.size())
          by_action[i] = by_stack[action.detail];
      }
      return by_action;
    };
    found_.site_b = sites(b_.program);
    const std::size_t known_in_b = found_.sites.size();
    found_.site_a = sites(a_.program);
    std::map<SiteId, std::map<SiteId, std::size_t>> partners;
    for (std::size_t i = 0; i < found_.b_of.size(); ++i) {
      if (found_.b_of[i] != kUnpaired && found_.site_a[i] >= known_in_b)
        ++partners[found_.site_a[i]][found_.site_b[found_.b_of[i]]];
    }
    for (SiteId& site : found_.site_a) {
      const auto known = partners.find(site);
      if (known == partners.end()) continue;
      site = std::ranges::max_element(known->second, {}, [](const auto& one) { return one.second; })->first;
    }
  }

  static std::vector<std::uint32_t> ranks(const std::vector<std::uint32_t>& partners) {
    std::vector<std::uint32_t> ranks;
    std::uint32_t rank = 0;
    for (const std::uint32_t partner : partners) {
      ranks.push_back(rank);
      if (partner != kUnpaired) ++rank;
    }
    return ranks;
  }

  const ReadProgram& a_;
  const ReadProgram& b_;
  bool stacks_;
  Alignment found_;
  Numbers<std::string> function_;
  Numbers<std::tuple<Key, Bytes, Key, Key, Key>> sized_;
  Numbers<std::tuple<Key, Key, Key, Key, Key>> unsized_;
};

}  // namespace

ReadProgram::ReadProgram(ClientProgram read)
    : program(std::move(read)),
      uses(uses_of(program)),
      steps(steps_of(program, uses)),
      lifetimes(lifetimes_of(program)),
      has_stacks(std::ranges::any_of(program.stacks, [](const auto& stack) { return !stack.empty(); })) {}

std::vector<std::uint32_t> stream_numbers(const ClientProgram& program) {
  std::unordered_map<StreamId, std::uint32_t> numbers{{0, 0}};
  std::vector<std::uint32_t> by_action;
  for (const ClientAction& action : program.actions) {
    by_action.push_back(
        action.kind == Kind::alloc || action.kind == Kind::attempt || action.kind == Kind::capture_begin
            ? numbers.try_emplace(action.stream, static_cast<std::uint32_t>(numbers.size())).first->second
            : 0);
  }
  return by_action;
}

Alignment align(const ReadProgram& a, const ReadProgram& b) { return Aligner(a, b).find(); }

}  // namespace vramlab
