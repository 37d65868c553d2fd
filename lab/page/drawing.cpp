#include "lab/page/drawing.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace vramlab {
namespace {

void add(std::vector<CurvePoint>& curve, const CurvePoint& point) {
  const std::size_t size = curve.size();
  const bool level =
      size >= 2 && curve[size - 1].value == point.value && curve[size - 2].value == point.value;
  if (level) {
    curve.back() = point;
  } else {
    curve.push_back(point);
  }
}

constexpr std::size_t kMostColumns = 800;
constexpr std::uint64_t kRows = 240;
constexpr std::size_t kMostCurvePoints = 3000;
constexpr Bytes kSmallestRow = 512;

using Action = TraceEntry::Action;

bool reserves(const TraceEntry& entry) {
  return entry.action == Action::segment_alloc || entry.action == Action::segment_map;
}

bool releases(const TraceEntry& entry) {
  return entry.action == Action::segment_free || entry.action == Action::segment_unmap;
}

/// A stretch of addresses that was reserved at some time.
struct Stretch {
  Address begin = 0;
  Address end = 0;
  std::uint32_t row = 0;
};

std::vector<Stretch> stretches_of(const std::vector<TraceEntry>& history) {
  std::vector<Stretch> all;
  for (const TraceEntry& entry : history) {
    if (reserves(entry)) all.push_back({entry.address, entry.address + entry.size});
  }
  std::ranges::sort(all, {}, &Stretch::begin);
  std::vector<Stretch> merged;
  for (const Stretch& one : all) {
    if (!merged.empty() && one.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, one.end);
    } else {
      merged.push_back(one);
    }
  }
  return merged;
}

/// Follows the history and writes down, column by column, what each row holds.
class MapMaker {
 public:
  MapMaker(const std::vector<TraceEntry>& history, SegmentMap& map)
      : map_(map), stretches_(stretches_of(history)) {
    Bytes all = 0;
    for (const Stretch& one : stretches_) all += one.end - one.begin;
    map_.row_bytes = std::max(kSmallestRow, std::bit_ceil((all + kRows - 1) / kRows));
    for (Stretch& one : stretches_) {
      one.row = map_.rows;
      map_.ranges.push_back({map_.rows, one.begin});
      map_.rows += static_cast<std::uint32_t>((one.end - one.begin + map_.row_bytes - 1) / map_.row_bytes);
    }
    rows_.resize(map_.rows);
  }

  void apply(const TraceEntry& entry) {
    if (reserves(entry)) {
      spread(entry.address, entry.size, &Row::reserved, true);
      reserved_ += entry.size;
    } else if (releases(entry)) {
      spread(entry.address, entry.size, &Row::reserved, false);
      reserved_ -= std::min(reserved_, entry.size);
    } else if (entry.action == Action::alloc) {
      blocks_[entry.address] = entry.size;
      spread(entry.address, entry.size, &Row::live, true);
      live_ += entry.size;
    } else if (entry.action == Action::free_completed) {
      const auto block = blocks_.find(entry.address);
      if (block == blocks_.end()) return;
      spread(entry.address, block->second, &Row::live, false);
      live_ -= block->second;
      blocks_.erase(block);
    }
  }

  void end_column(std::uint64_t from, std::uint64_t to) {
    for (std::uint32_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      const int state = state_of(row);
      if (state != row.state) {
        emit(i, from);
        row.state = state;
        row.since = from;
      }
      row.most_live = row.live;
      row.most_reserved = row.reserved;
    }
    end_ = to;
  }

  void finish() {
    for (std::uint32_t i = 0; i < rows_.size(); ++i) emit(i, end_);
  }

  [[nodiscard]] Bytes live() const { return live_; }
  [[nodiscard]] Bytes reserved() const { return reserved_; }

 private:
  struct Row {
    Bytes live = 0;
    Bytes reserved = 0;
    Bytes most_live = 0;  ///< within the column
    Bytes most_reserved = 0;
    int state = -1;  ///< −1 = not reserved
    std::uint64_t since = 0;
  };

  static int state_of(const Row& row) {
    if (row.most_reserved == 0) return -1;
    return static_cast<int>((4 * std::min(row.most_live, row.most_reserved) + row.most_reserved - 1) /
                            row.most_reserved);
  }

