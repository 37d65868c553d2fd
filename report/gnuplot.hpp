// Pictures are drawn by gnuplot, from a script that a caller writes.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace vramlab {

/// Throws InputError unless `file` ends in .svg or .png.
void require_picture_name(const std::filesystem::path& file);

/// `text` as gnuplot reads it literally; line breaks, which would begin a command, become spaces.
std::string gnuplot_text(const std::string& text);

/// The command that sets the terminal for a picture of that many pixels.
std::string gnuplot_terminal(bool png, int width, int height);

/// Draws `file` (.svg or .png) with the script that `script(output, png)` returns; it must set `output` as
/// gnuplot's. Throws InputError if the ending is another one, gnuplot is missing or fails, or `file` cannot
/// be written.
void draw_with_gnuplot(
    const std::filesystem::path& file,
    const std::function<std::string(const std::filesystem::path& output, bool png)>& script);

}  // namespace vramlab
