#include "lab/whatif/least.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lab/whatif/view.hpp"
#include "lab/whatif/whatif.hpp"

namespace vramlab {
namespace {

std::string plural(std::size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

// In what the plan may be wrong about a program.
std::vector<std::string> supposed_of(const ClientProgram& program, const std::vector<Lifetime>& lifetimes) {
  std::vector<std::string> supposed;
  std::set<StreamId> streams;
  std::size_t before = 0;
  std::size_t kept = 0;
  for (const Lifetime& one : lifetimes) {
    if (one.rounded == 0) continue;
    streams.insert(one.stream);
    before += one.before_recording ? 1 : 0;
    kept += one.captured || one.pool != 0 ? 1 : 0;
  }
  if (!program.has_history) {
    supposed.emplace_back("the file holds no history, so this is what was in use when it was written.");
  } else if (before > 0) {
    supposed.push_back(fmt::format(
        "{} in use when recording began {} counted from then on; what was freed before is not known.",
        plural(before, "block"), before == 1 ? "is" : "are"));
  }
  if (streams.size() > 1) {
    supposed.push_back(fmt::format("memory goes from one to the other of {} streams as soon as it is free.",
                                   streams.size()));
  }
  if (kept > 0) {
    supposed.push_back(fmt::format("{} of private pools and captured graphs may give {} memory to any other.",
                                   plural(kept, "block"), kept == 1 ? "its" : "their"));
  }
  if (program.attempts > 0) {
    supposed.push_back(fmt::format("{} that failed in the recording {} not in it.",
                                   plural(program.attempts, "request"),
                                   program.attempts == 1 ? "is" : "are"));
  }
  return supposed;
}

// How near a plan is to the least. Of a program that the file tells in part, nothing is known of that.
std::string how_near(const LeastMemory& least) {
  if (least.lower_bound) return "";
  if (!least.plan.is_least())
    return fmt::format(", at most {:.2f} % above the least", 100 * least.plan.gap());
  return least.failed > 0 ? ", the least there is without what failed" : ", the least there is";
}

}  // namespace

std::vector<Buffer> buffers_of(const std::vector<Lifetime>& lifetimes) {
  std::vector<Buffer> buffers;
  buffers.reserve(lifetimes.size());
  for (const Lifetime& one : lifetimes) {
    buffers.push_back(
        {static_cast<std::int64_t>(one.born), static_cast<std::int64_t>(one.returned), one.rounded});
  }
  return buffers;
}

LeastMemory least_memory(const ClientProgram& program, const PlanQuestion& question) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(program);
  LeastMemory least;
  least.blocks = static_cast<std::size_t>(
      std::ranges::count_if(lifetimes, [](const Lifetime& one) { return one.rounded > 0; }));
  least.plan = plan_memory(buffers_of(lifetimes), question);
  least.lower_bound = program.initial_actions > 0 || !program.has_history;
  least.failed = program.attempts;
  least.supposed = supposed_of(program, lifetimes);
  return least;
}

Json least_json(const LeastMemory& least) {
  return {{"blocks", least.blocks},
          {"load_bytes", least.plan.load},
          {"bound_bytes", least.plan.bound},
          {"planned_bytes", least.plan.planned},
          {"certified", least.plan.is_least()},
          {"gap", least.plan.gap()},
          {"lower_bound", least.lower_bound},
          {"supposed", least.supposed}};
}

std::string left_on_the_table(const WhatIfAnswer& answer) {
  if (answer.least.empty()) return "";
  const auto better = [](const WhatIfRow& a, const WhatIfRow& b) {
    if (a.backend.is_native() != b.backend.is_native()) return a.backend.is_native();
    if ((a.fit() == Fit::no) != (b.fit() == Fit::no)) return b.fit() == Fit::no;
    return a.outcome.highest_reserved < b.outcome.highest_reserved;
  };
  const WhatIfRow& best = *std::ranges::min_element(answer.rows, better);
  const LeastMemory& least = answer.least[best.program];
  const Bytes planned = least.plan.planned;
  const std::string plan =
      fmt::format("a plan of all addresses needs {}{}{}", least.lower_bound ? "at least " : "",
                  format_bytes(planned), how_near(least));
  if (best.fit() == Fit::no) return fmt::format("No setting tried fits; {}.", plan);
  if (least.lower_bound) return fmt::format("Of what the file tells, {}.", plan);
  const Bytes reserved = best.outcome.highest_reserved;
  const Bytes left = reserved - std::min(reserved, planned);
  return fmt::format("{} leaves {} ({:.1f} %) on the table: {}.", conf_name(best.conf), format_bytes(left),
                     planned == 0 ? 0 : 100.0 * static_cast<double>(left) / static_cast<double>(planned),
                     plan);
}

}  // namespace vramlab
