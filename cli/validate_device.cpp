// vramlab validate-device and what else a build with CUDA can do on a real card.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/output/progress.hpp"
#include "core/error.hpp"
#include "cuda/card.hpp"
#include "cuda/card_performer.hpp"
#include "cuda/cuda_segments.hpp"
#include "cuda/job_worker.hpp"
#include "cuda/memory_holder.hpp"
#include "cuda/validation.hpp"
#include "lab/decisions.hpp"
#include "lab/scenario/device_profile.hpp"
#include "recordings/open.hpp"
#include "recordings/replay/verification.hpp"

namespace vramlab {

namespace {

/// Those that this process may use, each opened when it is first needed.
using SharedCards = std::vector<std::shared_ptr<SharedCard>>;

// Where there is none, the first says so when it is opened.
SharedCards cards_here(double time_scale) {
  SharedCards cards;
  const std::size_t count = std::max<std::size_t>(1, visible_cards());
  while (cards.size() < count) {
    cards.push_back(std::make_shared<SharedCard>(time_scale, static_cast<int>(cards.size())));
  }
  return cards;
}

DeviceMakers makers_of(const SharedCards& cards) {
  return {.performer =
              [cards](const ProcessWork& work, const ProcessSetup& setup, std::size_t card) {
                return std::make_unique<CardPerformer>(work, setup, cards.at(card));
              },
          .job_card =
              [cards](std::size_t card, Bytes total, Bytes context) {
                return std::make_unique<CardOfJobs>(
                    total, context, cards.at(card),
                    [device = static_cast<int>(card)] { return start_job_process(device); });
              },
          .cards = visible_cards()};
}

}  // namespace

DeviceMakers card_makers(double time_scale) { return makers_of(cards_here(time_scale)); }

int hold_card_memory(int device) { return run_memory_holder(device); }
int perform_card_job(int device) { return run_job_worker(device); }

// What validate-device does where there is CUDA.
namespace {

struct Validated {
  ReplayableRecording recorded;
  CardReplay replay;
  RecordedAgreement against_recording;
};

std::string card_text(const CardInfo& card) {
  return fmt::format("{}, driver {}, CUDA {}", card.name, card.driver, card.runtime);
}

std::string of(std::size_t part, std::size_t whole) { return fmt::format("{} of {}", part, whole); }

Validated validate(ReplayableRecording recorded, bool with_limit) {
  ReplaySetup setup;
  setup.settings = recorded.program.settings;
  if (with_limit) setup.limit = recorded.program.limit;
  Validated validated{.recorded = std::move(recorded), .replay = {}, .against_recording = {}};
  validated.replay = replay_on_card(validated.recorded.program, setup);
  validated.against_recording = compare_with_recording(validated.recorded, validated.replay.card);
  validated.replay.card = {};  // the largest part, and done with
  return validated;
}

Table recordings_table(const std::vector<Validated>& all) {
  Table table{{left("recording"), "actions", "equal addresses", "equal OOMs", "equal reserved",
               "equal segments", left("layout"), "own bases: reserved", "recorded: reserved",
               "recorded: OOMs", "read back", "card s", "simulated s"}};
  for (const Validated& one : all) {
    const ReplayAgreement& given = one.replay.given;
    const RecordedAgreement& recorded = one.against_recording;
    const bool has_recorded = recorded.operations > 0;
    table.add_row({one.recorded.name, fmt::format("{}", given.actions),
                   of(given.equal_addresses, given.allocations), of(given.equal_ooms, given.any_ooms),
                   of(given.equal_reserved, given.actions), of(given.equal_segments, given.actions),
                   given.equal_layout ? "equal" : "differs",
                   of(one.replay.fitted.equal_reserved, one.replay.fitted.actions),
                   has_recorded ? of(recorded.equal_reserved, recorded.operations) : "-",
                   has_recorded ? of(recorded.equal_ooms, recorded.ooms) : "-",
                   format_bytes(one.replay.checked), fmt::format("{:.3f}", one.replay.card_seconds),
                   fmt::format("{:.4f}", one.replay.simulated_seconds)});
  }
  return table;
}

Json agreement_json(const ReplayAgreement& agreement) {
  return {{"actions", agreement.actions},
          {"allocations", agreement.allocations},
          {"equal_addresses", agreement.equal_addresses},
          {"ooms", agreement.ooms},
          {"ooms_on_either_side", agreement.any_ooms},
          {"equal_ooms", agreement.equal_ooms},
          {"equal_reserved", agreement.equal_reserved},
          {"equal_segments", agreement.equal_segments},
          {"equal_layout", agreement.equal_layout},
          {"peak_reserved_card_bytes", agreement.peak_reserved_card},
          {"peak_reserved_simulated_bytes", agreement.peak_reserved_simulated},
          {"first_difference", agreement.first_difference ? Json(*agreement.first_difference) : Json()}};
}

Json parted_json(const std::optional<PartedCall>& parted) {
  if (!parted) return nullptr;
  constexpr const char* kNames[] = {"reserve", "release", "map", "unmap"};
  return {{"call", parted->call},
          {"kind", kNames[static_cast<std::size_t>(parted->card.kind)]},
          {"bytes", parted->card.size},
          {"card_served", parted->card.served},
          {"simulator_served", parted->simulated.served},
          {"card_free_bytes", parted->card.free_before},
          {"simulator_free_bytes", parted->simulated.free_before}};
}

Json recording_json(const Validated& one) {
  return {{"recording", one.recorded.name},
          {"agrees", one.replay.agrees()},
          {"exact", one.replay.given.exact()},
          {"driver_bases", agreement_json(one.replay.given)},
          {"own_bases", agreement_json(one.replay.fitted)},
          {"one_page_less", one.replay.page_less ? agreement_json(*one.replay.page_less) : Json(nullptr)},
          {"recorded",
           {{"operations", one.against_recording.operations},
            {"equal_reserved", one.against_recording.equal_reserved},
            {"ooms", one.against_recording.ooms},
            {"equal_ooms", one.against_recording.equal_ooms}}},
          {"first_call_with_another_answer", parted_json(one.replay.other_answer)},
          {"first_call_with_other_free_memory", parted_json(one.replay.other_free)},
          {"free_at_start_bytes", one.replay.free_at_start},
          {"free_at_end_bytes", one.replay.free_at_end},
          {"read_back_bytes", one.replay.checked},
          {"card_s", one.replay.card_seconds},
          {"simulated_s", one.replay.simulated_seconds}};
}

Json card_json(const CardInfo& card) {
  return {{"name", card.name},
          {"driver", card.driver},
          {"runtime", card.runtime},
          {"total_bytes", card.total},
          {"free_bytes", card.free},
          {"context_bytes", card.context},
          {"context_from", card.context_source}};
}

DeviceProfile measure_profile(const CardInfo& card) {
  return {.name = card.name,
          .driver = card.driver,
          .total = card.total,
          .context = card.context,
          .granularity = cuda_granularity(),
          .times = measure_driver_times()};
}

Table profile_table(const DeviceProfile& profile) {
  Table table{{"size", "cudaMalloc, µs", "cudaFree, µs", "create, µs", "map, µs", "unmap, µs"}};
  const auto cell = [](const std::vector<MeasuredTime>& times, Bytes size) {
    const auto found =
        std::find_if(times.begin(), times.end(), [&](const MeasuredTime& t) { return t.size == size; });
    return found == times.end() ? "-"
                                : fmt::format("{:.1f}", static_cast<double>(found->time.count()) * 1e-3);
  };
  std::vector<Bytes> sizes;
  for (const MeasuredTime& time : profile.times.mallocs) sizes.push_back(time.size);
  for (const MeasuredTime& time : profile.times.maps) sizes.push_back(time.size);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const Bytes size : sizes) {
    table.add_row({format_bytes(size), cell(profile.times.mallocs, size), cell(profile.times.frees, size),
                   cell(profile.times.creates, size), cell(profile.times.maps, size),
                   cell(profile.times.unmaps, size)});
  }
  return table;
}

std::string verdict(const std::vector<Validated>& all, const CardInfo& card) {
  std::size_t agreeing = 0;
  std::size_t page_less = 0;
  std::size_t allocations = 0;
  Bytes checked = 0;
  for (const Validated& one : all) {
    agreeing += one.replay.agrees() ? 1 : 0;
    page_less += one.replay.agrees() && !one.replay.given.exact() ? 1 : 0;
    allocations += one.replay.given.allocations;
    checked += one.replay.checked;
  }
  return fmt::format(
      "{} of {} recordings run alike on {} and in the simulator{} ({} allocations, {} written and read "
      "back).",
      agreeing, all.size(), card_text(card),
      page_less > 0 ? fmt::format(", {} of them with one page less there", page_less) : "", allocations,
      format_bytes(checked));
}

void print_parted(const Validated& one, Output& output) {
  const auto& parted = one.replay.other_answer;
  if (!parted) return;
  const char* rest = one.replay.agrees() ? "With one page less there, every action is alike."
                                         : "With one page less there they part as well.";
  output.line("{}: {} were {} by the card with {} free, and {} by the simulator with {} free. {}",
              one.recorded.name, format_bytes(parted->card.size), parted->card.served ? "given" : "refused",
              format_bytes(parted->card.free_before), parted->simulated.served ? "given" : "refused",
              format_bytes(parted->simulated.free_before), rest);
}

std::optional<Bytes> size_to_leave(const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes && !text.empty())
    throw InputError("--leave", "\"" + text + "\" is not a size. Write 3GiB, 3000MiB or a number of bytes.");
  return bytes;
}

