#include <algorithm>
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

double hours(SimTime time) { return to_seconds(time) / 3600; }

SimTime last_of(const std::vector<QueuePanel>& panels) {
  SimTime last{1};
  for (const QueuePanel& panel : panels) {
    for (const QueueBar& bar : panel.bars) last = std::max(last, bar.to);
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
  for (const QueueLevel& level : panel.levels) {
    text += fmt::format("{:.6g} {:.6g} {:.6g}\n", hours(level.time) * unit.per_hour, gib(level.promised),
                        gib(level.used));
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
  std::string text =
      fmt::format("set label 1 {} at graph 0, 1.0 left offset 0,0.6 font ',10'\n", gnuplot_text(panel.title));
  text += fmt::format("set yrange [0:{:.4g}]\nset ytics {:.3g}\n", std::max(highest(panel), 0.001),
                      std::max(gib(panel.total) / 2, 0.001));
  return text + fmt::format(
                    "plot $bars{0} using 1:2:3:4:5:6:7 with boxxyerror fs solid border lc rgb '#ffffff' lc "
                    "rgb variable "
                    "notitle, "
                    "$ooms{0} using 1:2:3:4:5:6 with boxxyerror fs pattern 4 lc rgb '#c62828' {1}, "
                    "$levels{0} using 1:2 with steps dt 2 lc rgb '#444b55' {2}, "
                    "$levels{0} using 1:3 with steps lw 1.5 lc rgb '#1f5fa8' {3}, {4:.6g} with lines lc rgb "
                    "'#444b55' "
                    "{5}\n",
                    i, i == 0 ? "title 'ended in an OOM'" : "notitle",
                    i == 0 ? "title 'promised'" : "notitle", i == 0 ? "title 'used'" : "notitle",
                    gib(panel.total), i == 0 ? "title 'card'" : "notitle");
}

std::string script(const std::string& title, const std::vector<QueuePanel>& panels, int height) {
  const SimTime last = last_of(panels);
  const TimeUnit unit = unit_for(last);
  std::string text;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    text += bars_block(fmt::format("$bars{}", i), panels[i], unit, false);
    text += bars_block(fmt::format("$ooms{}", i), panels[i], unit, true);
    text += levels_block(fmt::format("$levels{}", i), panels[i], unit);
  }
  text += "set tics textcolor rgb '#333333' nomirror\nset ylabel 'GiB' offset 1,0\n";
  text += "set key at graph 1, 1.0 bottom right horizontal maxrows 1 samplen 2 font ',9'\n";
  text += fmt::format("set xrange [0:{:.6g}]\n", hours(last) * unit.per_hour);
  const double pixel = 1.0 / height;
  text += fmt::format(
      "set multiplot layout {},1 margins 0.06,0.98,{:.4f},{:.4f} spacing 0,{:.4f} title {} font ',13'\n",
      panels.size(), kFootHeight * pixel, 1 - (kQueueHead - 20) * pixel, 34 * pixel, gnuplot_text(title));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    text += i + 1 == panels.size() ? fmt::format("set format x '%g'\nset xlabel '{}'\n", unit.name)
                                   : "set format x ''\nunset xlabel\n";
    text += panel_commands(panels[i], i);
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
  const int row = panels.size() <= kTallPanels ? 190 : 95;
  const int height = kQueueHead + kFootHeight + row * static_cast<int>(panels.size());
  draw_with_gnuplot(kQueueWidth, height, script(title, panels, height), file);
}

}  // namespace vramlab
