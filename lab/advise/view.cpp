// What advice comes to: in sentences, tables, code to write, JSON, and the section of the page.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lab/advise/advise.hpp"

namespace vramlab {
namespace {

// The units of a point, by place.
std::string unit_names(const Advice& advice, const std::vector<std::size_t>& numbers) {
  std::vector<ModelUnit> units;
  for (const std::size_t number : numbers) units.push_back(advice.units[number].unit);
  return names_of(advice.places, units);
}

std::string part_text(const StepParts& part) {
  return part.size == 0 ? "" : fmt::format("{} in parts of {}", part.name, part.size);
}

std::string point_text(const Advice& advice, const AdvicePoint& point) {
  std::string text = part_text(point.part);
  if (!point.recomputed.empty()) text += (text.empty() ? "" : "; ") + unit_names(advice, point.recomputed);
  if (!point.offloaded.empty())
    text += (text.empty() ? "" : "; ") + std::string{"to host: "} + unit_names(advice, point.offloaded);
  if (point.optimizer_in_host)
    text += (text.empty() ? "" : "; ") + std::string{"optimizer state in host memory"};
  return text.empty() ? "nothing (as recorded)" : text;
}

std::string ratio_text(double ratio) { return fmt::format("{:+.1f} %", 100 * (ratio - 1)); }

std::string counted(std::int64_t count, const char* one, const char* more) {
  return fmt::format("{} {}", count, count == 1 ? one : more);
}

std::string fits_text(const AdvicePoint& point, const std::optional<Bytes>& usable) {
  if (!point.fits) return "-";
  if (!*point.fits && point.peak_reserved <= *usable) return "no: what failed fails again";
  if (!*point.fits) return fmt::format("no: {} more reserved", format_bytes(point.peak_reserved - *usable));
  if (point.peak_reserved <= *usable) return "yes";
  return "yes, with " + counted(point.outcome.stats.num_alloc_retries, "retry", "retries");
}

/// How many of one place, and which.
struct PlaceChoice {
  std::set<std::uint32_t> chosen;
  std::uint32_t count = 0;  ///< of the place's units
};

std::map<std::uint32_t, PlaceChoice> by_place(const Advice& advice, const std::vector<std::size_t>& numbers) {
  std::map<std::uint32_t, PlaceChoice> places;
  for (const std::size_t number : numbers)
    places[advice.units[number].unit.place].chosen.insert(advice.units[number].unit.number);
  for (auto& [place, choice] : places) {
    for (const UnitFigures& unit : advice.units) {
      if (unit.unit.place == place) choice.count = std::max(choice.count, unit.unit.number + 1);
    }
  }
  return places;
}

// The shortest condition on the number of a repeat; empty where all are meant.
std::string condition_of(const PlaceChoice& choice) {
  const auto& chosen = choice.chosen;
  const auto size = static_cast<std::uint32_t>(chosen.size());
  if (size == choice.count) return "";
  if (*chosen.begin() == 0 && *chosen.rbegin() == size - 1) return fmt::format("i < {}", size);
  if (*chosen.rbegin() - *chosen.begin() == size - 1 && *chosen.rbegin() == choice.count - 1)
    return fmt::format("i >= {}", *chosen.begin());
  for (std::uint32_t every = 2; every < choice.count; ++every) {
    const bool fits = size == (choice.count + every - 1) / every &&
                      std::ranges::all_of(chosen, [&](std::uint32_t i) { return i % every == 0; });
    if (fits) return fmt::format("i % {} == 0", every);
  }
  return fmt::format("i in ({}{})", fmt::join(chosen, ", "), size == 1 ? "," : "");
}

void add_lines(const Advice& advice, const std::vector<std::size_t>& numbers, const std::string& call,
               std::vector<std::string>& lines) {
  for (const auto& [place, choice] : by_place(advice, numbers)) {
    const std::string condition = condition_of(choice);
    const std::string which =
        choice.count == 1 ? ""
        : condition.empty()
            ? fmt::format("  # all {} that are called there", choice.count)
            : fmt::format("  # if {}, i counts the {} that are called there", condition, choice.count);
    lines.push_back(advice.places[place] + ": " + call + which);
  }
}

Json names_json(const Advice& advice, const std::vector<std::size_t>& numbers) {
  Json names = Json::array();
  for (const std::size_t number : numbers) {
    const ModelUnit& unit = advice.units[number].unit;
    names.push_back(advice.places[unit.place] + '#' + std::to_string(unit.number));
  }
  return names;
}

Json point_json(const Advice& advice, const AdvicePoint& point) {
  return {{"units", names_json(advice, point.recomputed)},
          {"part", point.part.size == 0 ? Json(nullptr) : Json{{point.part.name, point.part.size}}},
          {"offloaded", names_json(advice, point.offloaded)},
          {"optimizer_state_in_host_memory", point.optimizer_in_host},
          {"peak_allocated_bytes", point.peak_allocated},
          {"peak_reserved_bytes", point.peak_reserved},
          {"time_ratio", point.time_ratio},
          {"host_bytes", point.host_bytes},
          {"fits", point.fits ? Json(*point.fits) : Json(nullptr)},
          {"retries", point.outcome.stats.num_alloc_retries},
          {"exact", point.exact},
          {"least_time_ratio", point.least_ratio},
          {"pytorch", pytorch_lines(advice, point)}};
}

Json unit_json(const Advice& advice, const UnitFigures& unit) {
  return {{"name", advice.places[unit.unit.place] + '#' + std::to_string(unit.unit.number)},
          {"place", advice.places[unit.unit.place]},
          {"number", unit.unit.number},
          {"calls", unit.unit.calls.size()},
          {"saved_bytes", unit.saved},
          {"inputs_kept_bytes", unit.inputs},
          {"recomputing_bytes", unit.most},
          {"copied_bytes", unit.copied},
          {"host_bytes", unit.host},
          {"time_share", unit.share}};
}

constexpr std::array<std::string_view, 4> kSourceNames{"stacks", "annotations", "repeated structure", "none"};

// "193.2 MiB", or "52.1 to 193.2 MiB".
template <class Value>
std::string range_text(const std::vector<const UnitFigures*>& units, Value value) {
  const auto [least, most] = std::ranges::minmax(units, {}, [&](const auto* unit) { return unit->*value; });
  const std::string high = format_bytes(most->*value);
  return least->*value == most->*value ? high : format_bytes(least->*value) + " to " + high;
}

}  // namespace

std::vector<std::string> advice_verdict(const Advice& advice, const AdviceQuestion& question) {
  const AdvicePoint& as_is = advice.front.front();
  const std::string needs =
      fmt::format("{} reserved and {} allocated at the peak", format_bytes(as_is.peak_reserved),
                  format_bytes(as_is.peak_allocated));
  const std::optional<Bytes> usable = question.usable();
  if (!usable) {
    if (advice.front.size() == 1)
      return {"Nothing is known that needs less than the recorded program: " + needs + '.'};
    const AdvicePoint& last = advice.front.back();
    return {
        fmt::format("The recorded program needs {}; {} reserved can be reached with {} of a step (assumed).",
                    needs, format_bytes(last.peak_reserved), ratio_text(last.time_ratio))};
  }
  const std::string room = fmt::format("{} ({} usable{})", question.card, format_bytes(*usable),
                                       question.context_assumed ? ", context assumed" : "");
  if (as_is.fits.value_or(false)) return {fmt::format("Fits on {} as it is: {}.", room, needs)};
  if (!advice.best) {
    const AdvicePoint& least = advice.front.back();
    return {
        fmt::format("Does not fit on {}, nor does anything that was tried: {}; at least {} reserved with {}.",
                    room, needs, format_bytes(least.peak_reserved), point_text(advice, least))};
  }
  const AdvicePoint& best = advice.front[*advice.best];
  const auto fits_with = [&](const AdvicePoint& point) {
    return fmt::format("{} of a step (assumed): {} reserved, {} allocated", ratio_text(point.time_ratio),
                       format_bytes(point.outcome.highest_reserved), format_bytes(point.peak_allocated));
  };
  std::vector<std::string> sentences{fmt::format("Does not fit on {} as it is: {}.", room, needs),
                                     fmt::format("Fits with {}.", fits_with(best))};
  if (best.peak_reserved > *usable) {
    const auto without = std::ranges::find_if(
        advice.front, [&](const AdvicePoint& point) { return point.peak_reserved <= *usable; });
    sentences.back().pop_back();
    sentences.back() += fmt::format(", after {} at which the cache is released",
                                    counted(best.outcome.stats.num_alloc_retries, "retry", "retries"));
    sentences.back() +=
        without == advice.front.end() ? "." : fmt::format("; without, {}.", fits_with(*without));
  }
  if (best.host_bytes > 0)
    sentences.back() += fmt::format(" It takes {} of pinned host memory.", format_bytes(best.host_bytes));
  if (!best.exact) {
    sentences.push_back(fmt::format("Whether something cheaper does is not proved: at least {}.",
                                    ratio_text(best.least_ratio)));
  }
  return sentences;
}

Table front_table(const Advice& advice, const AdviceQuestion& question) {
  Table table{{"time", "allocated", "reserved", left("fits"), left("computed again in backward")}};
  for (const AdvicePoint& point : advice.front) {
    table.add_row({ratio_text(point.time_ratio), format_bytes(point.peak_allocated),
                   format_bytes(point.peak_reserved), fits_text(point, question.usable()),
                   point_text(advice, point)});
  }
  return table;
}

Table units_table(const Advice& advice) {
  std::map<std::uint32_t, std::vector<const UnitFigures*>> places;
  for (const UnitFigures& unit : advice.units) places[unit.unit.place].push_back(&unit);
  Table table{
      {left("called at"), "repeats", "saved by each", "inputs kept", "while it runs again", "time of each"}};
  for (const auto& [place, units] : places) {
    const auto most = std::ranges::max_element(units, {}, [](const auto* unit) { return unit->share; });
    table.add_row({advice.places[place], fmt::format("{}", units.size()),
                   range_text(units, &UnitFigures::saved), range_text(units, &UnitFigures::inputs),
                   range_text(units, &UnitFigures::most), fmt::format("{:.1f} %", 100 * (*most)->share)});
  }
  return table;
}

std::vector<std::string> pytorch_lines(const Advice& advice, const AdvicePoint& point) {
  std::vector<std::string> lines;
  if (point.part.size > 0) {
    lines.push_back(
        fmt::format("for part in batch.split({}): loss(part).backward()  # of {}, its loss times "
                    "its share; zero_grad before, optimizer.step behind",
                    point.part.size, point.part.name));
  }
  add_lines(advice, point.recomputed, "checkpoint(module, ..., use_reentrant=False)", lines);
  add_lines(advice, point.offloaded,
            "with torch.autograd.graph.saved_tensors_hooks(to_host, to_card): module(...)", lines);
  if (point.optimizer_in_host) lines.emplace_back("an optimizer whose state is in host memory");
  return lines;
}

Json advice_json(const Advice& advice, const AdviceQuestion& question) {
  Json json{{"card", question.card.empty() ? Json(nullptr) : Json(question.card)},
            {"usable_bytes", question.usable() ? Json(*question.usable()) : Json(nullptr)},
            {"context_assumed", question.context_assumed},
            {"units_from", kSourceNames[static_cast<std::size_t>(advice.source)]},
            {"passes", advice.passes},
            {"solver", advice.solver ? "cbc" : "greedy"},
            {"step_seconds", question.step_seconds ? Json(question.step_seconds->value) : Json(nullptr)},
            {"step_seconds_from", question.step_seconds ? Json(question.step_seconds->from) : Json(nullptr)},
            {"host_bandwidth", question.host_bandwidth.value},
            {"host_bandwidth_from", question.host_bandwidth.from},
            {"times_from", "bytes allocated (assumed)"},
            {"optimizer_state_bytes", advice.optimizer_state}};
  json["units"] = Json::array();
  for (const UnitFigures& unit : advice.units) json["units"].push_back(unit_json(advice, unit));
  json["front"] = Json::array();
  for (const AdvicePoint& point : advice.front) json["front"].push_back(point_json(advice, point));
  json["best"] = advice.best ? Json(*advice.best) : Json(nullptr);
  json["notes"] = advice.notes;
  return json;
}

Json advice_section(const Advice& advice, const AdviceQuestion& question, const std::string& title) {
  const std::vector<std::string> verdict = advice_verdict(advice, question);
  std::string sentences;
  for (const std::string& sentence : verdict) sentences += (sentences.empty() ? "" : " ") + sentence;
  Json section = begun_section("advice", title, {sentences, ""});
  section["notes"] = advice.notes;
  section["usable"] = question.usable() ? Json(*question.usable()) : Json(nullptr);
  section["points"] = Json::array();
  for (const AdvicePoint& point : advice.front) {
    section["points"].push_back({{"time", point.time_ratio},
                                 {"allocated", point.peak_allocated},
                                 {"reserved", point.peak_reserved},
                                 {"fits", fits_text(point, question.usable())},
                                 {"what", point_text(advice, point)},
                                 {"pytorch", pytorch_lines(advice, point)}});
  }
  section["best"] = advice.best ? Json(*advice.best) : Json(nullptr);
  return section;
}

}  // namespace vramlab
