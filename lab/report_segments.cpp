#include <fmt/format.h>

#include "lab/report_sections.hpp"

namespace vramlab {

Json segments_section(const SegmentMap& map, const std::string& title, const SectionHead& head) {
  Json json;
  json["kind"] = "segments";
  json["title"] = title;
  json["verdict"] = head.verdict;
  json["head"] = head.head;
  json["unit"] = "entry";
  json["units"] = "entries";
  json["entries"] = map.entries;
  json["stride"] = map.stride;
  json["rows"] = map.rows;
  json["row_bytes"] = map.row_bytes;
  json["ranges"] = Json::array();
  // Addresses are text: a number of JavaScript has 53 bits.
  for (const SegmentMap::Range& range : map.ranges)
    json["ranges"].push_back({range.row, fmt::format("{}", range.address)});
  json["cells"] = Json::array();
  for (const SegmentCell& cell : map.cells)
    json["cells"].push_back({cell.from, cell.to, cell.first, cell.last, cell.state});
  json["live"] = curve_json(map.live);
  json["reserved"] = curve_json(map.reserved);
  json["marks"] = Json::array();
  for (const SegmentMap::Mark& mark : map.marks) json["marks"].push_back({mark.entry, mark.text});
  return json;
}

}  // namespace vramlab
