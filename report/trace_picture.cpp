#include <algorithm>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPoints = 1500;  // more than a picture has pixels
constexpr int kTraceWidth = 1200;
constexpr int kRowHeight = 250;
constexpr int kTraceHead = 60;

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
  for (const std::int64_t value : last.point) values += fmt::format(" {}", value);
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

std::string memory_panel(const PictureFrame& frame, const PictureRun& run, const std::string& data) {
  const Bytes total = run.iterations->empty() ? 0 : run.iterations->back().memory.total;
  std::string text = fmt::format(
      "set label 1 {} at graph 0, 1.07 left font ',12'\nset ylabel 'GiB'\nset yrange [0:{:.3f}]\n",
      gnuplot_text(run.label), std::max(gib(total) * 1.08, 0.001));
  text += "set ytics nomirror\nunset y2tics\nunset y2label\nunset object\n";
  if (frame.band_low && frame.band_high) {
    text += fmt::format(
        "set object 1 rectangle from graph 0, first {:.4f} to graph 1, first {:.4f} behind fillcolor rgb "
        "'#d3ebd3' fillstyle solid noborder\n",
        *frame.band_low * gib(total), *frame.band_high * gib(total));
  }
  return text + fmt::format(
                    "plot {0} using 1:3 with lines lc rgb '#8f9bab' title 'reserved', "
                    "{0} using 1:2 with lines lw 1.5 lc rgb '#1f5fa8' title 'peak allocated', "
                    "{0} using 1:4 with lines dt 2 lc rgb '#444b55' title 'limit', "
                    "{0} using 1:5 with points pt 2 ps 0.7 lc rgb '#c62828' title 'OOM'\n",
                    data);
}

std::string parameter_panel(const PictureFrame& frame, const std::string& data) {
  constexpr const char* kParameterColours[] = {"#b35900", "#5b3a9e", "#00796b", "#8d2f5f"};
  std::string text =
      "unset object\nunset label\nset offsets 0, 0, graph 0.06, 0\nset yrange [0:*]\nset ytics nomirror\n";
  text +=
      fmt::format("set ylabel {}\n", gnuplot_text(frame.parameters.empty() ? "" : frame.parameters.front()));
  if (frame.parameters.size() > 1) {
    text += fmt::format("set y2label {}\nset y2tics textcolor rgb '#333333'\nset y2range [0:*]\n",
                        gnuplot_text(frame.parameters[1]));
  }
  std::string plots;
  for (std::size_t p = 0; p < frame.parameters.size(); ++p) {
    plots += fmt::format("{}{} using 1:{} axes x1y{} with steps lw 1.5 lc rgb '{}' title {}", p ? ", " : "",
                         data, p + 6, p == 0 ? 1 : 2, kParameterColours[p % std::size(kParameterColours)],
                         gnuplot_text(frame.parameters[p]));
  }
  return plots.empty() ? "set multiplot next\n" : text + "plot " + plots + "\n";
}

std::string script(const PictureFrame& frame, const std::vector<PictureRun>& runs, int height) {
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += data_block(fmt::format("$run{}", i), *runs[i].iterations);
  text += "set grid ytics lc rgb '#e4e4e4'\nset tics textcolor rgb '#333333'\nset xtics nomirror\n";
  text += "set key at graph 1, 1.03 bottom right horizontal maxrows 1 samplen 1 width -2 font ',9'\n";
  const double pixel = 1.0 / height;  // margins are shares of the picture
  text += fmt::format(
      "set multiplot layout {},2 margins 0.06,0.94,{:.4f},{:.4f} spacing 0.12,{:.4f} title {} font ',13'\n",
      runs.size(), 45 * pixel, 1 - 90 * pixel, 75 * pixel, gnuplot_text(frame.title));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string data = fmt::format("$run{}", i);
    text += i + 1 == runs.size() ? "set xlabel 'iteration' offset 0,0.4\n" : "unset xlabel\n";
    text += memory_panel(frame, runs[i], data) + parameter_panel(frame, data);
  }
  return text + "unset multiplot\n";
}

}  // namespace

void draw_trace_picture(const PictureFrame& frame, const std::vector<PictureRun>& runs,
                        const fs::path& file) {
  const int height = kTraceHead + kRowHeight * static_cast<int>(runs.size());
  draw_with_gnuplot(kTraceWidth, height, script(frame, runs, height), file);
}

}  // namespace vramlab
