#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPoints = 1500;  // more than a picture has pixels
constexpr int kTraceWidth = 1200;
constexpr int kTraceHead = 60;
constexpr int kMemoryHeight = 380;
constexpr int kParameterHeight = 190;
constexpr int kTraceGap = 30;    // pixels between two panels
constexpr int kTraceFoot = 50;   // pixels below the last
constexpr int kLineOfText = 15;  // pixels that a name takes
constexpr const char* kRunColours[] = {"#b35900", "#8d2f5f", "#5b3a9e", "#00796b", "#1f5fa8",
                                       "#777777", "#6d8b00", "#a8324a", "#2b8cbe", "#5d4037"};

/// What the picture shows of one bucket of iterations: its last iteration and its highest figures.
struct Bucket {
  std::int64_t iteration = 0;
  std::string values;
};

Bucket bucket_of(const std::vector<IterationRecord>& records, std::size_t first, std::size_t end) {
  Bytes peak = 0;
  Bytes reserved = 0;
  bool oom = false;
  for (std::size_t i = first; i < end; ++i) {
    peak = std::max(peak, records[i].step_peak_allocated);
    reserved = std::max(reserved, records[i].step_peak_reserved);
    oom = oom || records[i].result == StepResult::oom;
  }
  const IterationRecord& last = records[end - 1];
  const std::string limit = fmt::format("{:.4f}", gib(last.memory.total));
  std::string values =
      fmt::format("{:.4f} {:.4f} {} {}", gib(peak), gib(reserved), limit, oom ? limit : "NaN");
  for (const std::int64_t value : last.point()) values += fmt::format(" {}", value);
  return {last.iteration, std::move(values)};
}

// A bucket between two equal ones adds nothing to a line and is left out.
std::string data_block(const std::string& name, const std::vector<IterationRecord>& records) {
  const std::size_t stride = records.size() / kMostPoints + 1;
  std::vector<Bucket> buckets;
  for (std::size_t first = 0; first < records.size(); first += stride) {
    buckets.push_back(bucket_of(records, first, std::min(first + stride, records.size())));
  }
  std::string text = name + " << EOD\n";
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const bool inner = i > 0 && i + 1 < buckets.size() && buckets[i - 1].values == buckets[i].values &&
                       buckets[i + 1].values == buckets[i].values;
    if (!inner) text += fmt::format("{} {}\n", buckets[i].iteration, buckets[i].values);
  }
  return text + "EOD\n";
}

/// One panel: its place in the picture, what its axis shows, and where each run's line ends on it.
struct TracePanel {
  int top = 0;  ///< pixels from the picture's upper edge
  int height = 0;
  std::string unit;
  double highest = 0;        ///< of its axis, which begins at 0
  std::vector<double> ends;  ///< by run
};

/// The pixels, from a panel's lower edge, at which `ends` are named: at their lines, or as near as names that
/// do not cover each other can be (isotonic regression: names that would overlap lie around their lines'
/// mean).
std::vector<double> name_heights(const TracePanel& panel) {
  std::vector<std::size_t> order(panel.ends.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return panel.ends[a] > panel.ends[b]; });
  std::reverse(order.begin(), order.end());  // of equal ends the first run is named on top
  struct Group {
    double sum = 0;  // of the heights that its lowest name would have by each of its lines
    double names = 0;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double line = panel.ends[order[i]] / panel.highest * panel.height;
    groups.push_back({line - kLineOfText * static_cast<double>(i), 1});
    while (groups.size() > 1) {
      const Group last = groups.back();
      Group& before = groups[groups.size() - 2];
      if (before.sum * last.names <= last.sum * before.names) break;
      before = {before.sum + last.sum, before.names + last.names};
      groups.pop_back();
    }
  }
  const double most = panel.height - kLineOfText * static_cast<double>(order.size() - 1);
  std::vector<double> heights;
  for (const Group& group : groups)
    for (double n = 0; n < group.names; ++n)
      heights.push_back(std::clamp(group.sum / group.names, 0.0, most) +
                        kLineOfText * static_cast<double>(heights.size()));
  std::vector<double> by_run(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) by_run[order[i]] = heights[i];
  return by_run;
}

/// Writes gnuplot's commands for the panels of one picture.
class TraceScript {
 public:
  TraceScript(const PictureFrame& frame, const std::vector<PictureRun>& runs) : frame_(frame), runs_(runs) {
    const int names = kLineOfText * static_cast<int>(runs.size());
    add_panel("peak allocated, GiB", std::max(kMemoryHeight, names), highest_memory() * 1.05,
              [](const IterationRecord& record) { return gib(record.step_peak_allocated); });
    for (std::size_t p = 0; p < frame.parameters.size(); ++p) {
      const auto value = [p](const IterationRecord& record) {
        return static_cast<double>(record.point()[p]);
      };
      add_panel(frame.parameters[p], std::max(kParameterHeight, names), highest(value) * 1.08, value);
    }
  }

  [[nodiscard]] int height() const { return bottom_ - kTraceGap + kTraceFoot; }

