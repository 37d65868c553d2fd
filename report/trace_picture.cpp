#include "report/trace_picture.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "report/output_file.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPoints = 1500;  // more than a picture has pixels
constexpr int kWidth = 1200;
constexpr int kRowHeight = 250;
constexpr int kHeadHeight = 60;

double gib(Bytes bytes) { return static_cast<double>(bytes) / static_cast<double>(1_GiB); }

// gnuplot reads single-quoted text as it stands, a quote written twice.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string{c};
  return out + "'";
}

// One line a bucket of iterations, with the bucket's highest figures, so that no peak is lost.
std::string data_block(const std::string& name, const std::vector<IterationRecord>& records) {
  std::string text = name + " << EOD\n";
  const std::size_t stride = records.size() / kMostPoints + 1;
  for (std::size_t first = 0; first < records.size(); first += stride) {
    const std::size_t end = std::min(first + stride, records.size());
    Bytes peak = 0;
    Bytes reserved = 0;
    bool oom = false;
    for (std::size_t i = first; i < end; ++i) {
      peak = std::max(peak, records[i].step_peak_allocated);
      reserved = std::max(reserved, records[i].step_peak_reserved);
      oom = oom || records[i].result == StepResult::oom;
    }
    const IterationRecord& last = records[end - 1];
    text += fmt::format("{} {:.4f} {:.4f} {:.4f} {}", last.iteration, gib(peak), gib(reserved),
                        gib(last.memory.total), oom ? fmt::format("{:.4f}", gib(last.memory.total)) : "NaN");
    for (const std::int64_t value : last.point) text += fmt::format(" {}", value);
    text += '\n';
  }
  return text + "EOD\n";
}

std::string memory_panel(const PictureFrame& frame, const PictureRun& run, const std::string& data) {
  const Bytes total = run.iterations->empty() ? 0 : run.iterations->back().memory.total;
  std::string text = fmt::format("set title {} left offset 0,-0.5\nset ylabel 'GiB'\nset yrange [0:{:.3f}]\n",
                                 quoted(run.label), std::max(gib(total) * 1.08, 0.001));
  text += "set ytics nomirror\nunset y2tics\nunset y2label\nunset object\n";
  if (frame.band_low && frame.band_high) {
    text += fmt::format(
        "set object 1 rectangle from graph 0, first {:.4f} to graph 1, first {:.4f} behind fillcolor rgb "
        "'#cfe8cf' fillstyle solid noborder\n",
        *frame.band_low * gib(total), *frame.band_high * gib(total));
  }
  return text + fmt::format(
                    "plot {0} using 1:3 with lines lc rgb '#9aa7b5' title 'reserved', "
                    "{0} using 1:2 with lines lw 1.5 lc rgb '#1f5fa8' title 'peak allocated', "
                    "{0} using 1:4 with lines dt 2 lc rgb '#444444' title 'limit', "
                    "{0} using 1:5 with points pt 2 ps 0.7 lc rgb '#c62828' title 'OOM'\n",
                    data);
}

std::string parameter_panel(const PictureFrame& frame, const std::string& data) {
  constexpr const char* kColours[] = {"#b35900", "#5b3a9e", "#00796b", "#8d2f5f"};
  std::string text = "unset object\nset title ' '\nset yrange [0:*]\nset ytics nomirror\n";
  text += fmt::format("set ylabel {}\n", quoted(frame.parameters.empty() ? "" : frame.parameters.front()));
  if (frame.parameters.size() > 1) {
    text += fmt::format("set y2label {}\nset y2tics\nset y2range [0:*]\n", quoted(frame.parameters[1]));
  }
  std::string plots;
  for (std::size_t p = 0; p < frame.parameters.size(); ++p) {
    plots +=
        fmt::format("{}{} using 1:{} axes x1y{} with steps lw 1.5 lc rgb '{}' title {}", p ? ", " : "", data,
                    p + 6, p == 0 ? 1 : 2, kColours[p % std::size(kColours)], quoted(frame.parameters[p]));
  }
  return plots.empty() ? "set multiplot next\n" : text + "plot " + plots + "\n";
}

std::string script(const PictureFrame& frame, const std::vector<PictureRun>& runs, const fs::path& output,
                   bool png) {
  const int height = kHeadHeight + kRowHeight * static_cast<int>(runs.size());
  std::string text =
      png ? fmt::format("set terminal pngcairo size {},{} font 'DejaVu Sans,10'\n", kWidth, height)
          : fmt::format("set terminal svg size {},{} font 'DejaVu Sans,11' background '#ffffff'\n", kWidth,
                        height);
  text += fmt::format("set output {}\n", quoted(output.string()));
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += data_block(fmt::format("$run{}", i), *runs[i].iterations);
  text += "set encoding utf8\nset tmargin 2\nset bmargin 2.5\nset lmargin 9\nset rmargin 8\n";
  text +=
      "set grid ytics lc rgb '#e4e4e4'\nset border 3 lc rgb '#888888'\nset tics textcolor rgb '#333333'\n";
  text += "set key at graph 1, 1.02 bottom right horizontal samplen 2\nset xtics nomirror\n";
  text += "set termoption noenhanced\n";
  text += fmt::format("set multiplot layout {},2 title {} font ',14'\n", runs.size(), quoted(frame.title));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string data = fmt::format("$run{}", i);
    text += i + 1 == runs.size() ? "set xlabel 'iteration' offset 0,0.7\n" : "unset xlabel\n";
    text += memory_panel(frame, runs[i], data) + parameter_panel(frame, data);
  }
  return text + "unset multiplot\nunset output\n";
}

void run_gnuplot(const std::string& commands, const fs::path& file) {
  FILE* pipe = ::popen("gnuplot", "w");
  const bool written =
      pipe != nullptr && std::fwrite(commands.data(), 1, commands.size(), pipe) == commands.size();
  const int status = pipe != nullptr ? ::pclose(pipe) : -1;
  if (written && status == 0) return;
  throw InputError(file.string(),
                   "gnuplot did not draw the picture. Is gnuplot (package gnuplot-nox) installed?");
}

/// A private folder for gnuplot's output, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "vramlab-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw InputError(pattern, "cannot make a temporary folder.");
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

void draw_trace_picture(const PictureFrame& frame, const std::vector<PictureRun>& runs,
                        const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending != ".svg" && ending != ".png") {
    throw InputError(file.string(), "a picture's name must end in .svg or .png.");
  }
  const ScratchFolder scratch;
  const fs::path drawn = scratch.path() / ("picture" + ending);
  run_gnuplot(script(frame, runs, drawn, ending == ".png"), file);
  std::ifstream input{drawn, std::ios::binary};
  const std::string content{std::istreambuf_iterator<char>{input}, {}};
  if (content.empty()) throw InputError(file.string(), "gnuplot wrote an empty picture.");
  write_file(file, content);
}

}  // namespace vramlab