void report_profile(const CardInfo& card, const std::string& file, Output& output, Json& json) {
  const DeviceProfile profile = measure_profile(card);
  json["profile"] = profile_json(profile);
  output.line("{}: {} in all, {} taken by the context ({}), pages of {}.", card_text(card),
              format_bytes(card.total), format_bytes(card.context), card.context_source,
              format_bytes(profile.granularity));
  output.next_table(profile_table(profile));
  output.write(file, profile_json(profile).dump(2) + "\n");
}

void report_replays(const std::vector<Validated>& all, const CardInfo& card, Output& output, Json& json) {
  json["recordings"] = Json::array();
  for (const Validated& one : all) json["recordings"].push_back(recording_json(one));
  if (all.empty()) return;
  output.line(verdict(all, card));
  output.next_table(recordings_table(all));
  for (const Validated& one : all) print_parted(one, output);
}

// One of each family, of some hundred steps each, and one of queues whose jobs have policies of their own.
constexpr std::array kFamilies{"scenarios/gpt2-rtx-3060.json", "scenarios/find-phases.json",
                               "scenarios/epoch-lengths.json", "scenarios/queue-one-card.json",
                               "scenarios/queue-own-policies.json"};

std::vector<std::string> family_files() {
  std::vector<std::string> files;
  for (const char* name : kFamilies) {
    const auto file = find_data_file(name, "");
    if (!file) {
      throw InputError("--families", std::string{name} +
                                         " is neither here nor in the data folder; name "
                                         "scenarios instead.");
    }
    files.push_back(file->string());
  }
  return files;
}

