#include <algorithm>

#include <fmt/format.h>

#include "report/pictures.hpp"

namespace vramlab {
namespace {

constexpr int kMemoryWidth = 1200;
constexpr int kMemoryPictureHeight = 540;
constexpr double kLeftEdge = 0.06;  // of the plot, as shares of the picture
constexpr double kRightEdge = 0.975;
constexpr double kUpperEdge = 0.855;
constexpr double kPlotWidth = (kRightEdge - kLeftEdge) * kMemoryWidth;
constexpr double kLetterWidth = 6.6;      // pixels of one in the names of marks
constexpr double kLegendLetter = 7.4;     // and in the legend
constexpr double kLeastApart = 5;         // pixels between the lines of two marks
constexpr std::size_t kLongestName = 24;  // letters of a mark
constexpr double kRoom = 0.6;             // of the width of its name that a stretch needs to be named
constexpr std::size_t kMostMoments = 700;
constexpr double kFarLimit = 1.5;  // a limit further above all reserved memory would flatten the picture
// Those of the page, in the order of the bands (report/html/src/style.css, --category-0 and on), a little
// lighter since they fill areas.
constexpr const char* kBandColours[] = {"#4379b7", "#7659ae", "#338f85", "#c47233", "#a5597f",
                                        "#8aa433", "#57a3cc", "#b95d6f", "#929292", "#7d6158"};

/// Of so many moments of the picture one is drawn: that at which most was allocated.
struct Moment {
  std::size_t place = 0;
  Bytes reserved = 0;  ///< the most of them all
};

std::vector<Moment> drawn_moments(const MemoryPicture& picture) {
  const std::size_t stride = picture.axis.size() / kMostMoments + 1;
  std::vector<Moment> moments;
  for (std::size_t from = 0; from < picture.axis.size(); from += stride) {
    Moment moment{.place = from, .reserved = picture.reserved[from]};
    Bytes most = 0;
    for (std::size_t i = from; i < std::min(from + stride, picture.axis.size()); ++i) {
      Bytes sum = 0;
      for (const MemoryPicture::Band& band : picture.bands) sum += band.bytes[i];
      if (sum > most) moment.place = i;
      most = std::max(most, sum);
      moment.reserved = std::max(moment.reserved, picture.reserved[i]);
    }
    moments.push_back(moment);
  }
  return moments;
}

/// Where a line steps to another height; each holds until the next.
class StepLine {
 public:
  explicit StepLine(const std::string& name) : text_(name + " << EOD\n") {}

  void add(std::size_t action, Bytes bytes) {
    last_ = action;
    if (bytes == height_ && !first_) return;
    if (!first_) text_ += fmt::format("{} {:.5g}\n", action, gib(height_));
    text_ += fmt::format("{} {:.5g}\n", action, gib(bytes));
    height_ = bytes;
    first_ = false;
  }
  [[nodiscard]] std::string finished() const {
    return text_ + fmt::format("{} {:.5g}\nEOD\n", last_, gib(height_));
  }

 private:
  std::string text_;
  Bytes height_ = 0;
  std::size_t last_ = 0;
  bool first_ = true;
};

// The upper edge of every band, then reserved memory.
std::string memory_data(const MemoryPicture& picture) {
  std::vector<StepLine> edges;
  for (std::size_t band = 0; band < picture.bands.size(); ++band)
    edges.emplace_back(fmt::format("$band{}", band));
  StepLine reserved("$reserved");
  for (const Moment& moment : drawn_moments(picture)) {
    Bytes sum = 0;
    for (std::size_t band = 0; band < edges.size(); ++band) {
      sum += picture.bands[band].bytes[moment.place];
      edges[band].add(picture.axis[moment.place], sum);
    }
    reserved.add(picture.axis[moment.place], moment.reserved);
  }
  std::string text = reserved.finished();
  for (const StepLine& edge : edges) text += edge.finished();
  return text;
}

/// A stretch and its name, in pixels from the left edge of the plot.
struct NamedStretch {
  std::size_t action = 0;
  std::string name;
  double begin = 0;
  double end = 0;
  double width = 0;  ///< of the name

