#include "trace/verification.hpp"

#include <optional>

#include "sim/core/error.hpp"
#include "trace/async_replay.hpp"
#include "trace/input_file.hpp"
#include "trace/oracle_log.hpp"
#include "trace/snapshot_replay.hpp"
#include "trace/torch_snapshot.hpp"
#include "trace/truth_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

VerifiedRecording verify_oracle_log(const std::string& text, const std::string& file) {
  const OracleLog log = parse_oracle_log(text, file);
  const bool is_async = log.conf.find("cudaMallocAsync") != std::string::npos;
  return {.file = file,
          .kind = "oracle",
          .replay = is_async ? replay_async_log(log).given : replay_oracle_log(log)};
}

std::vector<VerifiedRecording> verify_snapshot(const fs::path& file) {
  const TorchSnapshot snapshot = read_torch_snapshot(file);
  std::optional<TruthFile> truth;
  if (const auto truth_file = find_truth_file(file)) truth = read_truth_file(*truth_file);
  std::vector<VerifiedRecording> recordings;
  for (const int device : recorded_devices(snapshot)) {
    const SnapshotReplayResult result =
        replay_snapshot(snapshot, device, {.truth = truth ? &*truth : nullptr, .limit = std::nullopt});
    recordings.push_back({.file = file.string(),
                          .kind = "snapshot",
                          .device = device,
                          .initial_state = result.initial_state,
                          .initial_blocks = result.initial_blocks,
                          .inferred_blocks = result.inferred_blocks,
                          .inferred_bytes = result.inferred_bytes,
                          .replay = result});
  }
  if (recordings.empty()) {
    throw InputError(file.string(),
                     "the snapshot holds no history. Record one with "
                     "torch.cuda.memory._record_memory_history(), best before the first allocation.");
  }
  return recordings;
}

}  // namespace

std::string VerifiedRecording::name() const {
  std::string name = fs::path{file}.filename().string();
  for (const char* ending : {".gz", ".zst", ".json", ".pickle"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view{ending}.size());
  }
  return device == 0 ? name : name + " device " + std::to_string(device);
}

std::vector<VerifiedRecording> verify_recording(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.find(".pickle") != std::string::npos) return verify_snapshot(file);
  const std::string text = read_input_file(file);
  if (looks_like_oracle_log(text)) return {verify_oracle_log(text, file.string())};
  throw InputError(file.string(), "is neither a snapshot (.pickle) nor an oracle log (.json).");
}

}  // namespace vramlab
