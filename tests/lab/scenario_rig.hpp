// A small scenario to bend: a linear workload on a card of 10,000 MiB, a few policies.
#pragma once

#include <string>

#include "lab/kinds/training/spec.hpp"

namespace vramlab {

/// A scenario's text with one place replaced, for tests of what happens then. Fails if `from` is not in it.
inline std::string bent_scenario(const std::string& from = {}, const std::string& to = {}) {
  std::string text = R"({
  "version": 1, "kind": "training", "name": "small", "objective": "samples_per_s",
  "target": {"usage": 0.85, "margin": 0.05},
  "device": {"total": "10000MiB", "context": 0},
  "workload": {
    "model": {"kind": "linear", "fixed": "1000MiB", "per_sample": "810MiB", "resident": "20MiB",
              "parameters": {"batch": [2, 64]}, "step_time": {"floor_ms": 100}},
    "iterations": 100, "start": {"batch": 8}
  },
  "policies": [{"use": "fixed"}, {"use": "threshold-step", "step": 2, "label": "rule"}],
  "expect": [{"policy": "fixed", "metric": "ooms", "equals": 0}]
})";
  if (from.empty()) return text;
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the scenario does not contain " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace vramlab
