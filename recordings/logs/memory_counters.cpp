#include "recordings/logs/memory_counters.hpp"

#include <algorithm>
#include <array>

namespace vramlab {
namespace {

constexpr std::string_view kAllocated = "allocated_bytes.all.current";

// Rows of the table and what memory_stats() calls them. "Allocations" and the like are plain numbers.
struct SummaryRow {
  std::string_view title;
  std::string_view key;
};
constexpr std::array kSummaryRows{
    SummaryRow{"Allocated memory", "allocated_bytes.all"},
    SummaryRow{"Active memory", "active_bytes.all"},
    SummaryRow{"Requested memory", "requested_bytes.all"},
    SummaryRow{"GPU reserved memory", "reserved_bytes.all"},
    SummaryRow{"Non-releasable memory", "inactive_split_bytes.all"},
    SummaryRow{"Allocations", "allocation.all"},
    SummaryRow{"Active allocs", "active.all"},
    SummaryRow{"GPU reserved segments", "segment.all"},
    SummaryRow{"Non-releasable allocs", "inactive_split.all"},
};

// "10344 MiB" or "1234 K" of the table: cut, never rounded up.
std::optional<PrintedSize> cut_number(std::string_view cell) {
  std::string_view rest = cell;
  const auto number = take_number(rest);
  if (!number || *number >= Bytes{1} << 60) return {};
  if (auto size = parse_printed_size(cell)) {
    const bool whole = size->low == size->high;
    const Bytes unit = whole ? 1 : 2 * (size->high - size->bytes);
    size->low = size->bytes;
    size->high = size->bytes + unit - 1;
    return size;
  }
  const auto thousand = rest.starts_with(" K") ? 1000u : rest.starts_with(" M") ? 1000'000u : 1u;
  const Bytes count = *number * thousand;
  return PrintedSize{count, count, count + thousand - 1, std::string{cell.substr(0, cell.find(" |"))}};
}

std::string_view next_cell(std::string_view& row) {
  const std::size_t bar = row.find('|');
  if (bar == std::string_view::npos) return row = {};
  row.remove_prefix(bar + 1);
  while (row.starts_with(' ')) row.remove_prefix(1);
  return row.substr(0, row.find('|'));
}

void read_row(std::string_view table, const SummaryRow& row, MemoryCounters& counters) {
  const std::size_t at = table.find("| " + std::string{row.title} + " |");
  if (at == std::string_view::npos) return;
  std::string_view rest = table.substr(at + 2);
  for (const char* column : {".current", ".peak", ".allocated", ".freed"}) {
    const std::string_view cell = next_cell(rest);
    if (const auto value = cut_number(cell)) counters.values[std::string{row.key} + column] = *value;
  }
}

void read_count(std::string_view table, std::string_view title, const char* key, MemoryCounters& counters) {
  const auto number = number_after(table, title);
  if (number) counters.values[key] = {*number, *number, *number, std::to_string(*number)};
}

void add_summaries(std::string_view text, std::vector<MemoryCounters>& all) {
  constexpr std::string_view kTitle = "memory summary, device ID ";
  constexpr std::string_view kFirstRow = "| Allocated memory |";
  const std::string line = one_line(text);
  const std::string_view whole = line;
  std::size_t begin = std::min(whole.find(kTitle), whole.find(kFirstRow));
  while (begin != std::string_view::npos) {
    const std::size_t row = whole.find(kFirstRow, begin);
    if (row == std::string_view::npos) return;
    std::size_t end = std::min(whole.find(kTitle, row), whole.find(kFirstRow, row + 1));
    const std::string_view table = whole.substr(begin, end == std::string_view::npos ? end : end - begin);
    MemoryCounters counters{.values = {}, .device = {}, .from_summary = true};
    if (const auto device = number_after(table, kTitle); device && *device < 4096) {
      counters.device = static_cast<int>(*device);
    }
    for (const SummaryRow& one : kSummaryRows) read_row(table, one, counters);
    read_count(table, "CUDA OOMs: ", "num_ooms", counters);
    read_count(table, "cudaMalloc retries: ", "num_alloc_retries", counters);
    all.push_back(std::move(counters));
    begin = end;
  }
}

// Reads "'key': 12", "('key', 12)" and "'key': {...}" wherever they stand; all else is passed over.
class StatsReader {
 public:
  explicit StatsReader(std::string_view text) : text_(text) {}

