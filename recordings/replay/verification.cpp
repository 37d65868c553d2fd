#include "recordings/replay/verification.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/logs/oracle_log.hpp"
#include "recordings/replay/oracle_replay.hpp"
#include "recordings/replay/snapshot_replay.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "recordings/snapshot/history.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {
namespace {

std::string plain_name(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  for (const char* ending : {".gz", ".zst", ".json", ".pickle"}) {
    if (name.ends_with(ending)) name.resize(name.size() - std::string_view{ending}.size());
  }
  return name;
}

// Each operation's reserved bytes, after the last action that stands for it.
std::vector<ReplayableRecording::Recorded> recorded_reserved(const OracleLog& log,
                                                             const OracleProgram& written) {
  std::vector<ReplayableRecording::Recorded> recorded;
  const auto column = log.reserved_column();
  for (std::size_t i = 0; column && i < log.operations.size(); ++i) {
    const OracleOperation& op = log.operations[i];
    const std::size_t next = written.first_action[i + 1];
    if (next == written.first_action[i] || op.counters.empty()) continue;  // nothing was done
    recorded.push_back({next - 1, static_cast<Bytes>(op.counters[*column]), !op.text.empty()});
  }
  return recorded;
}

}  // namespace

std::string VerifiedRecording::name() const {
  const std::string name = plain_name(file);
  return device == 0 ? name : name + " device " + std::to_string(device);
}

std::vector<VerifiedRecording> verify_oracle_log(InputFile& file, const ReadOptions& /*options*/) {
  const OracleLog log = parse_oracle_log(file.rest(), file.name());
  const ReplayResult replay = replay_oracle_log(log);
  return {{.file = file.name(), .kind = "oracle", .checked = replay.operations > 0, .replay = replay}};
}

std::vector<VerifiedRecording> verify_snapshot(InputFile& file, const ReadOptions& options) {
  TorchSnapshot snapshot = read_torch_snapshot(file, {.torch = options.torch});
  const std::optional<TruthFile> truth = truth_beside(file.path());
  if (!snapshot.torch) snapshot.torch = torch_version(truth);
  const WriterVersion version = writer_version(snapshot);
  const std::vector<std::string> warnings = file_warnings(snapshot, file.name());
  std::vector<VerifiedRecording> recordings;
  for (const int device : devices_to_answer(snapshot, options.device, file.name())) {
    SnapshotReplayResult result;
    const bool tells = tells_of_program(history_of(snapshot, device));
    if (tells && !snapshot.made) {
      result = replay_snapshot(snapshot, device, {.truth = truth ? &*truth : nullptr, .limit = std::nullopt});
    }
    std::ranges::copy(warnings, std::back_inserter(result.warnings));
    std::ranges::copy(snapshot_notes(snapshot), std::back_inserter(result.warnings));
    if (const std::string newer = newer_version_note(version.torch); !newer.empty()) {
      result.warnings.push_back(newer);
    }
    recordings.push_back({.file = file.name(),
                          .kind = "snapshot",
                          .device = device,
                          .initial_state = result.initial_state,
                          .initial_blocks = result.initial_blocks,
                          .inferred_blocks = result.inferred_blocks,
                          .inferred_bytes = result.inferred_bytes,
                          .made_without_card = snapshot.made.has_value(),
                          .checked = result.entries_checked > 0,
                          .torch_version = to_text(version.torch),
                          .torch_from = version.from,
                          .skipped_entries = skipped_entries(history_of(snapshot, device)),
                          .replay = result});
  }
  if (recordings.empty()) {
    throw InputError(file.name(),
                     "the snapshot holds neither memory nor a history. Record one with "
                     "torch.cuda.memory._record_memory_history(), best before the first allocation.");
  }
  return recordings;
}

std::vector<ReplayableRecording> replayable_oracle_log(InputFile& file) {
  const OracleLog log = parse_oracle_log(file.rest(), file.name());
  if (parse_allocator_settings(log.conf).backend != AllocatorBackend::native) return {};
  OracleProgram written = oracle_program(log);
  for (std::size_t i = 0; i < log.operations.size(); ++i) {
    const bool is_action = written.first_action[i] < written.first_action[i + 1];
    if (is_action || !log.operations[i].kind.starts_with("free")) continue;
    throw InputError("/ops/" + std::to_string(i), "frees a pointer that no operation allocated.");
  }
  auto recorded = recorded_reserved(log, written);
  std::vector<ReplayableRecording> recordings;
  recordings.push_back({plain_name(file.path()), std::move(written.program), std::move(recorded)});
  return recordings;
}

std::vector<ReplayableRecording> replayable_programs(const std::filesystem::path& file,
                                                     std::vector<ClientProgram> programs) {
  std::vector<ReplayableRecording> recordings;
  for (ClientProgram& program : programs) recordings.push_back({plain_name(file), std::move(program), {}});
  return recordings;
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
