#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "report/pictures.hpp"

namespace vramlab {
namespace {

constexpr int kQueueWidth = 1200;
constexpr int kQueueHead = 90;
constexpr int kFootHeight = 50;
constexpr std::size_t kTallPanels = 6;  // up to this many get the full height
constexpr std::uint32_t kJobColours[] = {0x8fb3d9, 0xf2c48d, 0xa9cfa3, 0xd3b3d6,
                                         0xe8a9a1, 0xb8c7c9, 0xdccf8a, 0x9fd0cf};

// The same, dark enough for lines.
constexpr std::uint32_t kLineColours[] = {0x1f5fa8, 0xb35900, 0x2e7d32, 0x7b3f8c,
                                          0xb23a2e, 0x4d6367, 0x8a7a12, 0x0f7a78};
constexpr std::size_t kMostCurves = 16;  // of one panel; a key of more cannot be read

double hours(SimTime time) { return to_seconds(time) / 3600; }

SimTime last_of(const std::vector<QueuePanel>& panels) {
  SimTime last{1};
  for (const QueuePanel& panel : panels) {
    for (const QueueBar& bar : panel.bars) last = std::max(last, bar.to);
    for (const SimTime failure : panel.failures) last = std::max(last, failure);
  }
  return last;
}

/// The unit of the time axis, so that short runs are not drawn in thousandths of an hour.
struct TimeUnit {
  const char* name;
  double per_hour;
};
TimeUnit unit_for(SimTime last) {
  if (last < std::chrono::minutes{10}) return {"s", 3600};
  if (last < std::chrono::hours{10}) return {"min", 60};
  return {"h", 1};
}

std::string bars_block(const std::string& name, const QueuePanel& panel, TimeUnit unit, bool ran_out) {
  const std::vector<Bytes> low = stack_bars(panel.bars);
  std::string text = name + " << EOD\n";
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < panel.bars.size(); ++i) {
    const QueueBar& bar = panel.bars[i];
    if (bar.ran_out != ran_out || bar.memory == 0) continue;
    const double from = hours(bar.from) * unit.per_hour;
    const double to = hours(bar.to) * unit.per_hour;
    text += fmt::format("{0:.6g} {1:.6g} {0:.6g} {2:.6g} {1:.6g} {3:.6g} {4}\n", from, gib(low[i]), to,
                        gib(low[i] + bar.memory), kJobColours[bar.job % std::size(kJobColours)]);
    ++drawn;
  }
  if (drawn == 0) text += "NaN NaN NaN NaN NaN NaN 0\n";
  return text + "EOD\n";
}

std::string levels_block(const std::string& name, const QueuePanel& panel, TimeUnit unit) {
  std::string text = name + " << EOD\n0 0 0\n";
  const QueueLevel* last = nullptr;
  for (const QueueLevel& level : panel.levels) {
    const bool same = last != nullptr && last->promised == level.promised && last->used == level.used;
    last = &level;
    if (same && &level != &panel.levels.back()) continue;  // dashes begin anew at every point
    text += fmt::format("{:.6g} {:.6g} {:.6g}\n", hours(level.time) * unit.per_hour, gib(level.promised),
                        gib(level.used));
  }
  return text + "EOD\n";
}

std::string failures_block(const std::string& name, const QueuePanel& panel, TimeUnit unit) {
  std::string text = name + " << EOD\n";
  for (const SimTime failure : panel.failures) {
    text += fmt::format("{:.6g} {:.6g}\n", hours(failure) * unit.per_hour, gib(panel.total));
  }
  return text + (panel.failures.empty() ? "NaN NaN\nEOD\n" : "EOD\n");
}

// A value holds until the next one; where a curve ends it is drawn until then.
std::string curve_block(const std::string& name, const QueueCurve& curve, TimeUnit unit) {
  std::string text = name + " << EOD\n";
  double value = std::nan("");
  for (const auto& [time, next] : curve.values) {
    const double at = hours(time) * unit.per_hour;
    if (std::isnan(next)) text += fmt::format("{:.6g} {}\n", at, value);
    text += std::isnan(next) ? std::string{"\n"} : fmt::format("{:.6g} {}\n", at, next);
    value = next;
  }
  return text + "EOD\n";
}

double highest(const QueuePanel& panel) {
  Bytes most = panel.total;
  const std::vector<Bytes> low = stack_bars(panel.bars);
  for (std::size_t i = 0; i < low.size(); ++i) most = std::max(most, low[i] + panel.bars[i].memory);
  for (const QueueLevel& level : panel.levels) most = std::max(most, level.promised);
  return gib(std::min(most, 2 * panel.total)) * 1.05;  // a policy that promises everything is cut off
}

std::string panel_commands(const QueuePanel& panel, std::size_t i) {
  std::string text = fmt::format(
      "set ylabel 'GiB' offset 1,0\nunset y2tics\nset label 1 {} at graph 0, 1.0 left offset "
      "0,0.6 font ',10'\n",
      gnuplot_text(panel.title));
  text += fmt::format("set yrange [0:{:.4g}]\nset ytics {:.3g}\n", std::max(highest(panel), 0.001),
                      std::max(gib(panel.total) / 2, 0.001));
  return text + fmt::format(
                    "plot $bars{0} using 1:2:3:4:5:6:7 with boxxyerror fs solid {7} lc "
                    "rgb variable "
                    "notitle, "
                    "$ooms{0} using 1:2:3:4:5:6 with boxxyerror fs pattern 4 lc rgb '#c62828' {1}, "
                    "$levels{0} using 1:2 with steps dt 2 lc rgb '#444b55' {2}, "
                    "$levels{0} using 1:3 with steps lw 1.5 lc rgb '#1f5fa8' {3}, {4:.6g} with lines lc rgb "
                    "'#444b55' "
                    "{5}, $failures{0} using 1:2 with points pt 2 ps 0.8 lw 1.6 lc rgb '#c62828' {6}\n",
                    i, i == 0 && panel.curves.empty() ? "title 'ended in an OOM'" : "notitle",
                    i == 0 ? "title 'promised'" : "notitle", i == 0 ? "title 'used'" : "notitle",
                    gib(panel.total), i == 0 ? "title 'card'" : "notitle",
                    panel.failures.empty() ? "notitle" : "title 'out of memory'",
                    panel.curves.empty() ? "border lc rgb '#ffffff'" : "noborder");
}

// The upper end of an axis for the curves of first parameters, or for those of all others.
double highest_value(const QueuePanel& panel, bool first) {
  double most = 1;
  for (const QueueCurve& curve : panel.curves) {
    if ((curve.number == 0) != first) continue;
    for (const auto& [time, value] : curve.values) most = std::isnan(value) ? most : std::max(most, value);
  }
  return most * 1.1;
}

// The first parameter of every job is solid and on the left axis, the others are dashed and on the right one.
std::string curves_commands(const QueuePanel& panel, std::size_t i) {
  const std::size_t drawn = std::min(panel.curves.size(), kMostCurves);
  std::string title = "parameters of the jobs (dashed: right axis)";
  if (drawn < panel.curves.size()) {
    title += fmt::format("; {} more are not drawn", panel.curves.size() - drawn);
  }
  std::string text = fmt::format(
      "set label 1 {} at graph 0, 1.0 left offset 0,0.6 font ',10'\nset yrange [0:{:.4g}]\nset ytics auto\n"
      "unset ylabel\nset y2range [0:{:.4g}]\nset y2tics nomirror\nplot ",
      gnuplot_text(title), highest_value(panel, true), highest_value(panel, false));
  for (std::size_t c = 0; c < drawn; ++c) {
    const QueueCurve& curve = panel.curves[c];
    text +=
        fmt::format("{}$curve{}x{} using 1:2 axes x1y{} with steps lw 1.8 dt {} lc rgb '#{:06x}' title {}",
                    c > 0 ? ", " : "", i, c, curve.number == 0 ? 1 : 2, curve.number + 1,
                    kLineColours[curve.job % std::size(kLineColours)], gnuplot_text(curve.name));
  }
  return text + "\n";
}

bool has_curves(const QueuePanel& panel) { return !panel.curves.empty(); }

std::size_t rows_of(const std::vector<QueuePanel>& panels) {
  return panels.size() + static_cast<std::size_t>(std::ranges::count_if(panels, has_curves));
}

std::string blocks(const std::vector<QueuePanel>& panels, TimeUnit unit) {
  std::string text;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    text += bars_block(fmt::format("$bars{}", i), panels[i], unit, false);
    text += bars_block(fmt::format("$ooms{}", i), panels[i], unit, true);
    text += levels_block(fmt::format("$levels{}", i), panels[i], unit);
    text += failures_block(fmt::format("$failures{}", i), panels[i], unit);
    for (std::size_t c = 0; c < std::min(panels[i].curves.size(), kMostCurves); ++c) {
      text += curve_block(fmt::format("$curve{}x{}", i, c), panels[i].curves[c], unit);
    }
  }
  return text;
}

