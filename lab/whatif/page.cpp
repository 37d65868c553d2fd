// The section of the page for one recorded program: its settings, and who holds its memory when and where.
#include <filesystem>
#include <map>
#include <span>

#include <fmt/format.h>

#include "lab/page/sections.hpp"
#include "lab/whatif/recording.hpp"
#include "lab/whatif/view.hpp"
#include "recordings/snapshot/stack_groups.hpp"

namespace vramlab {
namespace {

// Places in the list of categories that the page shows; -1 for one that never held anything.
std::array<int, kCategoryNames.size()> shown_places(const Holders& holders) {
  std::array<int, kCategoryNames.size()> places{};
  places.fill(-1);
  for (std::size_t i = 0; i < holders.categories.size(); ++i)
    places[static_cast<std::size_t>(holders.categories[i].category)] = static_cast<int>(i);
  return places;
}

// A stretch is named where it begins.
std::vector<std::pair<std::size_t, std::string>> stretches(const CategoryTimeline& timeline) {
  std::vector<std::pair<std::size_t, std::string>> begun;
  std::size_t begin = 0;
  for (const auto& [action, name] : timeline.marks) {
    begun.emplace_back(begin, name);
    begin = action;
  }
  return begun;
}

Json page_timeline(const Holders& holders) {
  const CategoryTimeline& timeline = holders.timeline;
  Json json{{"unit", "action"}, {"units", "actions"}, {"x", timeline.actions}};
  json["categories"] = Json::array();
  for (const CategoryShare& share : holders.categories) {
    const auto category = static_cast<std::size_t>(share.category);
    json["categories"].push_back(
        {{"name", kCategoryNames[category]}, {"bytes", timeline.allocated[category]}});
  }
  json["reserved"] = timeline.reserved;
  json["marks"] = Json::array();
  for (const auto& [begin, name] : stretches(timeline)) json["marks"].push_back({begin, name});
  json["ooms"] = Json::array();
  for (const auto& [action, bytes] : timeline.failures)
    json["ooms"].push_back({action, format_bytes(bytes) + " refused"});
  return json;
}

/// The segments of a moment, with the owners of their blocks; stacks are numbered as they come.
class MomentWriter {
 public:
  MomentWriter(const ClientProgram& program, const Holders& holders)
      : program_(program),
        holders_(holders),
        lifetimes_(lifetimes_of(program)),
        places_(shown_places(holders)) {}

  [[nodiscard]] Json segments() {
    Json list = Json::array();
    for (const SegmentView& segment : holders_.placed.segments) {
      Json blocks = Json::array();
      Bytes mapped = 0;
      for (const BlockView& block : segment.blocks) {
        if (block.state == BlockState::unmapped) continue;
        mapped += block.size;
        blocks.push_back(block_json(block));
      }
      if (mapped == 0) continue;
      list.push_back({{"address", fmt::format("{}", segment.base)},  // a number of JavaScript has 53 bits
                      {"bytes", mapped},
                      {"stream", segment.stream == 0 ? "" : fmt::format("stream {}", segment.stream)},
                      {"blocks", std::move(blocks)}});
    }
    return list;
  }

  [[nodiscard]] const Json& stacks() const { return stacks_; }

 private:
  // [bytes, category or -1 for idle memory, stack or -1, action of its birth or null]
  Json block_json(const BlockView& block) {
    const auto owner = holders_.placed.blocks.find(block.address);
    const bool idle = block.state == BlockState::inactive;
    if (idle || owner == holders_.placed.blocks.end()) return {block.size, -1, -1, nullptr};
    const Lifetime& lifetime = lifetimes_[owner->second];
    const auto category = static_cast<std::size_t>(holders_.uses[owner->second].category);
    return {block.size, places_[category], number_of(lifetime.stack), lifetime.born};
  }

