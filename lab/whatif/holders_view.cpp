// Who holds the memory: tables and JSON.
#include <algorithm>

#include <fmt/format.h>

#include "lab/metric.hpp"
#include "lab/whatif/holders.hpp"

namespace vramlab {
namespace {

std::string category_name(Category category) {
  return std::string{kCategoryNames[static_cast<std::size_t>(category)]};
}

std::string evidence_name(Evidence how) { return std::string{kEvidenceNames[static_cast<std::size_t>(how)]}; }

/// Idle memory of one kind of holder.
struct IdleSum {
  Bytes idle = 0;
  std::size_t pins = 0;
  std::size_t blocks = 0;
};

IdleSum idle_of(const Holders& holders, Pin::Holder holder) {
  IdleSum sum;
  for (const HeldIdle& held : holders.pins) {
    if (held.pin.holder != holder) continue;
    sum.idle += held.pin.idle;
    sum.blocks += held.pin.blocks.size();
    ++sum.pins;
  }
  return sum;
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string text;
  for (const std::string& one : texts) text += (text.empty() ? "" : between) + one;
  return text;
}

/// All by which a pin is gone: other settings, then other ways of the program.
std::vector<std::string> freed_by(const HeldIdle& held) {
  std::vector<std::string> names = held.freed_by;
  for (const TriedRemedy& way : held.tried)
    if (way.frees) names.emplace_back(kRemedyNames[static_cast<std::size_t>(way.remedy)]);
  return names;
}

std::string holder_text(const HeldIdle& held) {
  if (held.pin.holder == Pin::Holder::nothing) return "nothing: empty_cache() gives it back";
  if (held.pin.holder == Pin::Holder::pool) return "a private pool in use";
  if (!held.category) return "a block of the allocator's own";
  std::string text = category_name(*held.category);
  if (!held.stack.empty()) text = held.stack.front() + " (" + text + ')';
  if (held.pin.blocks.size() == 1) return text;
  return fmt::format("{} and {} more", text, held.pin.blocks.size() - 1);
}

Json stack_json(const std::vector<std::string>& stack) { return stack.empty() ? Json(nullptr) : Json(stack); }

Json pin_json(const HeldIdle& held) {
  constexpr std::array kHolders{"blocks", "pool", "nothing"};
  const bool named = !held.pin.blocks.empty();
  Json json{{"bytes_held", held.pin.idle},
            {"held_by", kHolders[static_cast<std::size_t>(held.pin.holder)]},
            {"size", held.pin.size},
            {"blocks", held.pin.blocks.size()}};
  json["stack"] = stack_json(held.stack);
  json["category"] = held.category ? Json(category_name(*held.category)) : Json(nullptr);
  json["since"] = named ? Json(held.since) : Json(nullptr);
  json["since_action"] = named ? Json(held.since_action) : Json(nullptr);
  std::vector<std::string> ways = freed_by(held);
  if (held.pin.holder == Pin::Holder::nothing) ways = {"empty_cache()"};
  json["freed_by"] = ways.empty() ? Json(nullptr) : Json(ways);
  json["tried"] = Json::array();
  for (const TriedRemedy& way : held.tried)
    json["tried"].push_back({{"way", kRemedyNames[static_cast<std::size_t>(way.remedy)]},
                             {"bytes_held", way.held},
                             {"peak_reserved_bytes", way.reserved},
                             {"frees", way.frees}});
  return json;
}

Json timeline_json(const CategoryTimeline& timeline) {
  Json json{{"action", timeline.actions}};
  json["allocated_bytes"] = Json::object();
  for (std::size_t i = 0; i < timeline.allocated.size(); ++i) {
    if (std::ranges::any_of(timeline.allocated[i], [](Bytes bytes) { return bytes > 0; }))
      json["allocated_bytes"][std::string{kCategoryNames[i]}] = timeline.allocated[i];
  }
  json["reserved_bytes"] = timeline.reserved;
  json["marks"] = Json::array();
  for (const auto& [action, name] : timeline.marks)
    json["marks"].push_back({{"action", action}, {"name", name}});
  json["failures"] = Json::array();
  for (const auto& [action, bytes] : timeline.failures)
    json["failures"].push_back({{"action", action}, {"requested_bytes", bytes}});
  return json;
}

}  // namespace

Table categories_table(const Holders& holders) {
  Table table{{"bytes", "share", "blocks", "most", left("category"), left("known by")}};
  for (const CategoryShare& share : holders.categories) {
    const double part = holders.allocated == 0
                            ? 0
                            : static_cast<double>(share.bytes) / static_cast<double>(holders.allocated);
    table.add_row({format_bytes(share.bytes), percent_text(part), std::to_string(share.blocks),
                   format_bytes(share.most), category_name(share.category),
                   evidence_name(share.how) + (share.inferred() ? " (inferred)" : "")});
  }
  table.add_total({format_bytes(holders.allocated), percent_text(holders.allocated == 0 ? 0 : 1),
                   std::to_string(holders.blocks), "", "total", ""});
  return table;
}

std::string categories_sentence(const Holders& holders) {
  return fmt::format("At {}: {} allocated in {} block{}; {}.", holders.moment,
                     format_bytes(holders.allocated), holders.blocks, holders.blocks == 1 ? "" : "s",
                     holders.steps == 0 ? "no steps of training were found in the recording"
                                        : fmt::format("{} step{} of training found", holders.steps,
                                                      holders.steps == 1 ? "" : "s"));
}

Table pins_table(const Holders& holders, std::size_t most) {
  Table table{{"idle", "size", left("held by"), left("since"), left("freed by")}};
  const auto add = [&](const HeldIdle& held) {
    table.add_row({format_bytes(held.pin.idle), held.pin.size == 0 ? "-" : format_bytes(held.pin.size),
                   holder_text(held), held.pin.blocks.empty() ? "-" : held.since,
                   freed_by(held).empty() ? "-" : joined(freed_by(held), ", ")});
  };
  // What blocks hold comes first, the largest first; a pool in use, and nothing, keep rows of their own.
  const auto held_by_blocks = static_cast<std::size_t>(std::ranges::count_if(
      holders.pins, [](const HeldIdle& held) { return held.pin.holder == Pin::Holder::blocks; }));
  const std::size_t shown = held_by_blocks <= most + 1 ? held_by_blocks : most;
  std::for_each_n(holders.pins.begin(), shown, add);
  if (shown < held_by_blocks) {
    Bytes idle = 0;
    for (std::size_t i = shown; i < held_by_blocks; ++i) idle += holders.pins[i].pin.idle;
    table.add_row({format_bytes(idle), "-", fmt::format("{} others", held_by_blocks - shown), "-", "-"});
  }
  std::for_each(holders.pins.begin() + static_cast<std::ptrdiff_t>(held_by_blocks), holders.pins.end(), add);
  return table;
}

std::string pins_sentence(const Holders& holders) {
  std::string text = fmt::format("Idle at {}: {} of {} reserved", holders.pins_moment,
                                 format_bytes(holders.idle), format_bytes(holders.reserved));
  if (holders.idle == 0) return text + '.';
  std::vector<std::string> parts;
  if (const IdleSum held = idle_of(holders, Pin::Holder::blocks); held.pins > 0)
    parts.push_back(fmt::format("{} held by {} block{}", format_bytes(held.idle), held.blocks,
                                held.blocks == 1 ? "" : "s"));
  if (const IdleSum pools = idle_of(holders, Pin::Holder::pool); pools.pins > 0)
    parts.push_back(format_bytes(pools.idle) + " kept for private pools");
  if (const IdleSum free = idle_of(holders, Pin::Holder::nothing); free.pins > 0)
    parts.push_back(format_bytes(free.idle) + " held by nothing (empty_cache() gives it back)");
  return text + "; " + joined(parts, ", ") + '.';
}

std::string remedies_sentence(const Holders& holders) {
  const auto is_tried = [](const HeldIdle& held) { return !held.tried.empty(); };
  const auto pins = std::ranges::count_if(holders.pins, is_tried);
  if (pins == 0) return "";
  const bool helps = std::ranges::any_of(holders.pins, [](const HeldIdle& held) {
    return std::ranges::any_of(held.tried, &TriedRemedy::frees);
  });
  return fmt::format(
      "The {} held by blocks {} also tried with blocks like theirs in a MemPool (pool), allocated at the "
      "beginning of "
      "their stretch (earlier), or freed at its beginning (freed earlier){}",
      pins == 1 ? "largest" : fmt::format("{} largest", pins), pins == 1 ? "was" : "were",
      helps ? "." : "; none of that frees one.");
}

void add_holders(Json& json, const Holders& holders, bool timeline) {
  json["categories"] = Json::array();
  for (const CategoryShare& share : holders.categories) {
    json["categories"].push_back({{"name", category_name(share.category)},
                                  {"bytes", share.bytes},
                                  {"most_bytes", share.most},
                                  {"blocks", share.blocks},
                                  {"how", evidence_name(share.how)},
                                  {"inferred", share.inferred()}});
  }
  json["categories_at"] = {{"action", holders.at},
                           {"moment", holders.moment},
                           {"allocated_bytes", holders.allocated},
                           {"steps", holders.steps}};
  json["pins"] = Json::array();
  for (const HeldIdle& held : holders.pins) json["pins"].push_back(pin_json(held));
  json["pins_at"] = {{"action", holders.pins_at},
                     {"moment", holders.pins_moment},
                     {"reserved_bytes", holders.reserved},
                     {"idle_bytes", holders.idle}};
  const std::string remedies = remedies_sentence(holders);
  json["pins_tried"] = remedies.empty() ? Json(nullptr) : Json(remedies);
  if (timeline) json["timeline"] = timeline_json(holders.timeline);
}

}  // namespace vramlab
