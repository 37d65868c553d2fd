// A searcher on a pretended machine: a function says how each size ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policies/contract/policy_set.hpp"

namespace vramlab::testing_rig {

struct Searched {
  std::vector<std::int64_t> tried;
  SearcherAnswer answer;
};

/// Runs the searcher to its end. `high` = the largest size allowed.
inline Searched search(const PolicyChoice& choice, const std::function<Probe(std::int64_t)>& machine,
                       std::int64_t high = 1000000) {
  const auto searcher = builtin_policies()->searchers.make(choice);
  Searched result;
  Probe probe;
  SearcherQuestion question{1, high, nullptr};
  while (result.tried.size() < 200) {
    result.answer = searcher->decide(question, {});
    if (result.answer.action != SearcherAnswer::Action::probe) return result;
    result.tried.push_back(result.answer.batch);
    probe = machine(result.answer.batch);
    probe.batch = result.answer.batch;
    question.last = &probe;
  }
  return result;
}

/// Up to `limit` samples fit; one needs a hundredth of a GiB of a card with room for exactly the limit.
inline std::function<Probe(std::int64_t)> fits_up_to(std::int64_t limit) {
  return [limit](std::int64_t batch) {
    Probe probe;
    const Bytes sample = 10_MiB;
    const auto total = static_cast<Bytes>(std::max<std::int64_t>(limit, 1)) * sample;
    probe.outcome = batch <= limit ? ProbeOutcome::ok : ProbeOutcome::oom;
    const Bytes peak = std::min(total, static_cast<Bytes>(batch) * sample);
    probe.cards = {
        {.start = 0, .free = total, .peak = peak, .peak_reserved = peak, .current = 0, .total = total}};
    return probe;
  };
}

}  // namespace vramlab::testing_rig
