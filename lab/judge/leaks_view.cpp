#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/judge/view.hpp"

namespace vramlab {
namespace {

std::string step_count(std::size_t steps) { return fmt::format("{} step{}", steps, steps == 1 ? "" : "s"); }

}  // namespace

LeakReport hunt_leaks(const ClientProgram& program, const std::optional<WhatIfCard>& card) {
  const ReadProgram read(program);
  LeakReport report{.file = program.file, .leaks = leaks_of(read)};
  ReplaySetup setup = recorded_setup(program);
  std::optional<Bytes> room = setup.limit;
  if (card) {
    if (*card->capacity < card->context)
      throw InputError("--capacity",
                       "the card does not even hold the context (" + format_bytes(card->context) + ").");
    setup.total = *card->capacity;
    setup.context = card->context;
    setup.limit.reset();
    room = setup.total - setup.context;
    report.card = card->name;
    report.context_assumed = card->context_assumed && !card->context_given;
  } else if (program.device_total) {
    room = std::min(room.value_or(kUnlimited), *program.device_total - setup.context);
    report.card = "the recorded card";
  } else if (room) {
    report.card = "the recorded limit";
  }
  if (read.steps.count() < 3)
    report.notes.push_back("A leak shows over three steps or more; there are fewer.");
  if (!read.has_stacks) report.notes.push_back(program.file + " holds no stacks: leaks are told by size.");
  if (read.steps.from == "none")
    report.notes.push_back(program.file + " has no marks and no gradients: it has no steps.");
  if (!report.leaks.empty() && room) report.forecast = forecast_of(read, setup, *room);
  report.forecast.recorded_steps = read.steps.count();
  return report;
}

std::vector<std::string> leak_sentences(const LeakReport& report) {
  if (report.leaks.empty()) {
    return {fmt::format("No leak: none of {} leaves blocks behind that the others left as well.",
                        step_count(report.forecast.recorded_steps))};
  }
  Bytes per_step = 0;
  for (const StepLeak& leak : report.leaks) per_step += leak.per_step;
  std::vector<std::string> sentences{fmt::format("Leaks: every step leaves {} behind, most of it at {}.",
                                                 format_bytes(per_step), report.leaks.front().where)};
  const LeakForecast& forecast = report.forecast;
  if (report.card.empty()) {
    sentences.emplace_back("When a card would be full is not known: name one with --gpu or --capacity.");
  } else if (forecast.full_at) {
    sentences.push_back(fmt::format(
        "Going on as in its last step, {}{} is full in step {} ({} for the allocator; reserved grows by {} a "
        "step{}).",
        report.card, report.context_assumed ? " (context assumed)" : "", *forecast.full_at,
        format_bytes(forecast.room), format_bytes(forecast.reserved_per_step),
        forecast.extrapolated ? fmt::format("; extrapolated from {} replayed steps", forecast.replayed_steps)
                              : "; by replay"));
  } else {
    sentences.push_back(
        fmt::format("In {} replayed steps reserved memory does not grow: the leak lies in what was "
                    "reserved anyway.",
                    forecast.replayed_steps));
  }
  return sentences;
}

Table leaks_table(const LeakReport& report) {
  Table table{{left("left behind at"), left("called from"), "from step", "steps", "a step", "in all"}};
  for (const StepLeak& leak : report.leaks) {
    table.add_row({leak.where, leak.frames.size() > 1 ? leak.frames[1] : "", std::to_string(leak.first_step),
                   std::to_string(leak.steps), format_bytes(leak.per_step), format_bytes(leak.bytes)});
  }
  return table;
}

Json leaks_json(const LeakReport& report) {
  const LeakForecast& forecast = report.forecast;
  Json json{{"file", report.file}, {"steps", forecast.recorded_steps}, {"leaks", Json::array()}};
  for (const StepLeak& leak : report.leaks) {
    json["leaks"].push_back({{"where", leak.where},
                             {"frames", leak.frames},
                             {"first_step", leak.first_step},
                             {"steps", leak.steps},
                             {"blocks", leak.blocks.size()},
                             {"bytes", leak.bytes},
                             {"bytes_per_step", leak.per_step}});
  }
  json["forecast"] = nullptr;
  if (!report.leaks.empty() && !report.card.empty()) {
    json["forecast"] = {{"card", report.card},
                        {"room_bytes", forecast.room},
                        {"reserved_bytes", forecast.reserved},
                        {"reserved_bytes_per_step", forecast.reserved_per_step},
                        {"full_at_step", forecast.full_at ? Json(*forecast.full_at) : Json()},
                        {"replayed_steps", forecast.replayed_steps},
                        {"extrapolated", forecast.extrapolated}};
  }
  json["notes"] = report.notes;
  return json;
}

}  // namespace vramlab
