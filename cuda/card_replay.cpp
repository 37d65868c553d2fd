#include "cuda/card_replay.hpp"

#include <algorithm>
#include <chrono>

#include "cuda/card.hpp"
#include "cuda/card_memory.hpp"
#include "cuda/check.hpp"
#include "cuda/cuda_segments.hpp"
#include "sim/memory/logged_segments.hpp"
#include "sim/memory/sim_segments.hpp"

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;  // R10.1

template <class Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void find_parted_calls(const std::vector<SegmentCall>& card, const std::vector<SegmentCall>& simulated,
                       CardReplay& replay) {
  for (std::size_t i = 0; i < std::min(card.size(), simulated.size()); ++i) {
    const PartedCall both{i, card[i], simulated[i]};
    if (!replay.other_free && both.card.free_before != both.simulated.free_before) replay.other_free = both;
    if (both.card.kind != both.simulated.kind || both.card.size != both.simulated.size) return;
    if (both.card.served == both.simulated.served) continue;
    replay.other_answer = both;
    return;  // from here on they ask for different things
  }
}

CardReplay replay(const ClientProgram& program, const ReplaySetup& setup) {
  CardReplay replay;
  CudaSegments segments;
  LoggedSegments logged{segments};
  {
    CardMemory memory;
    for (const ClientAction& action : program.actions) memory.stream(action.stream);
    VRAMLAB_CUDA(cudaDeviceSynchronize());
    replay.free_at_start = segments.device_free();
    replay.card_seconds = seconds_of([&] {
      replay.card = replay_program_on(logged, program, setup, &memory);
      memory.read_live();
      memory.require_intact();
    });
    replay.checked = memory.checked_bytes();
  }

  const auto simulate = [&](Bytes usable, std::vector<SegmentCall>& calls) {
    RecordedSegments given{segments.device_total(), usable};
    logged.supply(given);
    LoggedSegments source{given};
    ReplayedProgram simulated;
    replay.simulated_seconds = seconds_of([&] { simulated = replay_program_on(source, program, setup); });
    calls = source.calls();
    return compare_replays(replay.card, simulated, true);
  };
  std::vector<SegmentCall> calls;
  replay.given = simulate(replay.free_at_start, calls);
  find_parted_calls(logged.calls(), calls, replay);
  if (replay.other_answer) replay.page_less = simulate(replay.free_at_start - kPage, calls);

  SimulatedCard card{segments.device_total(), segments.device_total() - replay.free_at_start};
  SimSegments fitted{card};
  replay.fitted = compare_replays(replay.card, replay_program_on(fitted, program, setup), false);
  return replay;
}

}  // namespace

CardReplay replay_on_card(const ClientProgram& program, const ReplaySetup& setup) {
  CardReplay done = replay(program, setup);
  done.free_at_end = card_free();
  return done;
}

}  // namespace vramlab
