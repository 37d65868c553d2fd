#include "recordings/replay/verification.hpp"

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/logs/oracle_log.hpp"
#include "recordings/replay/oracle_replay.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

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

namespace {

std::string plain_name(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  for (const char* ending : {".gz", ".zst", ".json", ".pickle"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view{ending}.size());
  }
  return name;
}

ReplayableRecording from_log(const OracleLog& log, const std::string& name) {
  OracleProgram written = oracle_program(log);
  ReplayableRecording recorded{.name = name, .program = std::move(written.program), .recorded = {}};
  const auto key = std::find(log.keys.begin(), log.keys.end(), "reserved_bytes.all.current");
  if (key == log.keys.end()) return recorded;
  const auto column = static_cast<std::size_t>(key - log.keys.begin());
  const std::size_t operations = written.first_action.size();
  for (std::size_t i = 0; i < operations; ++i) {
    const OracleOperation& op = log.operations[i];
    const std::size_t next =
        i + 1 < operations ? written.first_action[i + 1] : recorded.program.actions.size();
    if (next == written.first_action[i] || op.counters.empty()) continue;  // nothing was done
    recorded.recorded.push_back({next - 1, static_cast<Bytes>(op.counters[column]), !op.text.empty()});
  }
  return recorded;
}

}  // namespace

std::vector<ReplayableRecording> read_replayable(const std::filesystem::path& file) {
  const std::string name = plain_name(file);
  std::vector<ReplayableRecording> programs;
  const bool json = file.filename().string().find(".json") != std::string::npos;
  if (json) {
    const OracleLog log = parse_oracle_log(read_input_file(file), file.string());
    if (parse_allocator_settings(log.conf).backend == AllocatorBackend::native) {
      programs.push_back(from_log(log, name));
    }
    return programs;
  }
  for (ClientProgram& program : read_client_programs(file)) {
    programs.push_back({.name = name, .program = std::move(program), .recorded = {}});
  }
  return programs;
}

RecordedAgreement compare_with_recording(const ReplayableRecording& recorded, const ReplayedProgram& card) {
  RecordedAgreement agreement;
  for (const ReplayableRecording::Recorded& moment : recorded.recorded) {
    ++agreement.operations;
    agreement.ooms += moment.failed ? 1 : 0;
    if (moment.action >= card.actions.size()) continue;
    const ReplayedAction& action = card.actions[moment.action];
    agreement.equal_reserved += action.reserved == moment.reserved ? 1 : 0;
    agreement.equal_ooms += moment.failed && action.failed ? 1 : 0;
  }
  return agreement;
}

}  // namespace vramlab
