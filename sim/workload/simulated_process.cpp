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
  out.push_back(executor_.state().refused.size());
  for (const auto& [shape, size] : executor_.state().refused) out.insert(out.end(), {shape, size});
  for (const auto& block : executor_.state().slots) out.push_back(block ? allocator_.address_of(*block) : 0);
  while (!out.empty() && out.back() == 0) out.pop_back();  // slots that were never used say nothing
  return out;
}

}  // namespace vramlab