// A pipe can be read once only, and is a recording.
bool is_scenario(const std::string& name) {
  if (!std::filesystem::is_regular_file(name)) return false;
  InputFile file(name);
  return kind_of(file) == FileKind::scenario;
}

void report_decisions(const std::vector<ScenarioOnBoth>& all, const CardInfo& card, Output& output,
                      Json& json) {
  json["scenarios"] = decisions_json(all);
  if (all.empty()) return;
  const auto alike = std::ranges::count_if(all, [](const ScenarioOnBoth& one) { return one.agrees(); });
  output.line("Policies of {} of {} scenarios decide alike on {} and in the simulator.", alike, all.size(),
              card_text(card));
  output.next_table(decisions_table(all));
  for (const std::string& line : decision_differences(all)) output.line(line);
}

}  // namespace

int validate_device(const Arguments& arguments, Output& output) {
  auto files = operands(arguments);
  if (arguments["families"].as<bool>()) std::ranges::copy(family_files(), std::back_inserter(files));
  const std::string profile_file = text_of(arguments, "profile");
  const std::optional<Bytes> leave = size_to_leave(text_of(arguments, "leave"));
  require_output_names(files, {text_of(arguments, "json"), profile_file});
  if (files.empty() && profile_file.empty()) {
    throw InputError(
        "",
        "nothing to do: name recordings to replay or scenarios to run (--families: one of each), "
        "or --profile FILE to measure the card.");
  }
  // All are read before the card is touched. Steps wait for nothing: times are not compared.
  const auto recordings = std::stable_partition(files.begin(), files.end(), is_scenario);
  const SharedCards cards = cards_here(0);
  const DeviceMakers device = makers_of(cards);
  std::vector<ScenarioOnBoth> scenarios;
  for (auto file = files.begin(); file != recordings; ++file) {
    scenarios.emplace_back(output.scenario(*file, builtin_policies()),
                           Question{.make_performer = device.performer,
                                    .make_job_card = device.job_card,
                                    .device_cards = device.cards});
  }
  auto programs = read_each(std::vector<std::string>(recordings, files.end()), read_replayable);

  const CardInfo& card = cards.front()->info();
  Json json;
  json["card"] = card_json(card);
  if (!profile_file.empty()) report_profile(card, profile_file, output, json);
  std::unique_ptr<MemoryHolder> holder;
  if (leave) {
    holder = std::make_unique<MemoryHolder>();
    json["held_by_second_process_bytes"] = holder->leave_free(*leave);
  }
  std::vector<Validated> all;
  LongWork work{programs.size() + scenarios.size(), "recordings and scenarios", arguments, output};
  bool all_done = work.for_each(
      programs, [&](ReplayableRecording& program) { all.push_back(validate(std::move(program), !leave)); });
  report_replays(all, card, output, json);
  holder.reset();
  std::vector<ScenarioOnBoth> decided;
  all_done = all_done && work.for_each(scenarios, [&](ScenarioOnBoth& scenario) {
    scenario.run();
    decided.push_back(std::move(scenario));
  });
  report_decisions(decided, card, output, json);
  output.json(json);
  if (!all_done) return kStoppedByUser;
  const bool alike = std::ranges::all_of(all, [](const Validated& one) { return one.replay.agrees(); }) &&
                     std::ranges::all_of(decided, [](const ScenarioOnBoth& one) { return one.agrees(); });
  return alike ? kDone : kExpectationFailed;
}

}  // namespace vramlab
