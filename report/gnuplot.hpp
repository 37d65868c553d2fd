// Drawing pictures with gnuplot.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace vramlab {

/// Throws InputError unless `file` ends in .svg or .png.
void require_picture_name(const std::filesystem::path& file);

/// `text` as gnuplot reads it back unchanged; line breaks become spaces.
std::string gnuplot_text(const std::string& text);

/// The first commands of a script: what to draw into, in pixels.
std::string gnuplot_terminal(int width, int height, const std::filesystem::path& output, bool png);

/// Writes the script for an output file of gnuplot's (`png` or SVG).
using GnuplotScript = std::function<std::string(const std::filesystem::path& output, bool png)>;

/// Draws `file` (.svg or .png). Throws InputError if the ending is another one, gnuplot is missing or fails,
/// or `file` cannot be written.
void draw_with_gnuplot(const GnuplotScript& script, const std::filesystem::path& file);

}  // namespace vramlab