  [[nodiscard]] std::string text() const {
    std::string text;
    for (std::size_t i = 0; i < runs_.size(); ++i)
      text += data_block(fmt::format("$run{}", i), *runs_[i].iterations);
    text += "set grid ytics lc rgb '#e4e4e4'\nset tics textcolor rgb '#333333' nomirror\n";
    text += fmt::format("set multiplot title {} font ',13'\nset format x ''\n", gnuplot_text(frame_.title));
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      if (i + 1 == panels_.size()) text += "set format x '%g'\nset xlabel 'iteration' offset 0,0.4\n";
      text += frame_of(panels_[i]) + (i == 0 ? memory_plot() : parameter_plot(i - 1));
    }
    return text + "unset multiplot\n";
  }

 private:
  template <typename Value>
  [[nodiscard]] double highest(Value value) const {
    double most = 1e-3;
    for (const PictureRun& run : runs_)
      for (const IterationRecord& record : *run.iterations) most = std::max(most, value(record));
    return most;
  }

  [[nodiscard]] double highest_memory() const {
    return highest([](const IterationRecord& record) {
      return gib(std::max(record.memory.total, record.step_peak_allocated));
    });
  }

  template <typename Value>
  void add_panel(std::string unit, int height, double most, Value value) {
    TracePanel panel{.top = bottom_, .height = height, .unit = std::move(unit), .highest = most};
    for (const PictureRun& run : runs_)
      panel.ends.push_back(run.iterations->empty() ? 0 : value(run.iterations->back()));
    bottom_ += height + kTraceGap;
    panels_.push_back(std::move(panel));
  }

  // Axes, and the names of the runs beside the ends of their lines.
  [[nodiscard]] std::string frame_of(const TracePanel& panel) const {
    const double whole = height();
    std::string text = fmt::format(
        "set lmargin at screen 0.06\nset rmargin at screen 0.87\nset tmargin at screen {:.5f}\n"
        "set bmargin at screen {:.5f}\nset ylabel {}\nset yrange [0:{:.4f}]\nunset label\nunset object\n",
        1 - panel.top / whole, 1 - (panel.top + panel.height) / whole, gnuplot_text(panel.unit),
        panel.highest);
    const std::vector<double> heights = name_heights(panel);
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      text += fmt::format("set label {} {} at graph 1.008, graph {:.4f} left textcolor rgb '{}' font ',10'\n",
                          i + 1, gnuplot_text(runs_[i].label), heights[i] / panel.height, colour(i));
    }
    return text;
  }

  // Reserved memory is drawn where one run is alone; of several it would cover the peaks.
  [[nodiscard]] std::string memory_plot() const {
    std::string text = "set key at graph 1, 1.01 bottom right horizontal maxrows 1 samplen 1.5 font ',9'\n";
    if (frame_.band_low && frame_.band_high) {
      const double total = gib(total_of(runs_.front()));
      text += fmt::format(
          "set object 1 rectangle from graph 0, first {:.4f} to graph 1, first {:.4f} behind fillcolor rgb "
          "'#d3ebd3' fillstyle solid noborder\n",
          *frame_.band_low * total, *frame_.band_high * total);
    }
    text += "plot ";
    if (frame_.band_low) text += "NaN with boxes fs solid noborder lc rgb '#d3ebd3' title 'target', ";
    if (runs_.size() == 1) text += "$run0 using 1:3 with lines lc rgb '#8f9bab' title 'reserved', ";
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      text += fmt::format(
          "$run{0} using 1:2 with lines {1} notitle, "
          "$run{0} using 1:5 with points pt 2 ps 1.1 lw 2 lc rgb '{2}' notitle, ",
          i, line(i), colour(i));
    }
    text += "$run0 using 1:4 with lines dt 2 lc rgb '#444b55' title 'limit', ";
    text += "NaN with points pt 2 ps 1.1 lw 2 lc rgb '#444b55' title 'OOM'";
    return text + "\n";
  }

  [[nodiscard]] std::string parameter_plot(std::size_t parameter) const {
    std::string text = "unset key\nplot ";
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      text += fmt::format("{}$run{} using 1:{} with steps {}", i ? ", " : "", i, parameter + 6, line(i));
    }
    return text + "\n";
  }

  static Bytes total_of(const PictureRun& run) {
    return run.iterations->empty() ? 0 : run.iterations->back().memory.total;
  }

  [[nodiscard]] const char* colour(std::size_t run) const {
    return runs_[run].is_reference ? "#222222" : kRunColours[run % std::size(kRunColours)];
  }

  [[nodiscard]] std::string line(std::size_t run) const {
    return fmt::format("lw 1.8 {}lc rgb '{}'", runs_[run].is_reference ? "dt 3 " : "", colour(run));
  }

  const PictureFrame& frame_;
  const std::vector<PictureRun>& runs_;
  std::vector<TracePanel> panels_;  ///< memory, then each parameter
  int bottom_ = kTraceHead;         ///< where the next panel begins
};

}  // namespace

void draw_trace_picture(const PictureFrame& frame, const std::vector<PictureRun>& runs,
                        const fs::path& file) {
  const TraceScript script{frame, runs};
  draw_with_gnuplot(kTraceWidth, script.height(), script.text(), file);
}

}  // namespace vramlab
