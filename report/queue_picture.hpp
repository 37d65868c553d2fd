// A static picture of jobs on shared cards: who held how much memory of which card, and when.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace vramlab {

/// One stay of a job on one card, drawn as a box as high as its memory.
struct QueueBar {
  SimTime from{0};
  SimTime to{0};
  Bytes memory = 0;
  std::size_t job = 0;   ///< decides its colour
  bool ran_out = false;  ///< ended in an OOM: outlined in red
};

/// A figure that holds from `time` on.
struct QueueLevel {
  SimTime time{0};
  Bytes promised = 0;
  Bytes used = 0;  ///< strangers included
};

struct QueuePanel {
  std::string title;
  Bytes total = 0;
  std::vector<QueueBar> bars;  ///< in the order of their begins
  std::vector<QueueLevel> levels;
};

/// Where each bar's lower edge lies: at the lowest place that is free as long as the bar lasts, as if memory
/// were given out in one piece.
std::vector<Bytes> stack_bars(const std::vector<QueueBar>& bars);

/// Draws `panels` one below the other over one time axis, into `file` (.svg or .png), with gnuplot. Dashed:
/// what was promised; solid: what was used; both may exceed the boxes, which show each job's highest use.
/// Throws InputError as draw_with_gnuplot does.
void draw_queue_picture(const std::string& title, const std::vector<QueuePanel>& panels,
                        const std::filesystem::path& file);

}  // namespace vramlab
