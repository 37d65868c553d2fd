// Pictures of curves over a common axis, one panel below the other, and of bars by group.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace vramlab {

/// One line of a panel; `values[i]` belongs to `PanelPicture::axis[i]`, NaN = nothing there.
struct Curve {
  std::string name;
  std::vector<double> values;
};

struct Panel {
  std::string unit;  ///< label of its axis
  std::vector<Curve> curves;
};

struct PanelPicture {
  std::string title;
  std::string axis_name;
  std::vector<double> axis;
  std::vector<Panel> panels;
};

/// Draws `picture` into `file` (.svg or .png), without curves and panels that have no value. Throws
/// InputError as draw_with_gnuplot does.
void draw_panels(PanelPicture picture, const std::filesystem::path& file);

/// Bars of several quantities for each group.
struct BarPicture {
  std::string title;
  std::string unit;
  std::vector<std::string> groups;
  std::vector<Curve> bars;  ///< a value for each group
};

void draw_bars(BarPicture picture, const std::filesystem::path& file);

}  // namespace vramlab
