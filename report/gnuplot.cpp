#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

/// A private folder for gnuplot's output, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code missing;
    std::string pattern = (fs::temp_directory_path(missing) / "vramlab-XXXXXX").string();
    if (missing || ::mkdtemp(pattern.data()) == nullptr)
      throw InputError(pattern, "cannot make a temporary folder; is TMPDIR right?");
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

InputError without_gnuplot(const fs::path& picture) {
  return {picture.string(), "gnuplot is needed to draw it. Install the package gnuplot-nox."};
}

// No shell is involved. gnuplot's own complaints are about our script, not about the user's input.
void run_gnuplot(const fs::path& script_file, const fs::path& picture) {
  std::string program = "gnuplot";
  std::string argument = script_file.string();
  char* arguments[] = {program.data(), argument.data(), nullptr};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw without_gnuplot(picture);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0) {
    throw InputError(picture.string(), "gnuplot could not draw it.");
  }
}

}  // namespace

void require_picture_name(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".svg" || ending == ".png") return;
  throw InputError(file.string(), "a picture's name must end in .svg or .png.");
}

void require_gnuplot(const fs::path& picture) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "/bin:/usr/bin" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path{folder.empty() ? "." : folder} / "gnuplot";
    std::error_code missing;
    if (fs::is_regular_file(program, missing) && ::access(program.c_str(), X_OK) == 0) return;
  }
  throw without_gnuplot(picture);
}

// gnuplot reads single-quoted text as it stands, a quote written twice. A line break would begin a command.
std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += c;
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "'";
}

void draw_with_gnuplot(int width, int height, const std::string& commands, const fs::path& file) {
  require_picture_name(file);
  const std::string ending = file.extension().string();
  const ScratchFolder scratch;
  const fs::path drawn = scratch.path() / ("picture" + ending);
  const fs::path script = scratch.path() / "commands";
  const std::string size = fmt::format("size {},{}", width, height);
  write_file(script, (ending == ".png"
                          ? "set terminal pngcairo " + size + " font 'DejaVu Sans,10'\n"
                          : "set terminal svg " + size + " font 'DejaVu Sans,11' background '#ffffff'\n") +
                         "set output " + gnuplot_text(drawn.string()) +
                         "\nset encoding utf8\nset termoption noenhanced\nset border 3 lc rgb '#888888'\n" +
                         commands + "unset output\n");
  run_gnuplot(script, file);
  std::ifstream input{drawn, std::ios::binary};
  const std::string content{std::istreambuf_iterator<char>{input}, {}};
  if (content.empty()) throw InputError(file.string(), "gnuplot wrote an empty picture.");
  write_file(file, content);
}

namespace {

constexpr int kWidth = 1000;
constexpr int kPanelHeight = 190;
constexpr int kHeadHeight = 60;
constexpr const char* kColours[] = {"#1f5fa8", "#b35900", "#00796b", "#5b3a9e", "#8d2f5f", "#777777"};

std::string number(double value) { return std::isnan(value) ? "NaN" : fmt::format("{:.6g}", value); }

constexpr const char* kLook =
    "set grid ytics lc rgb '#e4e4e4'\nset tics textcolor rgb '#333333' nomirror\nset lmargin 10\n"
    "set key outside top right horizontal maxrows 1 samplen 1 font ',9'\nset yrange [0:*]\n";

std::string panels_script(const PanelPicture& picture) {
  std::string text = "$data << EOD\n";
  for (std::size_t row = 0; row < picture.axis.size(); ++row) {
    text += number(picture.axis[row]);
    for (const Panel& panel : picture.panels) {
      for (const Curve& curve : panel.curves) text += " " + number(curve.values[row]);
    }
    text += "\n";
  }
  text += fmt::format("EOD\n{}set multiplot layout {},1 title {} font ',13'\n", kLook, picture.panels.size(),
                      gnuplot_text(picture.title));
  std::size_t column = 2;
  for (std::size_t i = 0; i < picture.panels.size(); ++i) {
    const Panel& panel = picture.panels[i];
    text += i + 1 == picture.panels.size() ? fmt::format("set xlabel {}\n", gnuplot_text(picture.axis_name))
                                           : "unset xlabel\n";
    text += fmt::format("set ylabel {}\nplot ", gnuplot_text(panel.unit));
    for (std::size_t c = 0; c < panel.curves.size(); ++c) {
      text += fmt::format("{}$data using 1:{} with lines lw 1.5 lc rgb '{}' title {}", c ? ", " : "",
                          column++, kColours[c % std::size(kColours)], gnuplot_text(panel.curves[c].name));
    }
    text += "\n";
  }
  return text + "unset multiplot\n";
}

std::string bars_script(const BarPicture& picture) {
  std::string text = "$data << EOD\n";
  for (std::size_t group = 0; group < picture.groups.size(); ++group) {
    text += fmt::format("{}", group);
    for (const Curve& bar : picture.bars) text += " " + number(bar.values[group]);
    text += "\n";
  }
  text += fmt::format(
      "EOD\n{}set title {}\nset ylabel {}\nset style data histograms\nset style fill solid 0.85\n", kLook,
      gnuplot_text(picture.title), gnuplot_text(picture.unit));
  text += "set xtics (";
  for (std::size_t group = 0; group < picture.groups.size(); ++group) {
    text += fmt::format("{}{} {}", group ? ", " : "", gnuplot_text(picture.groups[group]), group);
  }
  text += ")\nplot ";
  for (std::size_t bar = 0; bar < picture.bars.size(); ++bar) {
    text += fmt::format("{}$data using {} lc rgb '{}' title {}", bar ? ", " : "", bar + 2,
                        kColours[bar % std::size(kColours)], gnuplot_text(picture.bars[bar].name));
  }
  return text + "\n";
}

// gnuplot refuses to draw a curve without a single value.
void drop_empty(std::vector<Curve>& curves) {
  std::erase_if(curves, [](const Curve& curve) {
    return std::all_of(curve.values.begin(), curve.values.end(),
                       [](double value) { return std::isnan(value); });
  });
}

}  // namespace

void draw_panels(PanelPicture picture, const std::filesystem::path& file) {
  for (Panel& panel : picture.panels) drop_empty(panel.curves);
  std::erase_if(picture.panels, [](const Panel& panel) { return panel.curves.empty(); });
  const int height = kHeadHeight + kPanelHeight * static_cast<int>(picture.panels.size());
  draw_with_gnuplot(kWidth, height, panels_script(picture), file);
}

void draw_bars(BarPicture picture, const std::filesystem::path& file) {
  drop_empty(picture.bars);
  draw_with_gnuplot(kWidth, 420, bars_script(picture), file);
}

}  // namespace vramlab
