// libFuzzer target: no bytes may crash the reader of snapshots or the replay, hang them or take much memory.
// Errors of the input are InputError; anything else is a finding.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/pickle/pickle.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace {

using namespace vramlab;

// The same bytes as a file that is read piece by piece must read the same.
bool reads_in_pieces(std::string_view bytes) {
  std::istringstream in{std::string(bytes)};
  InputFile file(in, "fuzz.pickle");
  try {
    read_torch_snapshot(file);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

bool reads_at_once(std::string_view bytes) {
  try {
    const TorchSnapshot snapshot = parse_torch_snapshot(bytes, "fuzz.pickle");
    for (const int device : recorded_devices(snapshot)) {
      try {
        replay_snapshot(snapshot, device);
      } catch (const InputError&) {  // it may contradict itself
      }
    }
    return true;
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!looks_like_pickle(bytes)) return 0;  // nor may it be compressed
  if (reads_at_once(bytes) != reads_in_pieces(bytes)) __builtin_trap();
  return 0;
}
