#include <charconv>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/model/recorded.hpp"

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;
constexpr std::string_view kLetters = "afmklx";  // by kind

std::string place_text(const RecordedOp::Place& place) {
  if (place == RecordedOp::Place{}) return "";
  std::string text = fmt::format("@{}{:+}{:+}", place.from_end ? 'e' : 's', place.offset, place.step);
  if (!place.outside.empty()) text += fmt::format(":{}", fmt::join(place.outside, ","));
  return text;
}

std::string group_text(std::uint32_t group) { return group == 0 ? "" : fmt::format("/{}", group); }

/// Reads numbers and signs off a word, left to right.
class Word {
 public:
  explicit Word(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool take(char letter) {
    if (at_ == end_ || *at_ != letter) return false;
    ++at_;
    return true;
  }

  template <class Number>
  bool number(Number& out) {
    const auto [next, error] = std::from_chars(at_, end_, out);
    if (error != std::errc{}) return false;
    at_ = next;
    return true;
  }

  bool signed_number(std::int32_t& out) {
    take('+');
    return number(out);
  }

  [[nodiscard]] bool done() const { return at_ == end_; }

 private:
  const char* at_;
  const char* end_;
};

bool read_place(Word& word, RecordedOp::Place& place) {
  place.from_end = word.take('e');
  if (!place.from_end && !word.take('s')) return false;
  if (!word.signed_number(place.offset) || !word.signed_number(place.step)) return false;
  if (!word.take(':')) return true;
  do {
    if (!word.number(place.outside.emplace_back())) return false;
  } while (word.take(','));
  return true;
}

bool read_free(Word& word, RecordedOp& op) {
  if (!word.number(op.what)) return false;
  if (word.take('/') && !word.number(op.group)) return false;
  return !word.take('@') || read_place(word, op.place);
}

bool read_word(const std::string& text, RecordedOp& op) {
  const std::size_t kind = kLetters.find(text[0]);
  if (kind == std::string_view::npos) return false;
  op.kind = static_cast<Kind>(kind);
  Word word(text);
  word.take(text[0]);
  bool ok = true;
  if (op.kind == Kind::free || op.kind == Kind::free_kept) ok = read_free(word, op);
  if (op.kind == Kind::loop) ok = word.number(op.what);
  return ok && word.done();
}

}  // namespace

std::string program_text(const RecordedSpec& spec) {
  std::string text;
  for (const RecordedOp& op : spec.program) {
    if (!text.empty()) text += ' ';
    text += kLetters[static_cast<std::size_t>(op.kind)];
    const bool is_numbered = op.kind == Kind::free || op.kind == Kind::free_kept || op.kind == Kind::loop;
    if (is_numbered) text += fmt::format("{}{}{}", op.what, group_text(op.group), place_text(op.place));
  }
  return text;
}

void read_program_text(const std::string& text, RecordedSpec& spec) {
  std::istringstream words{text};
  std::uint32_t allocated = 0;
  std::uint32_t made = 0;
  for (std::string word; words >> word;) {
    RecordedOp& op = spec.program.emplace_back();
    if (!read_word(word, op)) throw InputError("", '"' + word.substr(0, 40) + "\" is not an operation.");
    if (op.kind == Kind::ensure) op.what = made++;
    if (op.kind != Kind::allocate) continue;
    op.what = allocated++;
    if (op.what < spec.tensors.size()) op.group = spec.tensors[op.what].group;
  }
}

}  // namespace vramlab
