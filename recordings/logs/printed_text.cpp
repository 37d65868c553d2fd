#include "recordings/logs/printed_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace vramlab {
namespace {

constexpr std::string_view kDigits = "0123456789";

struct Unit {
  std::string_view name;
  Bytes bytes;
};

// Longer names first where one begins another.
constexpr std::array kUnits{Unit{"bytes", 1},   Unit{"byte", 1},       Unit{"KiB", 1_KiB}, Unit{"MiB", 1_MiB},
                            Unit{"GiB", 1_GiB}, Unit{"TiB", 1024_GiB}, Unit{"KB", 1_KiB},  Unit{"MB", 1_MiB},
                            Unit{"GB", 1_GiB},  Unit{"TB", 1024_GiB},  Unit{"B", 1}};

// XLA writes "2.99G". One letter is a unit only if the text goes on: it may be the beginning of "GiB".
constexpr std::array kLetters{Unit{"K", 1_KiB}, Unit{"M", 1_MiB}, Unit{"G", 1_GiB}, Unit{"T", 1024_GiB}};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

const Unit* unit_of(std::string_view text, bool after_blank) {
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.name)) return &unit;
  }
  if (after_blank || text.size() < 2 || is_word(text[1])) return nullptr;
  for (const Unit& unit : kLetters) {
    if (text.starts_with(unit.name)) return &unit;
  }
  return nullptr;
}

std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end == digits.data()) return {};
  return value;
}

std::string_view take_digits(std::string_view& text) {
  const std::size_t n = std::min(text.find_first_not_of(kDigits), text.size());
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// How logs write the character ESC: as it is, or as JSON, Python and printf show it.
constexpr std::array<std::string_view, 4> kEscapes{"\x1b", "\\u001b", "\\x1b", "\\033"};

// What `text` begins with and a terminal obeys instead of showing (ECMA-48): colours, erased lines, titles,
// links. Empty if it begins with nothing of the kind.
std::string_view control_sequence(std::string_view text) {
  const auto escape = std::find_if(kEscapes.begin(), kEscapes.end(),
                                   [&](std::string_view form) { return text.starts_with(form); });
  if (escape == kEscapes.end()) return {};
  std::size_t i = escape->size();
  const auto skip = [&](char low, char high) {
    while (i < text.size() && text[i] >= low && text[i] <= high) ++i;
  };
  const char kind = i < text.size() ? text[i] : '\0';
  if (kind == ']') {  // OSC: ends with BEL or ESC backslash; what has no end is not hidden
    const std::size_t end = text.find_first_of("\x07\x1b\n", i);
    if (end == std::string_view::npos || text[end] == '\n') return text.substr(0, i + 1);
    return text.substr(0, end + (text[end] == '\x07' ? 1 : 2));
  }
  if (kind == '[') ++i;  // CSI: parameters, then as in every other sequence
  if (kind == '[') skip('0', '?');
  skip(' ', '/');  // intermediates, and one final character
  return text.substr(0, i + 1);
}

// Windows terminals write blanks and line ends as moves of the cursor.
bool moves_cursor(std::string_view sequence) {
  return sequence.find('[') != std::string_view::npos &&
         std::string_view{"ABCDEFGHf"}.find(sequence.back()) != std::string_view::npos;
}

// A progress bar that a later one has overwritten: from a carriage return up to the next one of the same
// line.
std::string_view overwritten_bar(std::string_view text) {
  if (!text.starts_with('\r')) return {};
  const std::size_t end = text.find_first_of("\r\n", 1);
  if (end == std::string_view::npos || text[end] != '\r') return {};
  const std::string_view bar = text.substr(0, end);
  return bar.find("%|") == std::string_view::npos ? std::string_view{} : bar;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    std::string_view piece = control_sequence(text);
    if (piece.empty()) piece = overwritten_bar(text);
    const bool hidden = !piece.empty();
    if (!hidden) piece = text.substr(0, text.starts_with("\\n") ? 2 : 1);
    const bool blank =
        hidden ? moves_cursor(piece) : piece.size() == 2 || piece.find_first_of(" \n\r\t") == 0;
    if (!hidden && !blank) line += piece;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
    text.remove_prefix(piece.size());
  }
  return line;
}

std::optional<PrintedSize> parse_printed_size(std::string_view text) {
  const std::string_view begin = text;
  const auto whole = number(take_digits(text));
  if (!whole || *whole > 10'000'000'000'000'000) return {};
  std::string_view decimals;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = take_digits(text);
    if (decimals.empty() || decimals.size() > 6) return {};
  }
  const bool after_blank = text.starts_with(' ');
  if (after_blank) text.remove_prefix(1);
  const Unit* unit = unit_of(text, after_blank);
  if (unit == nullptr || *whole > (Bytes{1} << 60) / unit->bytes) return {};
  text.remove_prefix(unit->name.size());

  PrintedSize size;
  size.text = begin.substr(0, begin.size() - text.size());
  Bytes scale = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
  const Bytes fraction = (number(decimals).value_or(0) * unit->bytes + scale / 2) / scale;
  size.bytes = *whole * unit->bytes + fraction;
  // Half a unit of the last digit to either side; whole bytes are exact.
  const Bytes half = unit->bytes == 1 ? 0 : (unit->bytes + 2 * scale - 1) / (2 * scale);
  size.low = size.bytes > half ? size.bytes - half : 0;
  size.high = size.bytes + half;
  return size;
}

std::optional<PrintedSize> size_after(std::string_view text, std::string_view anchor) {
  const std::size_t at = text.find(anchor);
  return at == std::string_view::npos ? std::nullopt : parse_printed_size(text.substr(at + anchor.size()));
}

// The two words in front of the anchor: a number and its unit.
std::optional<PrintedSize> size_before(std::string_view text, std::string_view anchor) {
  const std::size_t end = text.find(anchor);
  if (end == std::string_view::npos || end == 0) return {};
  const std::size_t unit = text.rfind(' ', end - 1);
  if (unit == std::string_view::npos || unit == 0) return {};
  const std::size_t before = text.rfind(' ', unit - 1);
  return parse_printed_size(text.substr(before == std::string_view::npos ? 0 : before + 1));
}

std::optional<std::uint64_t> take_number(std::string_view& text) { return number(take_digits(text)); }

std::optional<std::uint64_t> number_after(std::string_view text, std::string_view anchor) {
  const std::size_t at = text.find(anchor);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + anchor.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  return take_number(text);
}

std::size_t find_words(std::string_view text, std::string_view words, std::size_t from) {
  for (std::size_t at = text.find(words, from); at != std::string_view::npos; at = text.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    const bool begins = at == 0 || !is_word(text[at - 1]) || !is_word(words.front());
    const bool ends = end == text.size() || !is_word(text[end]) || !is_word(words.back());
    if (begins && ends) return at;
  }
  return std::string_view::npos;
}

}  // namespace vramlab
