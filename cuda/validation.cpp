#include "cuda/validation.hpp"

#include <algorithm>
#include <chrono>

#include "core/statistics.hpp"
#include "cuda/card.hpp"
#include "cuda/card_memory.hpp"
#include "cuda/cuda_segments.hpp"
#include "sim/memory/segments/recorded_segments.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

constexpr Bytes kDriverPage = 2_MiB;  // R10.1
constexpr int kCalls = 15;            // of which the median counts

template <class Work>
SimTime time_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now() - begin);
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
    replay.card_seconds = to_seconds(time_of([&] {
      replay.card = replay_program_on(logged, program, setup, &memory);
      memory.read_live();
      memory.require_intact();
    }));
    replay.checked = memory.checked_bytes();
  }

  const auto simulate = [&](Bytes usable, std::vector<SegmentCall>& calls) {
    RecordedSegments given{segments.device_total(), usable};
    logged.supply(given);
    LoggedSegments source{given};
    ReplayedProgram simulated;
    replay.simulated_seconds =
        to_seconds(time_of([&] { simulated = replay_program_on(source, program, setup); }));
    calls = source.calls();
    return compare_replays(replay.card, simulated, true);
  };
  std::vector<SegmentCall> calls;
  replay.given = simulate(replay.free_at_start, calls);
  find_parted_calls(logged.calls(), calls, replay);
  if (replay.other_answer) replay.page_less = simulate(replay.free_at_start - kDriverPage, calls);

  SimulatedCard card{segments.device_total(), segments.device_total() - replay.free_at_start};
  SimSegments fitted{card};
  replay.fitted = compare_replays(replay.card, replay_program_on(fitted, program, setup), false);
  return replay;
}

void measure_segment(Bytes size, DriverTimes& times) {
  std::vector<SimTime> mallocs;
  std::vector<SimTime> frees;
  for (int i = 0; i < kCalls; ++i) {
    void* memory = nullptr;
    mallocs.push_back(time_of([&] { VRAMLAB_CUDA(cudaMalloc(&memory, size)); }));
    frees.push_back(time_of([&] { VRAMLAB_CUDA(cudaFree(memory)); }));
  }
  times.mallocs.push_back({size, middle_of(mallocs)});
  times.frees.push_back({size, middle_of(frees)});
}

void measure_page(Bytes size, DriverTimes& times) {
  const Driver& driver = cuda_driver();
  const CUmemAllocationProp properties = allocation_of_device();
  const CUmemAccessDesc access = access_of_device();
  CUdeviceptr base = 0;
  VRAMLAB_CUDA(driver.address_reserve(&base, size, 0, 0, 0));
  std::vector<SimTime> creates;
  std::vector<SimTime> maps;
  std::vector<SimTime> unmaps;
  for (int i = 0; i < kCalls; ++i) {
    CUmemGenericAllocationHandle memory{};
    creates.push_back(time_of([&] { VRAMLAB_CUDA(driver.create(&memory, size, &properties, 0)); }));
    maps.push_back(time_of([&] {
      VRAMLAB_CUDA(driver.map(base, size, 0, memory, 0));
      VRAMLAB_CUDA(driver.set_access(base, size, &access, 1));
    }));
    unmaps.push_back(time_of([&] {
      VRAMLAB_CUDA(driver.unmap(base, size));
      VRAMLAB_CUDA(driver.release(memory));
    }));
  }
  VRAMLAB_CUDA(driver.address_free(base, size));
  times.creates.push_back({size, middle_of(creates)});
  times.maps.push_back({size, middle_of(maps)});
  times.unmaps.push_back({size, middle_of(unmaps)});
}

}  // namespace

CardReplay replay_on_card(const ClientProgram& program, const ReplaySetup& setup) {
  CardReplay done = replay(program, setup);
  done.free_at_end = card_free();
  return done;
}

DriverTimes measure_driver_times() {
  DriverTimes times;
  for (const Bytes size : {Bytes{512}, 1_MiB, 2_MiB, 20_MiB, 64_MiB, 256_MiB, 1_GiB, 4_GiB, 16_GiB}) {
    if (size <= card_free() / 2) measure_segment(size, times);
  }
  for (const Bytes size : {2_MiB, 20_MiB, 200_MiB}) {
    if (size <= card_free() / 2) measure_page(size, times);
  }
  return times;
}

}  // namespace vramlab
