// vramlab verify: how exactly does the simulator reproduce this recording.
#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "cli/verb.hpp"
#include "recordings/open.hpp"
#include "recordings/replay/verification.hpp"

namespace vramlab {
namespace {

Json divergence_json(const VerifiedRecording& recording) {
  if (!recording.replay.first_divergence) return nullptr;
  const Divergence& divergence = *recording.replay.first_divergence;
  return {{"operation", divergence.operation}, {"kind", divergence.kind},
          {"what", divergence.what},           {"recorded", divergence.recorded},
          {"simulated", divergence.simulated}, {"state", divergence.state}};
}

Json recording_json(const VerifiedRecording& recording) {
  const ReplayResult& r = recording.replay;
  return {{"file", recording.file},
          {"kind", recording.kind},
          {"device", recording.device},
          {"operations", r.operations},
          {"addresses_checked", r.addresses_checked},
          {"addresses_given", r.addresses_given},
          {"address_mismatches", r.address_mismatches},
          {"counters_checked", r.counters_checked},
          {"counter_mismatches", r.counter_mismatches},
          {"oom_texts_checked", r.oom_texts_checked},
          {"oom_text_mismatches", r.oom_text_mismatches},
          {"segment_events_recorded", r.segment_events_recorded},
          {"segment_events_matched", r.segment_events_matched},
          {"initial_state", recording.initial_state},
          {"initial_blocks", recording.initial_blocks},
          {"inferred_blocks", recording.inferred_blocks},
          {"inferred_bytes", recording.inferred_bytes},
          {"checked", recording.checked},
          {"made_without_card", recording.made_without_card},
          {"torch_version", recording.torch_version.empty() ? Json(nullptr) : Json(recording.torch_version)},
          {"torch_version_from", recording.torch_from.empty() ? Json(nullptr) : Json(recording.torch_from)},
          {"skipped_entries", recording.skipped_entries},
          {"approximate", r.approximate},
          {"warnings", r.warnings},
          {"first_divergence", divergence_json(recording)}};
}

std::string of_checked(std::uint64_t mismatches, std::uint64_t checked) {
  return fmt::format("{} of {}", mismatches, checked);
}

Table recordings_table(const std::vector<VerifiedRecording>& recordings) {
  Table table{{left("recording"), left("start"), "operations", "wrong addresses", "given", "wrong counters",
               "wrong OOM texts", "segment events", left("approximate")}};
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
  std::size_t checked = 0;
  std::uint64_t addresses = 0;
  std::uint64_t counters = 0;
  for (const VerifiedRecording& recording : recordings) {
    if (!recording.checked) continue;
    ++checked;
    exact += recording.replay.exact() ? 1 : 0;
    addresses += recording.replay.addresses_checked;
    counters += recording.replay.counters_checked;
  }
  const std::size_t silent = recordings.size() - checked;
  const std::string nothing = fmt::format("othing to check{}: {} no history of what the program asked for.",
                                          checked == 0 ? "" : fmt::format(" in {} more", silent),
                                          recordings.size() == 1 ? "the file holds"
                                          : silent == 1          ? "it holds"
                                                                 : "they hold");
  const bool all_made = std::ranges::all_of(recordings, &VerifiedRecording::made_without_card);
  if (all_made) return "Nothing to check: what was made without a card has no addresses to verify.";
  if (checked == 0) return "N" + nothing;
  return fmt::format("{} of {} recordings are reproduced exactly ({} addresses and {} counters checked).{}",
                     exact, checked, addresses, counters, silent == 0 ? "" : " N" + nothing);
}

void print_details(const VerifiedRecording& recording, Output& output) {
  for (const std::string& warning : recording.replay.warnings) {
    const bool says_file = warning.starts_with(recording.file);
    output.line("warning: {}{}", says_file ? "" : recording.name() + ": ", warning);
  }
  if (recording.made_without_card) {
    output.line("{} was made without a card: its addresses are made up, and no allocator ever answered it.",
                recording.name());
  }
  if (recording.initial_state != "empty") {
    output.line("{}: blocks in use at the start: {}, of inferred size: {} ({}).", recording.name(),
                recording.initial_blocks, recording.inferred_blocks, format_bytes(recording.inferred_bytes));
  }
  if (!recording.replay.first_divergence) return;
  const Divergence& divergence = *recording.replay.first_divergence;
  output.line("{} parts from the recording at operation {} ({}): {}: recorded {}, simulated {}\n  {}",
              recording.name(), divergence.operation, divergence.kind, divergence.what, divergence.recorded,
              divergence.simulated, divergence.state);
}

void add_verify_options(Options& options) {
  add_torch_version_option(options);
  add_output_options(options);
}

int run_verify(const Arguments& arguments, Output& output) {
  require_output_names(with_siblings(operands(arguments)), {text_of(arguments, "json")});
  const ReadOptions options{.torch = chosen_torch_version(arguments), .device = {}};
  std::vector<VerifiedRecording> recordings;
  LongWork work{operands(arguments).size(), "files", arguments, output};
  const bool all_done = work.for_each(operands(arguments), [&](const std::string& file) {
    std::ranges::move(verify_recording(file, options), std::back_inserter(recordings));
  });
  if (recordings.empty()) return kStoppedByUser;
  output.line(verdict(recordings));
  output.next_table(recordings_table(recordings));
  for (const VerifiedRecording& recording : recordings) print_details(recording, output);
  Json list = Json::array();
  for (const VerifiedRecording& recording : recordings) list.push_back(recording_json(recording));
  output.json({{"files", std::move(list)}});
  const bool all_exact = std::all_of(recordings.begin(), recordings.end(),
                                     [](const VerifiedRecording& r) { return r.replay.exact(); });
  if (!all_done) return kStoppedByUser;
  return all_exact ? kDone : kExpectationFailed;
}

}  // namespace

Verb verify_verb() {
  return {.name = "verify",
          .summary = "how exactly does the simulator reproduce this recording of a real allocator",
          .operands = "FILE...",
          .count = {1, 100000},
          .example = "vramlab verify tests/data/oracle/default_1.json.gz",
          .add_options = add_verify_options,
          .run = run_verify};
}

}  // namespace vramlab