  int number_of(std::uint32_t stack) {
    if (stack >= program_.stacks.size() || program_.stacks[stack].empty()) return -1;
    const auto [place, is_new] = numbers_.try_emplace(stack, static_cast<int>(numbers_.size()));
    if (is_new) stacks_.push_back(shown_frames(program_.frames, program_.stacks[stack]));
    return place->second;
  }

  const ClientProgram& program_;
  const Holders& holders_;
  std::vector<Lifetime> lifetimes_;
  std::array<int, kCategoryNames.size()> places_;
  std::map<std::uint32_t, int> numbers_;
  Json stacks_ = Json::array();
};

/// Bytes by stack, the outermost frame first.
struct FlamePart {
  Bytes bytes = 0;
  std::map<std::string, FlamePart> parts;
};

Json flame_json(const std::string& name, const FlamePart& part) {
  Json json{{"name", name}, {"bytes", part.bytes}};
  json["parts"] = Json::array();
  for (const auto& [child, below] : part.parts) json["parts"].push_back(flame_json(child, below));
  return json;
}

Json flame_of(const FoldedStacks& folded) {
  FlamePart root;
  for (const auto& [stack, bytes] : folded) {
    FlamePart* part = &root;
    part->bytes += bytes;
    for (std::size_t from = 0; from <= stack.size();) {
      const std::size_t end = std::min(stack.find(';', from), stack.size());
      part = &part->parts[stack.substr(from, end - from)];
      part->bytes += bytes;
      from = end + 1;
    }
  }
  return flame_json("all", root);
}

Json table_json(const Table& table) {
  Json json;
  for (const Table::Column& column : table.columns())
    json["columns"].push_back({{"name", column.name}, {"number", column.align == Table::Align::right}});
  json["rows"] = table.rows();
  return json;
}

}  // namespace

MemoryPicture timeline_picture(const ClientProgram& program, const Holders& holders, const WhatIfRow& row) {
  const CategoryTimeline& timeline = holders.timeline;
  MemoryPicture picture;
  picture.title = fmt::format("{}: memory by category with {}",
                              std::filesystem::path{program.file}.filename().string(), conf_name(row.conf));
  picture.axis_name = "actions of the program: allocations, frees, marks";
  picture.axis = timeline.actions;
  for (const CategoryShare& share : holders.categories) {
    const auto category = static_cast<std::size_t>(share.category);
    picture.bands.push_back({std::string{kCategoryNames[category]}, timeline.allocated[category]});
  }
  picture.reserved = timeline.reserved;
  picture.marks = stretches(timeline);
  for (const auto& [action, bytes] : timeline.failures) picture.failures.push_back(action);
  picture.limit = row.room();
  return picture;
}

Json settings_section(const MemoryPage& page) {
  Json json = begun_section("memory", page.title, page.head);
  json["settings"] = table_json(page.settings);
  json["settings"]["caption"] = page.caption;
  Json& rows = json["settings"]["rows"];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Json row{{"cells", std::move(rows[i])}};
    row["map"] = page.maps[i];
    rows[i] = std::move(row);
  }
  json["notes"] = page.notes;
  return json;
}

Json memory_section(const ClientProgram& program, const Holders& holders, const PeakMemory& peak,
                    const MemoryPage& page) {
  Json json = settings_section(page);
  add_holders(json, holders, false);
  json["timeline"] = holders.timeline.actions.empty() ? Json(nullptr) : page_timeline(holders);
  if (!holders.placed.segments.empty()) {
    MomentWriter moment{program, holders};
    json["moment"] = {{"text", pins_sentence(holders) + " Segments are drawn to scale, one behind the other; "
                                                        "grey is idle. Point at a block to see its owner."},
                      {"unit", "action"},
                      {"segments", moment.segments()}};
    json["stacks"] = moment.stacks();
  }
  if (!peak.folded.empty()) json["flame"] = flame_of(peak.folded);
  if (program.failures.size() > 1) json["failures"] = table_json(failures_table(program));
  return json;
}

}  // namespace vramlab
