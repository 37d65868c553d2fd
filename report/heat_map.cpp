#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "report/html_page.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

constexpr int kLeft = 190;  // room for the names of rows
constexpr int kTop = 64;
constexpr int kCellWidth = 104;
constexpr int kCellHeight = 24;
constexpr int kBottom = 34;

// From pale green over yellow to red: dark text can be read on all of them.
std::string colour(double heat) {
  constexpr std::array<std::array<double, 3>, 3> kStops{{{217, 240, 211}, {254, 224, 139}, {244, 109, 67}}};
  const double place = 2 * std::clamp(heat, 0.0, 1.0);
  const auto low = static_cast<std::size_t>(std::min(1.0, place));
  const double part = place - static_cast<double>(low);
  std::array<int, 3> mixed{};
  for (std::size_t i = 0; i < 3; ++i) {
    mixed[i] = static_cast<int>(kStops[low][i] + part * (kStops[low + 1][i] - kStops[low][i]) + 0.5);
  }
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

std::string text_at(int x, int y, const char* anchor, const std::string& text, const char* style = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, style,
                     xml_text(text));
}

std::string cell_svg(const HeatCell& cell, int x, int y) {
  const char* frame = cell.is_marked ? " stroke=\"#333333\" stroke-width=\"1.6\"" : "";
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}/>\n", x + 1, y + 1,
                     kCellWidth - 2, kCellHeight - 2, colour(cell.heat), frame) +
         text_at(x + kCellWidth / 2, y + kCellHeight - 8, "middle", cell.text);
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  const int width = kLeft + kCellWidth * static_cast<int>(map.columns.size()) + 16;
  const int height = kTop + kCellHeight * static_cast<int>(map.rows.size()) + kBottom;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"DejaVu Sans, sans-serif\" font-size=\"11\" fill=\"#222222\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      width, height);
  svg += text_at(12, 24, "start", map.title, " font-size=\"14\"");
  for (std::size_t column = 0; column < map.columns.size(); ++column) {
    svg += text_at(kLeft + kCellWidth * static_cast<int>(column) + kCellWidth / 2, kTop - 8, "middle",
                   map.columns[column]);
  }
  if (map.cells.size() != map.rows.size()) throw InternalError("a heat map's cells do not fill its rows");
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    if (map.cells[row].size() != map.columns.size()) {
      throw InternalError("a heat map's cells do not fill its columns");
    }
    const int y = kTop + kCellHeight * static_cast<int>(row);
    svg += text_at(kLeft - 8, y + kCellHeight - 8, "end", map.rows[row]);
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      svg += cell_svg(map.cells[row][column], kLeft + kCellWidth * static_cast<int>(column), y);
    }
  }
  return svg + text_at(12, height - 12, "start", map.legend) + "</svg>\n";
}

void draw_heat_map(const HeatMap& map, const std::filesystem::path& file) {
  if (file.extension() != ".svg") {
    throw InputError(file.string(), "a heat map's name must end in .svg.");
  }
  write_file(file, heat_map_svg(map));
}

}  // namespace vramlab