  [[nodiscard]] bool is_roomy() const { return end - begin >= kRoom * width; }
};

std::vector<NamedStretch> named_stretches(const MemoryPicture& picture, std::size_t last) {
  std::vector<NamedStretch> stretches;
  for (const auto& [action, name] : picture.marks) {
    if (action > last) break;
    const double at = kPlotWidth * static_cast<double>(action) / static_cast<double>(last);
    if (!stretches.empty()) stretches.back().end = at;
    const std::string shown = name.substr(0, kLongestName);
    stretches.push_back(
        {action, shown, at, kPlotWidth, kLetterWidth * static_cast<double>(shown.size() + 1)});
  }
  return stretches;
}

// A line for each mark, as far as they lie apart, and its name where it does not stand in the next stretch
// for the most part. Where all are too short for theirs, as many as there is room for.
std::string mark_lines(const MemoryPicture& picture, std::size_t last) {
  const std::vector<NamedStretch> stretches = named_stretches(picture, last);
  const bool any_room = std::ranges::any_of(stretches, &NamedStretch::is_roomy);
  std::string text;
  double line = -kLeastApart;
  double free = 0;  // the names end here
  for (const NamedStretch& stretch : stretches) {
    if (stretch.begin - line < kLeastApart) continue;
    line = stretch.begin;
    text += fmt::format("set arrow from {0}, graph 0 to {0}, graph 1 nohead front lc rgb '#b9c1cb' lw 0.7\n",
                        stretch.action);
    const double end = stretch.begin + stretch.width;
    if (stretch.begin < free || end > kPlotWidth || (any_room && !stretch.is_roomy())) continue;
    text += fmt::format(
        "set label {} at {}, graph 0.97 left offset 0.4,0 front textcolor rgb '#5a6675' font ',9'\n",
        gnuplot_text(stretch.name), stretch.action);
    free = end;
  }
  return text;
}

/// Writes what the colours and lines mean, one behind the other above the plot.
class MemoryLegend {
 public:
  void add_box(const char* colour, const std::string& name) {
    text_ += fmt::format(
        "set object rectangle from screen {:.5f}, screen {} to screen {:.5f}, screen {} fillcolor rgb '{}' "
        "fillstyle solid noborder\n",
        x_, kRow - 0.012, x_ + kSample, kRow + 0.012, colour);
    add_name(name);
  }
  void add_line(const char* look, const std::string& name) {
    text_ += fmt::format("set arrow from screen {:.5f}, screen {} to screen {:.5f}, screen {} nohead {}\n",
                         x_, kRow, x_ + kSample, kRow, look);
    add_name(name);
  }
  void add_cross(const std::string& name) {
    text_ += fmt::format("set label '' at screen {:.5f}, screen {} point pt 2 ps 1 lw 2 lc rgb '#c62828'\n",
                         x_ + kSample / 2, kRow);
    add_name(name);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  static constexpr double kRow = 0.895;
  static constexpr double kSample = 0.013;

  void add_name(const std::string& name) {
    text_ += fmt::format("set label {} at screen {:.5f}, screen {} left font ',10'\n", gnuplot_text(name),
                         x_ + kSample + 0.004, kRow);
    x_ += kSample + 0.016 + kLegendLetter * static_cast<double>(name.size()) / kMemoryWidth;
  }

  std::string text_;
  double x_ = kLeftEdge;
};

}  // namespace

void draw_memory_picture(const MemoryPicture& picture, const std::filesystem::path& file) {
  const double most = std::max(1e-3, picture.reserved.empty() ? 0 : gib(std::ranges::max(picture.reserved)));
  const bool limited = picture.limit && gib(*picture.limit) <= kFarLimit * most;
  const double height = 1.12 * (limited ? std::max(most, gib(*picture.limit)) : most);
  const std::size_t last = picture.axis.empty() ? 1 : std::max<std::size_t>(1, picture.axis.back());
  std::string text = memory_data(picture) + mark_lines(picture, last);
  MemoryLegend legend;
  std::string plot;
  for (std::size_t i = 0; i < picture.bands.size(); ++i) {  // the highest edge lies behind the others
    const char* colour = kBandColours[i % std::size(kBandColours)];
    legend.add_box(colour, picture.bands[i].name);
    plot = fmt::format("$band{} with filledcurves y1=0 lc rgb '{}', ", i, colour) + plot;
  }
  legend.add_line("lw 1.6 lc rgb '#1b2430'", "reserved");
  plot += "$reserved with lines lw 1.6 lc rgb '#1b2430'";
  if (limited) {
    legend.add_line("dt 2 lw 1.3 lc rgb '#c62828'", "limit");
    plot += fmt::format(", {:.6g} with lines dt 2 lw 1.3 lc rgb '#c62828'", gib(*picture.limit));
  }
  if (!picture.failures.empty()) {
    legend.add_cross("request that failed");
    text += "$failures << EOD\n";
    for (const std::size_t action : picture.failures)
      text += fmt::format("{} {:.6g}\n", action, 0.93 * height);
    text += "EOD\n";
    plot += ", $failures with points pt 2 ps 1 lw 2 lc rgb '#c62828'";
  }
  text += fmt::format(
      "set label {} at screen {}, screen 0.955 left font ',13'\nset xlabel {}\nset ylabel 'GiB'\n"
      "set xrange [0:{}]\nset yrange [0:{:.6g}]\nset format x \"%.0f\"\nunset key\n"
      "set tics textcolor rgb '#333333' nomirror out\nset grid ytics lc rgb '#e4e4e4'\n"
      "set lmargin at screen {}\nset rmargin at screen {}\nset tmargin at screen {}\n"
      "set style fill solid noborder\n",
      gnuplot_text(picture.title), kLeftEdge, gnuplot_text(picture.axis_name), last, height, kLeftEdge,
      kRightEdge, kUpperEdge);
  draw_with_gnuplot(kMemoryWidth, kMemoryPictureHeight, text + legend.text() + "plot " + plot + "\n", file);
}

}  // namespace vramlab
