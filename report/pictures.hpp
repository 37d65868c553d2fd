// Static pictures: curves and bars, runs over iterations, memory by use, jobs on cards, heat maps; all but
// the last drawn by gnuplot.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run_record.hpp"
#include "core/units.hpp"

namespace vramlab {

/// Throws InputError unless `file` ends in .svg or .png.
void require_picture_name(const std::filesystem::path& file);

/// Throws InputError, naming `picture`, unless gnuplot is on the PATH.
void require_gnuplot(const std::filesystem::path& picture);

/// `text` as gnuplot reads it back unchanged; line breaks become spaces.
std::string gnuplot_text(const std::string& text);

/// `bytes` in GiB, as axes show them.
inline double gib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(1_GiB); }

/// Draws `file` (.svg or .png) with gnuplot's `commands`, `width` by `height` pixels large. Throws InputError
/// if the ending is another one, gnuplot is missing or fails, or `file` cannot be written.
void draw_with_gnuplot(int width, int height, const std::string& commands, const std::filesystem::path& file);

// Pictures of curves over a common axis, one panel below the other, and of bars by group.

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

/// Draws `picture` into `file`, without curves and panels that have no value. Throws InputError as
/// draw_with_gnuplot does.
void draw_panels(PanelPicture picture, const std::filesystem::path& file);

/// Bars of several quantities for each group.
struct BarPicture {
  std::string title;
  std::string unit;
  std::vector<std::string> groups;
  std::vector<Curve> bars;  ///< a value for each group
};

void draw_bars(BarPicture picture, const std::filesystem::path& file);

// A static picture of runs: memory against limit and target band, and the parameters, over iterations.

/// One run as the picture shows it.
struct PictureRun {
  std::string label;
  const std::vector<IterationRecord>* iterations = nullptr;
  bool is_reference = false;  ///< what the others are measured by: drawn dotted
};

/// What surrounds the runs.
struct PictureFrame {
  std::string title;
  std::vector<std::string> parameters;  ///< names, in the order of every point
  std::optional<double> band_low;       ///< target band, as shares of the total
  std::optional<double> band_high;
};

/// Draws `runs`, at least one, into `file`: the memory of all in one panel, each parameter in one below,
/// every run named where its lines end. Throws InputError as draw_with_gnuplot does.
void draw_trace_picture(const PictureFrame& frame, const std::vector<PictureRun>& runs,
                        const std::filesystem::path& file);

// A static picture of what memory was for, over the history of a program.

/// Bytes of one place of each list are those after the action of the same place in `axis`, which ascends.
struct MemoryPicture {
  struct Band {
    std::string name;
    std::vector<Bytes> bytes;
  };
  std::string title;
  std::string axis_name;
  std::vector<std::size_t> axis;
  std::vector<Band> bands;  ///< drawn one on the other, the first at the bottom
  std::vector<Bytes> reserved;
  std::vector<std::pair<std::size_t, std::string>> marks;  ///< where a stretch begins, and its name
  std::vector<std::size_t> failures;                       ///< actions at which a request failed
  std::optional<Bytes> limit;  ///< shown where it is not far above what was reserved
};

/// Draws `picture` into `file`. Throws InputError as draw_with_gnuplot does.
void draw_memory_picture(const MemoryPicture& picture, const std::filesystem::path& file);

// A static picture of jobs on shared cards: who held how much memory of which card, and when.

/// One stay of a job on one card, drawn as a box as high as its memory.
struct QueueBar {
  SimTime from{0};
  SimTime to{0};
  Bytes memory = 0;
  std::size_t job = 0;         ///< decides its colour
  bool ran_out = false;        ///< ended in an OOM: outlined in red
  std::optional<Bytes> low{};  ///< its lower edge; empty = the lowest place that is free as long as it lasts
};

/// A figure that holds from `time` on.
struct QueueLevel {
  SimTime time{0};
  Bytes promised = 0;
  Bytes used = 0;  ///< strangers included
};

/// A parameter of a job over time.
struct QueueCurve {
  std::string name;  ///< the job and the parameter
  std::string parameter;
  std::size_t job = 0;     ///< decides its colour
  std::size_t number = 0;  ///< of the parameter: 0 is drawn solid, on the left axis, others on the right one
  std::vector<std::pair<SimTime, double>> values;  ///< each holds until the next; NaN = it does not run
};

struct QueuePanel {
  std::string title;
  Bytes total = 0;
  std::vector<QueueBar> bars;  ///< in the order in which they begin
  std::vector<QueueLevel> levels;
  std::vector<SimTime> failures{};   ///< marked at the card's limit
  std::vector<QueueCurve> curves{};  ///< drawn in a panel of their own, below
};

/// Where each bar's lower edge lies: where it says, else at the lowest place that is free as long as the bar
/// lasts, as if memory were given out in one piece.
std::vector<Bytes> stack_bars(const std::vector<QueueBar>& bars);

/// Draws `panels` one below the other over one time axis, into `file`. Dashed: what was promised; solid: what
/// was used; both may exceed boxes that show each job's highest use. Throws InputError as draw_with_gnuplot
/// does.
void draw_queue_picture(const std::string& title, const std::vector<QueuePanel>& panels,
                        const std::filesystem::path& file);

// A static picture of a matrix of figures: the warmer a cell, the larger its value.

/// One cell.
struct HeatCell {
  double heat = 0;         ///< 0 = cold (white-green) to 1 = hot; beyond both ends it is cut
  std::string text;        ///< what it says
  bool is_marked = false;  ///< a frame around it
};

struct HeatMap {
  std::string title;
  std::string legend;  ///< a line below
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<HeatCell>> cells;  ///< by row
};

/// The map as SVG. Throws InternalError if the cells do not fill rows and columns.
std::string heat_map_svg(const HeatMap& map);

/// Writes it. Throws InputError unless `file` ends in .svg, or if it cannot be written.
void draw_heat_map(const HeatMap& map, const std::filesystem::path& file);

}  // namespace vramlab
