#include "lab/page/drawing.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
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

}  // namespace

namespace drawing {  // not local: a class that others know of has them as members

/// A stretch of addresses that was reserved at some time.
struct Stretch {
  Address begin = 0;
  Address end = 0;
  std::uint32_t row = 0;
};

/// Follows the history and writes down, column by column, what each row holds.
class MapMaker {
 public:
  MapMaker(const std::map<Address, Address>& reserved, SegmentMap& map) : map_(map) {
    for (const auto& [begin, end] : reserved) stretches_.push_back({begin, end});
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

}  // namespace drawing

std::size_t curve_stride(std::size_t count, std::size_t most) {
  if (count <= most) return 1;
  const std::size_t stretches = std::max<std::size_t>(most / 2, 1);
  return (count + stretches - 1) / stretches;
}

void CurveThinner::add(const CurvePoint& point) {
  if (count_ == 0) low_ = high_ = point;
  if (point.value < low_.value) {
    low_ = point;
    high_first_ = true;
  }
  if (point.value > high_.value) {
    high_ = point;
    high_first_ = false;
  }
  last_ = point;
  if (++count_ == stride_) end_stretch();
}

void CurveThinner::end_stretch() {
  if (count_ == 0) return;
  vramlab::add(curve_, high_first_ ? high_ : low_);
  if (low_ != high_) vramlab::add(curve_, high_first_ ? low_ : high_);
  count_ = 0;
  high_first_ = false;
}

std::vector<CurvePoint> CurveThinner::finish() {
  end_stretch();
  if (!curve_.empty() && curve_.back() != last_) vramlab::add(curve_, last_);
  return std::move(curve_);
}

std::vector<CurvePoint> thinned_curve(std::size_t count, std::size_t stride,
                                      const std::function<CurvePoint(std::size_t)>& point) {
  CurveThinner thinner{stride};
  for (std::size_t i = 0; i < count; ++i) thinner.add(point(i));
  return thinner.finish();
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

void SegmentSurvey::add(const TraceEntry& entry) {
  ++entries_;
  if (!reserves(entry)) return;
  Address begin = entry.address;
  Address end = entry.address + entry.size;
  auto next = reserved_.upper_bound(begin);
  if (next != reserved_.begin() && std::prev(next)->second >= begin) {
    --next;
    if (next->second >= end) return;
    begin = next->first;
  }
  while (next != reserved_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = reserved_.erase(next);
  }
  reserved_.emplace_hint(next, begin, end);
}

class SegmentMapMaker::Impl {
 public:
  explicit Impl(const SegmentSurvey& survey)
      : maker_(survey.reserved(), map_),
        live_(curve_stride(survey.entries(), kMostCurvePoints)),
        reserved_(curve_stride(survey.entries(), kMostCurvePoints)) {
    map_.entries = survey.entries();
    map_.stride = std::max<std::uint64_t>(1, (map_.entries + kMostColumns - 1) / kMostColumns);
  }

  void add(const TraceEntry& entry) {
    maker_.apply(entry);
    const auto at = static_cast<std::int64_t>(seen_);
    live_.add({at, static_cast<std::int64_t>(maker_.live())});
    reserved_.add({at, static_cast<std::int64_t>(maker_.reserved())});
    ++seen_;
    const bool ends_column = seen_ % map_.stride == 0 || seen_ == map_.entries;
    if (ends_column) maker_.end_column((seen_ - 1) / map_.stride * map_.stride, seen_);
  }

  SegmentMap finish() {
    maker_.finish();
    map_.live = live_.finish();
    map_.reserved = reserved_.finish();
    return std::move(map_);
  }

 private:
  SegmentMap map_;
  drawing::MapMaker maker_;
  CurveThinner live_;
  CurveThinner reserved_;
  std::uint64_t seen_ = 0;
};

SegmentMapMaker::SegmentMapMaker(const SegmentSurvey& survey) : impl_(std::make_unique<Impl>(survey)) {}
SegmentMapMaker::~SegmentMapMaker() = default;
void SegmentMapMaker::add(const TraceEntry& entry) { impl_->add(entry); }
SegmentMap SegmentMapMaker::finish() { return impl_->finish(); }

SegmentMap segment_map(const std::vector<TraceEntry>& history) {
  SegmentSurvey survey;
  for (const TraceEntry& entry : history) survey.add(entry);
  SegmentMapMaker maker{survey};
  for (const TraceEntry& entry : history) maker.add(entry);
  return maker.finish();
}

}  // namespace vramlab