  std::vector<MemoryCounters> all() {
    while (!text_.empty()) {
      if (read_bare_key()) continue;
      const char c = text_.front();
      text_.remove_prefix(1);
      if (c == '}') leave();
      if (c == '\'' || c == '"') read_key(c);
    }
    return std::move(found_);
  }

 private:
  // "allocated_bytes.all.current: 12", as loops over the result print it.
  bool read_bare_key() {
    const std::size_t end = std::min(text_.find_first_not_of(kKeyLetters), text_.size());
    if (end == 0) return false;
    const std::string_view key = text_.substr(0, end);
    text_.remove_prefix(end);
    if (key.find(".all.") == std::string_view::npos && !key.starts_with("num_")) return true;
    text_.remove_prefix(std::min(text_.find_first_not_of("'\" \t:=,"), text_.size()));
    if (const auto number = take_number(text_)) add(std::string{key}, *number);
    return true;
  }

  void read_key(char quote) {
    const std::size_t end = text_.find_first_of("'\"\n");
    if (end == std::string_view::npos || text_[end] != quote) return;
    const std::string key{text_.substr(0, end)};
    text_.remove_prefix(end + 1);
    skip_blanks();
    if (!text_.starts_with(':') && !text_.starts_with(',')) return;
    const bool pair = text_.front() == ',';
    text_.remove_prefix(1);
    skip_blanks();
    if (!pair && text_.starts_with('{')) return enter(key);
    if (const auto number = take_number(text_)) add(path_ + key, *number);
  }

  void enter(const std::string& key) {
    text_.remove_prefix(1);
    lengths_.push_back(path_.size());
    path_ += key + '.';
  }

  void leave() {
    if (lengths_.empty()) return;
    path_.resize(lengths_.back());
    lengths_.pop_back();
  }

  void skip_blanks() {
    while (!text_.empty() && std::string_view{" \t\r\n"}.find(text_.front()) != std::string_view::npos) {
      text_.remove_prefix(1);
    }
  }

  // A key that is there already belongs to the next result. What wraps the results has a name of its own,
  // too.
  void add(const std::string& path, std::uint64_t number) {
    constexpr std::array<std::string_view, 10> kKeys{
        "allocated_bytes.", "active_bytes.", "requested_bytes.", "reserved_bytes.", "inactive_split_bytes.",
        "allocation.",      "active.",       "segment.",         "inactive_split.", "num_"};
    const auto begins = [&](std::string_view key) {
      return path.find(key) == 0 || path.find('.' + std::string{key}) != std::string::npos;
    };
    const auto known = std::find_if(kKeys.begin(), kKeys.end(), begins);
    if (known == kKeys.end()) return;
    const std::string key = path.substr(path.find(*known));
    if (found_.empty() || found_.back().values.contains(key)) found_.emplace_back();
    found_.back().values[key] = {number, number, number, std::to_string(number)};
  }

  static constexpr std::string_view kKeyLetters = "abcdefghijklmnopqrstuvwxyz_.";

  std::string_view text_;
  std::string path_;
  std::vector<std::size_t> lengths_;
  std::vector<MemoryCounters> found_;
};

}  // namespace

const PrintedSize* MemoryCounters::find(std::string_view key) const {
  const auto found = values.find(key);
  return found == values.end() ? nullptr : &found->second;
}

std::vector<MemoryCounters> parse_memory_counters(std::string_view text) {
  std::vector<MemoryCounters> all;
  add_summaries(text, all);
  if (text.find("allocated_bytes") == std::string_view::npos) return all;
  for (MemoryCounters& counters : StatsReader{text}.all()) {
    if (counters.find(kAllocated) != nullptr) all.push_back(std::move(counters));
  }
  return all;
}

}  // namespace vramlab