std::string script(const std::string& title, const std::vector<QueuePanel>& panels, int height) {
  const SimTime last = last_of(panels);
  const TimeUnit unit = unit_for(last);
  std::string text = blocks(panels, unit);
  text += "set tics textcolor rgb '#333333' nomirror\n";
  text += "set key at graph 1, 1.0 bottom right horizontal maxrows 1 samplen 2 font ',9'\n";
  text += fmt::format("set xrange [0:{:.6g}]\n", hours(last) * unit.per_hour);
  const double pixel = 1.0 / height;
  const std::size_t rows = rows_of(panels);
  text += fmt::format(
      "set multiplot layout {},1 margins 0.06,{},{:.4f},{:.4f} spacing 0,{:.4f} title {} font ',13'\n", rows,
      rows > panels.size() ? "0.95" : "0.98", kFootHeight * pixel, 1 - (kQueueHead - 20) * pixel, 34 * pixel,
      gnuplot_text(title));
  std::size_t row = 0;
  const auto time_axis = [&] {
    return ++row == rows ? fmt::format("set format x '%g'\nset xlabel '{}'\n", unit.name)
                         : "set format x ''\nunset xlabel\n";
  };
  for (std::size_t i = 0; i < panels.size(); ++i) {
    text += time_axis() + panel_commands(panels[i], i);
    if (has_curves(panels[i])) text += time_axis() + curves_commands(panels[i], i);
  }
  return text + "unset multiplot\n";
}

}  // namespace

std::vector<Bytes> stack_bars(const std::vector<QueueBar>& bars) {
  struct Placed {
    Bytes low = 0;
    Bytes high = 0;
    SimTime to{0};
  };
  std::vector<Placed> active;  // by `low`
  std::vector<Bytes> lows;
  for (const QueueBar& bar : bars) {
    std::erase_if(active, [&](const Placed& placed) { return placed.to <= bar.from; });
    if (bar.low) {
      lows.push_back(*bar.low);
      continue;
    }
    Bytes low = 0;
    auto at = active.begin();
    while (at != active.end() && at->low < low + bar.memory) low = std::max(low, (at++)->high);
    active.insert(at, {low, low + bar.memory, bar.to});
    lows.push_back(low);
  }
  return lows;
}

void draw_queue_picture(const std::string& title, const std::vector<QueuePanel>& panels,
                        const std::filesystem::path& file) {
  const std::size_t rows = rows_of(panels);
  const int row = rows <= kTallPanels ? 190 : 95;
  const int height = kQueueHead + kFootHeight + row * static_cast<int>(rows);
  draw_with_gnuplot(kQueueWidth, height, script(title, panels, height), file);
}

}  // namespace vramlab
