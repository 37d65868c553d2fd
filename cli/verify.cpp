// vramlab verify: how exactly does the simulator reproduce this recording.
#include <optional>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "recordings/open.hpp"
#include "recordings/replay/verification.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

Json divergence_json(const VerifiedRecording& recording) {
  if (!recording.replay.first_divergence) return nullptr;
  const Divergence& divergence = *recording.replay.first_divergence;
  Json json;
  json["operation"] = divergence.operation;
  json["kind"] = divergence.kind;
  json["what"] = divergence.what;
  json["recorded"] = divergence.recorded;
  json["simulated"] = divergence.simulated;
  json["state"] = divergence.state;
  return json;
}

Json recording_json(const VerifiedRecording& recording) {
  const ReplayResult& r = recording.replay;
  Json json;
  json["file"] = recording.file;
  json["kind"] = recording.kind;
  json["device"] = recording.device;
  json["operations"] = r.operations;
  json["addresses_checked"] = r.addresses_checked;
  json["addresses_given"] = r.addresses_given;
  json["address_mismatches"] = r.address_mismatches;
  json["counters_checked"] = r.counters_checked;
  json["counter_mismatches"] = r.counter_mismatches;
  json["oom_texts_checked"] = r.oom_texts_checked;
  json["oom_text_mismatches"] = r.oom_text_mismatches;
  json["segment_events_recorded"] = r.segment_events_recorded;
  json["segment_events_matched"] = r.segment_events_matched;
  json["initial_state"] = recording.initial_state;
  json["initial_blocks"] = recording.initial_blocks;
  json["inferred_blocks"] = recording.inferred_blocks;
  json["inferred_bytes"] = recording.inferred_bytes;
  json["approximate"] = r.approximate;
  json["warnings"] = r.warnings;
  json["first_divergence"] = divergence_json(recording);
  return json;
}

std::string of_checked(std::uint64_t mismatches, std::uint64_t checked) {
  return fmt::format("{} of {}", mismatches, checked);
}

Table recordings_table(const std::vector<VerifiedRecording>& recordings) {
  using Align = Table::Align;
  Table table{{{"recording", Align::left},
               {"start", Align::left},
               {"operations"},
               {"wrong addresses"},
               {"given"},
               {"wrong counters"},
               {"wrong OOM texts"},
               {"segment events"},
               {"approximate", Align::left}}};
  for (const VerifiedRecording& recording : recordings) {
    const ReplayResult& r = recording.replay;
    table.add_row({recording.name(), recording.initial_state, fmt::format("{}", r.operations),
                   of_checked(r.address_mismatches, r.addresses_checked),
                   fmt::format("{}", r.addresses_given), of_checked(r.counter_mismatches, r.counters_checked),
                   of_checked(r.oom_text_mismatches, r.oom_texts_checked),
                   fmt::format("{} of {}", r.segment_events_matched, r.segment_events_recorded),
                   r.approximate.empty() ? "-" : fmt::format("{}", fmt::join(r.approximate, ", "))});
  }
  return table;
}

std::string verdict(const std::vector<VerifiedRecording>& recordings) {
  std::size_t exact = 0;
  std::uint64_t addresses = 0;
  std::uint64_t counters = 0;
  for (const VerifiedRecording& recording : recordings) {
    exact += recording.replay.exact() ? 1 : 0;
    addresses += recording.replay.addresses_checked;
    counters += recording.replay.counters_checked;
  }
  return fmt::format("{} of {} recordings are reproduced exactly ({} addresses and {} counters checked).",
                     exact, recordings.size(), addresses, counters);
}

void print_details(const VerifiedRecording& recording, Output& output) {
  for (const std::string& warning : recording.replay.warnings) {
    output.line(fmt::format("warning: {}: {}", recording.name(), warning));
  }
  if (recording.initial_state != "empty") {
    output.line(fmt::format("{}: blocks in use at the start: {}, of inferred size: {} ({}).",
                            recording.name(), recording.initial_blocks, recording.inferred_blocks,
                            format_bytes(recording.inferred_bytes)));
  }
  if (!recording.replay.first_divergence) return;
  const Divergence& divergence = *recording.replay.first_divergence;
  output.line(
      fmt::format("{} parts from the recording at operation {} ({}): {}: recorded {}, simulated {}\n  {}",
                  recording.name(), divergence.operation, divergence.kind, divergence.what,
                  divergence.recorded, divergence.simulated, divergence.state));
}

int run(const Arguments& arguments) {
  Output output{arguments};
  require_output_names(with_siblings(operands(arguments)), {arguments["json"].as<std::string>()});
  std::vector<VerifiedRecording> recordings;
  for (const std::string& file : operands(arguments)) {
    for (VerifiedRecording& recording : verify_recording(file)) recordings.push_back(std::move(recording));
  }
  output.line(verdict(recordings));
  output.line("");
  output.table(recordings_table(recordings));
  for (const VerifiedRecording& recording : recordings) print_details(recording, output);
  Json json;
  json["files"] = Json::array();
  for (const VerifiedRecording& recording : recordings) json["files"].push_back(recording_json(recording));
  output.json(json);
  const bool all_exact = std::all_of(recordings.begin(), recordings.end(),
                                     [](const VerifiedRecording& r) { return r.replay.exact(); });
  return all_exact ? kDone : kExpectationFailed;
}

}  // namespace

Verb verify_verb() {
  return {.name = "verify",
          .summary = "how exactly does the simulator reproduce this recording of a real allocator",
          .operands = "FILE...",
          .example = "vramlab verify tests/data/oracle/default_1.json.gz",
          .least_operands = 1,
          .most_operands = 100000,
          .add_options = add_output_options,
          .run = run};
}

}  // namespace vramlab
