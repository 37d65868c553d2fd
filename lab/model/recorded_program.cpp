#include <charconv>

#include <fmt/format.h>

#include "lab/model/recorded.hpp"

namespace vramlab {
namespace {

using Kind = RecordedOp::Kind;

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

}  // namespace

std::vector<std::string> program_words(const RecordedSpec& spec) {
  std::vector<std::string> words;
  for (const RecordedOp& op : spec.program) {
    switch (op.kind) {
      case Kind::allocate:
        words.emplace_back("a");
        break;
      case Kind::free:
        words.push_back(fmt::format("f{}{}{}", op.what, group_text(op.group), place_text(op.place)));
        break;
      case Kind::free_kept:
        words.push_back(fmt::format("k{}{}", op.what, group_text(op.group)));
        break;
      case Kind::ensure:
        words.emplace_back("m");
        break;
      case Kind::loop:
        words.push_back(fmt::format("l{}", op.what));
        break;
      case Kind::end:
        words.emplace_back("x");
        break;
    }
  }
  return words;
}

std::optional<RecordedOp> read_program_word(const std::string& text,
                                            const std::vector<RecordedTensor>& tensors,
                                            std::uint32_t& allocated, std::uint32_t& made) {
  if (text.empty()) return std::nullopt;
  Word word(text);
  RecordedOp op;
  bool ok = true;
  if (word.take('a')) {
    op.kind = Kind::allocate;
    op.what = allocated++;
    if (op.what < tensors.size()) op.group = tensors[op.what].group;
  } else if (word.take('f')) {
    op.kind = Kind::free;
    ok = read_free(word, op);
  } else if (word.take('k')) {
    op.kind = Kind::free_kept;
    ok = read_free(word, op);
  } else if (word.take('m')) {
    op.kind = Kind::ensure;
    op.what = made++;
  } else if (word.take('l')) {
    op.kind = Kind::loop;
    ok = word.number(op.what);
  } else if (word.take('x')) {
    op.kind = Kind::end;
  } else {
    return std::nullopt;
  }
  return ok && word.done() ? std::optional(op) : std::nullopt;
}

}  // namespace vramlab
