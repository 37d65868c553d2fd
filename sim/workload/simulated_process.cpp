#include "sim/workload/simulated_process.hpp"

namespace vramlab {

SimulatedProcess::State SimulatedProcess::save() const {
  return {segments_.save(), allocator_.save(), executor_.state()};
}

void SimulatedProcess::restore(const State& state) {
  segments_.restore(state.segments);
  allocator_.restore(state.allocator);
  executor_.restore(state.executor);
}

std::vector<std::uint64_t> SimulatedProcess::canonical_state() const {
  std::vector<std::uint64_t> out;
  segments_.append_canonical_state(out);
  allocator_.append_canonical_state(out);
  const StepExecutor::State& executed = executor_.state();
  out.push_back(executed.plans.size());
  for (const auto& [key, plan] : executed.plans) {
    const auto& [shape, kernel, size] = key;
    out.insert(out.end(), {shape, kernel, size, plan});
  }
  out.push_back(executed.visited.size());
  out.insert(out.end(), executed.visited.begin(), executed.visited.end());
  for (const auto& block : executed.slots) out.push_back(block ? allocator_.address_of(*block) : 0);
  while (!out.empty() && out.back() == 0) out.pop_back();  // slots that were never used say nothing
  return out;
}

}  // namespace vramlab
