#include "trace/replayable_recording.hpp"

#include <algorithm>

#include "sim/core/error.hpp"
#include "trace/input_file.hpp"
#include "trace/oracle_log.hpp"
#include "trace/oracle_program.hpp"
#include "trace/snapshot_program.hpp"

namespace vramlab {
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
