#include "recordings/lifetimes/pins.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace vramlab {
namespace {

/// What lies in one unit that goes back as a whole.
struct Unit {
  Bytes idle = 0;
  Bytes live = 0;  ///< sizes of the blocks of which it holds a part
  std::vector<ProgramBlock> blocks;
};

class PinFinder {
 public:
  explicit PinFinder(const PlacedBlocks& placed) : placed_(placed) {}

  std::vector<Pin> find() {
    for (std::size_t i = 0; i < placed_.segments.size(); ++i) {
      const SegmentView& segment = placed_.segments[i];
      placed_.pages[i] == 0 ? add_plain(segment) : add_pages(segment, placed_.pages[i]);
    }
    std::vector<Pin> pins;
    for (auto& [key, pin] : pins_) pins.push_back(std::move(pin));
    std::stable_sort(pins.begin(), pins.end(), [](const Pin& a, const Pin& b) {
      return std::tuple(a.holder, b.idle) < std::tuple(b.holder, a.idle);
    });
    return pins;
  }

 private:
  void take(Unit& unit, const BlockView& block) const {
    unit.live += block.size;
    const auto number = placed_.blocks.find(block.address);
    if (number != placed_.blocks.end()) unit.blocks.push_back(number->second);
  }

  void add_plain(const SegmentView& segment) {
    Unit unit;
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockState::inactive) {
        unit.idle += block.size;
      } else {
        take(unit, block);
      }
    }
    close(segment, std::move(unit));
  }

  // R4.9: only whole pages are unmapped.
  void add_pages(const SegmentView& segment, Bytes page) {
    std::map<Bytes, Unit> units;  // by number of the page, where something ends in it
    Bytes whole = 0;
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockState::unmapped) continue;
      const Bytes from = block.address - segment.base;
      const Bytes last = from + block.size - 1;
      if (block.state != BlockState::inactive) {
        take(units[from / page], block);
        if (last / page != from / page) take(units[last / page], block);
        continue;
      }
      for (Bytes start = from; start <= last;) {
        const Bytes end = std::min(round_down(start, page) + page, last + 1);
        if (start % page == 0 && last + 1 - start >= page) {
          const Bytes run = round_down(last + 1 - start, page);
          whole += run;
          start += run;
          continue;
        }
        units[start / page].idle += end - start;
        start = end;
      }
    }
    for (auto& [number, unit] : units) close(segment, std::move(unit));
    close(segment, {whole, 0, {}});
  }

  static Bytes round_down(Bytes bytes, Bytes unit) { return bytes - bytes % unit; }

  void close(const SegmentView& segment, Unit unit) {
    if (unit.idle == 0) return;
    std::sort(unit.blocks.begin(), unit.blocks.end());
    const auto holder = unit.live > 0                  ? Pin::Holder::blocks
                        : segment.pool != kDefaultPool ? Pin::Holder::pool
                                                       : Pin::Holder::nothing;
    Pin& pin = pins_[{holder, unit.blocks}];
    if (pin.idle == 0) pin.size = unit.live;
    pin.holder = holder;
    pin.idle += unit.idle;
    pin.blocks = std::move(unit.blocks);
  }

  const PlacedBlocks& placed_;
  std::map<std::pair<Pin::Holder, std::vector<ProgramBlock>>, Pin> pins_;
};

}  // namespace

std::vector<Pin> pins_of(const PlacedBlocks& placed) { return PinFinder(placed).find(); }

}  // namespace vramlab