  void spread(Address address, Bytes size, Bytes Row::*figure, bool more) {
    auto stretch = std::ranges::upper_bound(stretches_, address, {}, &Stretch::begin);
    if (stretch == stretches_.begin()) return;
    --stretch;
    const Address end = std::min(address + size, stretch->end);
    while (address < end) {
      const std::uint64_t index = (address - stretch->begin) / map_.row_bytes;
      const Address row_end = stretch->begin + (index + 1) * map_.row_bytes;
      const Bytes part = std::min(end, row_end) - address;
      Row& row = rows_[stretch->row + index];
      if (more) {
        row.*figure += part;
      } else {
        row.*figure -= std::min(part, row.*figure);
      }
      row.most_live = std::max(row.most_live, row.live);
      row.most_reserved = std::max(row.most_reserved, row.reserved);
      address += part;
    }
  }

  // Rows above each other that change together are one cell.
  void emit(std::uint32_t index, std::uint64_t to) {
    const Row& row = rows_[index];
    if (row.state < 0 || row.since >= to) return;
    const SegmentCell cell{row.since, to, index, index + 1, static_cast<std::uint8_t>(row.state)};
    if (!map_.cells.empty()) {
      SegmentCell& last = map_.cells.back();
      if (last.last == index && last.from == cell.from && last.to == to && last.state == cell.state &&
          !starts_range(index)) {
        last.last = index + 1;
        return;
      }
    }
    map_.cells.push_back(cell);
  }

  [[nodiscard]] bool starts_range(std::uint32_t row) const {
    return std::ranges::binary_search(map_.ranges, row, {}, &SegmentMap::Range::row);
  }

  SegmentMap& map_;
  std::vector<Stretch> stretches_;
  std::vector<Row> rows_;
  std::map<Address, Bytes> blocks_;
  Bytes live_ = 0;
  Bytes reserved_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace

std::size_t curve_stride(std::size_t count, std::size_t most) {
  if (count <= most) return 1;
  const std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  return (count + stretches - 1) / stretches;
}

std::vector<CurvePoint> thinned_curve(std::size_t count, std::size_t stride,
                                      const std::function<CurvePoint(std::size_t)>& point) {
  std::vector<CurvePoint> curve;
  for (std::size_t first = 0; first < count; first += stride) {
    std::size_t low = first;
    std::size_t high = first;
    for (std::size_t i = first + 1; i < std::min(first + stride, count); ++i) {
      if (point(i).value < point(low).value) low = i;
      if (point(i).value > point(high).value) high = i;
    }
    add(curve, point(std::min(low, high)));
    if (low != high) add(curve, point(std::max(low, high)));
  }
  if (count > 0 && curve.back() != point(count - 1)) add(curve, point(count - 1));
  return curve;
}

std::vector<RunMark> merged_marks(const std::vector<RunMark>& marks, std::size_t most) {
  if (marks.size() <= most) return marks;
  const std::int64_t begin = marks.front().first;
  const auto stretches = static_cast<std::int64_t>(std::max<std::size_t>(most, 1));
  const std::int64_t stretch = (marks.back().first - begin) / stretches + 1;
  std::vector<RunMark> merged;
  for (const RunMark& mark : marks) {
    const bool together =
        !merged.empty() && (merged.back().first - begin) / stretch == (mark.first - begin) / stretch;
    if (together) {
      merged.back().last = std::max(merged.back().last, mark.last);
      merged.back().count += mark.count;
    } else {
      merged.push_back(mark);
    }
  }
  return merged;
}

SegmentMap segment_map(const std::vector<TraceEntry>& history) {
  SegmentMap map;
  map.entries = history.size();
  map.stride = std::max<std::uint64_t>(1, (history.size() + kMostColumns - 1) / kMostColumns);
  MapMaker maker{history, map};
  std::vector<Bytes> live;
  std::vector<Bytes> reserved;
  for (std::size_t i = 0; i < history.size(); ++i) {
    maker.apply(history[i]);
    live.push_back(maker.live());
    reserved.push_back(maker.reserved());
    const bool last = i + 1 == history.size();
    if ((i + 1) % map.stride == 0 || last) maker.end_column(i / map.stride * map.stride, i + 1);
  }
  maker.finish();
  const auto curve = [&](const std::vector<Bytes>& values) {
    return thinned_curve(values.size(), curve_stride(values.size(), kMostCurvePoints), [&](std::size_t i) {
      return CurvePoint{static_cast<std::int64_t>(i), static_cast<std::int64_t>(values[i])};
    });
  };
  map.live = curve(live);
  map.reserved = curve(reserved);
  return map;
}

}  // namespace vramlab
