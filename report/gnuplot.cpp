#include "report/gnuplot.hpp"

#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/output_file.hpp"
#include "sim/core/error.hpp"

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
  if (failure != 0) {
    throw InputError(picture.string(), "gnuplot is needed to draw it. Install the package gnuplot-nox.");
  }
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

// gnuplot reads single-quoted text as it stands, a quote written twice. A line break would begin a command.
std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += c;
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "'";
}

std::string gnuplot_terminal(int width, int height, const fs::path& output, bool png) {
  const std::string terminal =
      png ? fmt::format("set terminal pngcairo size {},{} font 'DejaVu Sans,10'\n", width, height)
          : fmt::format("set terminal svg size {},{} font 'DejaVu Sans,11' background '#ffffff'\n", width,
                        height);
  return terminal + fmt::format("set output {}\n", gnuplot_text(output.string()));
}

void draw_with_gnuplot(const GnuplotScript& script, const fs::path& file) {
  require_picture_name(file);
  const std::string ending = file.extension().string();
  const ScratchFolder scratch;
  const fs::path drawn = scratch.path() / ("picture" + ending);
  const fs::path commands = scratch.path() / "commands";
  write_file(commands, script(drawn, ending == ".png"));
  run_gnuplot(commands, file);
  std::ifstream input{drawn, std::ios::binary};
  const std::string content{std::istreambuf_iterator<char>{input}, {}};
  if (content.empty()) throw InputError(file.string(), "gnuplot wrote an empty picture.");
  write_file(file, content);
}

}  // namespace vramlab
