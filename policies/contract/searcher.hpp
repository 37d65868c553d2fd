// The searcher family: after each probe of a batch size, which size to try next, or which one to take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policies/contract/policy.hpp"

namespace vramlab {

/// How a probe ended.
enum class ProbeOutcome : std::uint8_t {
  ok,
  oom,    ///< a step of it ran out of memory
  held,   ///< out of memory, and after the clean-up the trial's memory is still held
  failed  ///< another failure (a shape that cannot be launched, a bug): says nothing about memory
};

/// One card over a probe, in bytes.
struct ProbedCard {
  Bytes start = 0;  ///< allocated before it, cache emptied
  Bytes free = 0;   ///< what the program could still have reserved then
  Bytes peak = 0;   ///< highest allocated
  Bytes peak_reserved = 0;
  Bytes current = 0;  ///< allocated after its last step, before the clean-up
  Bytes total = 0;    ///< the limit if one is set, else the card's total
};

/// What a probe of one batch size found.
struct Probe {
  std::int64_t batch = 0;
  ProbeOutcome outcome = ProbeOutcome::ok;
  std::string phase;  ///< where it failed, else where the fullest card had its peak
  std::vector<ProbedCard> cards;
  std::string error;  ///< of another failure, as it was reported
};

/// Asked before the first probe and after each one.
struct SearcherQuestion {
  std::int64_t low = 1;         ///< smallest batch allowed
  std::int64_t high = 1;        ///< largest: that of the workload, of the data set, or a cap
  const Probe* last = nullptr;  ///< null before the first
};

struct SearcherAnswer {
  enum class Action : std::uint8_t {
    probe,      ///< try `batch`
    found,      ///< take `batch`
    none_fits,  ///< even the smallest does not fit
    give_up     ///< the search cannot go on; `reason` says why
  };
  Action action = Action::give_up;
  std::int64_t batch = 0;
  bool extrapolated = false;      ///< found: no probe of this size was good
  std::int64_t largest_good = 0;  ///< found: of the sizes tried, where it is known
  bool by_option = false;  ///< found: an option ended the search (a list's last size, a number of trials)
  std::string reason;      ///< one sentence with the figures it rests on
};

/// How a policy wants its probes done.
struct ProbeDepth {
  std::int64_t steps = 2;  ///< in each phase; with one, the optimizer's state is not yet there
  bool all_phases = true;  ///< else the first only
  /// Of the first phase, before those, with shapes drawn as the job draws them; none where they do not vary.
  std::int64_t varied_steps = 0;
  std::int64_t varied_starts = 1;  ///< how often these begin anew, with nothing left of the steps before
  double share = 1;  ///< of the memory, that the probe may reserve (set_per_process_memory_fraction)
};

/// A policy that looks for the largest batch that fits.
class Searcher : public Decider<SearcherQuestion, SearcherAnswer> {
 public:
  static constexpr const char* kFamily = "searcher";  ///< as users are told of it

  [[nodiscard]] virtual ProbeDepth depth() const { return {}; }
};

}  // namespace vramlab
