#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "recordings/pickle/pickle.hpp"

namespace vramlab {
namespace {

/// The opcodes that plain data needs. Values are those of the format.
enum class PickleOpcode : std::uint8_t {
  proto = 0x80,
  frame = 0x95,
  stop = '.',
  mark = '(',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  bin_int = 'J',
  bin_int1 = 'K',
  bin_int2 = 'M',
  long1 = 0x8A,
  long4 = 0x8B,
  bin_float = 'G',
  short_bin_unicode = 0x8C,
  bin_unicode = 'X',
  bin_unicode8 = 0x8D,
  short_bin_string = 'U',
  bin_string = 'T',
  empty_list = ']',
  empty_dict = '}',
  empty_tuple = ')',
  list = 'l',
  dict = 'd',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  append = 'a',
  appends = 'e',
  set_item = 's',
  set_items = 'u',
  memoize = 0x94,
  bin_put = 'q',
  long_bin_put = 'r',
  bin_get = 'h',
  long_bin_get = 'j',
};

struct Refused {
  std::uint8_t opcode;
  const char* name;
  const char* reason;
};

constexpr const char* kImports = "would import code";
constexpr const char* kCalls = "would call code";
constexpr const char* kRefers = "refers to an object outside the file";
constexpr const char* kOldText = "belongs to the text form of protocols 0 and 1";
constexpr const char* kNoPlainData = "holds data of a kind that is not read";

constexpr std::array kRefused{
    Refused{'c', "GLOBAL", kImports},
    Refused{0x93, "STACK_GLOBAL", kImports},
    Refused{0x82, "EXT1", kImports},
    Refused{0x83, "EXT2", kImports},
    Refused{0x84, "EXT4", kImports},
    Refused{'R', "REDUCE", kCalls},
    Refused{'b', "BUILD", kCalls},
    Refused{'i', "INST", kCalls},
    Refused{'o', "OBJ", kCalls},
    Refused{0x81, "NEWOBJ", kCalls},
    Refused{0x92, "NEWOBJ_EX", kCalls},
    Refused{'P', "PERSID", kRefers},
    Refused{'Q', "BINPERSID", kRefers},
    Refused{0x97, "NEXT_BUFFER", kRefers},
    Refused{0x98, "READONLY_BUFFER", kRefers},
    Refused{'I', "INT", kOldText},
    Refused{'L', "LONG", kOldText},
    Refused{'F', "FLOAT", kOldText},
    Refused{'S', "STRING", kOldText},
    Refused{'V', "UNICODE", kOldText},
    Refused{'p', "PUT", kOldText},
    Refused{'g', "GET", kOldText},
    Refused{'B', "BINBYTES", kNoPlainData},
    Refused{'C', "SHORT_BINBYTES", kNoPlainData},
    Refused{0x8E, "BINBYTES8", kNoPlainData},
    Refused{0x96, "BYTEARRAY8", kNoPlainData},
    Refused{0x8F, "EMPTY_SET", kNoPlainData},
    Refused{0x90, "ADDITEMS", kNoPlainData},
    Refused{0x91, "FROZENSET", kNoPlainData},
};

/// Why a reader of plain data refuses `opcode`: "opcode GLOBAL would import code; ...", or that there is no
/// such opcode.
std::string refusal(PickleOpcode opcode) {
  const auto code = static_cast<std::uint8_t>(opcode);
  for (const Refused& refused : kRefused) {
    if (refused.opcode != code) continue;
    return std::string("opcode ") + refused.name + ' ' + refused.reason +
           "; snapshots never need it. The file was not read.";
  }
  std::array<char, 8> shown{};
  std::snprintf(shown.data(), shown.size(), "0x%02x", code);
  return std::string(shown.data()) + " is not an opcode: the file is damaged or not a pickle.";
}

// `number` is what stands above these bytes.
std::uint64_t little_endian(std::string_view bytes, std::uint64_t number = 0) {
  for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Hands out a pickle's bytes from the first to the last, at hand or as they come. All errors are InputErrors
/// with the offset of the opcode at hand.
class PickleBytes {
 public:
  /// Everything is at hand; `data` and `name`, which stands for the file in errors, must outlive this.
  PickleBytes(std::string_view data, const std::string& name) : data_(data), name_(name) {}
  /// Bytes come piece by piece; what was taken is only good until the next call.
  PickleBytes(const ReadBytes& read, const std::string& name) : name_(name), read_(&read) {}

  /// The first opcode and the protocol, which must be 2 to 5.
  void read_protocol() {
    ensure(2);
    if (data_.empty()) throw InputError(name_, "is empty; a pickle of protocol 2 to 5 is expected.");
    if (!looks_like_pickle(data_)) fail("is not a pickle of protocol 2 to 5.");
    position_ = 1;
    const int protocol = take_byte();
    if (protocol < 2 || protocol > 5) {
      fail("is a pickle of protocol " + std::to_string(protocol) + "; 2 to 5 are read.");
    }
  }

  PickleOpcode take_opcode() {
    opcode_offset_ = offset();
    return static_cast<PickleOpcode>(take_byte());
  }

  std::uint8_t take_byte() {
    if (position_ == data_.size() && !ensure(1)) end_too_early(1);
    return static_cast<std::uint8_t>(data_[position_++]);
  }

  std::string_view take(std::uint64_t size) {
    if (size > data_.size() - position_ && !ensure(size)) end_too_early(size);
    const std::string_view taken = data_.substr(position_, size);
    position_ += size;
    return taken;
  }

  /// Little-endian, as everything but floating-point numbers.
  std::uint64_t take_number(std::size_t size) { return little_endian(take(size)); }

  /// A frame says nothing but how many bytes follow at least. Where the end is not known yet, a frame that is
  /// too long shows at the end.
  void begin_frame(std::uint64_t size) {
    if (read_ == nullptr && size > data_.size() - position_) end_too_early(size);
    frame_end_ = std::max(frame_end_, offset() + size);
    if (frame_end_ < offset()) end_too_early(size);
  }

  void check_frames() {
    if (frame_end_ > offset() && !ensure(frame_end_ - offset())) end_too_early(frame_end_ - offset());
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(name_, "byte " + std::to_string(opcode_offset_) + ": " + what);
  }

 private:
  [[nodiscard]] std::size_t offset() const { return before_ + position_; }

  // Makes the next `size` bytes lie in the piece; false if the file ends before.
  bool ensure(std::uint64_t size) {
    if (size <= data_.size() - position_) return true;
    if (read_ == nullptr) return false;
    std::size_t kept = data_.size() - position_;
    std::copy_n(data_.data() + position_, kept, piece_.data());
    before_ += position_;
    position_ = 0;
    bool ended = false;
    while (kept < size && !ended) {  // an announced size is not believed: the room grows with what comes
      if (piece_.size() < kept + kPiece / 2) piece_.resize(std::max(kPiece, 2 * piece_.size()));
      const std::size_t wanted = piece_.size() - kept;
      const std::size_t got = (*read_)(piece_.data() + kept, wanted);
      kept += got;
      ended = got < wanted;
    }
    data_ = {piece_.data(), kept};
    return kept >= size;
  }

  [[noreturn]] void end_too_early(std::uint64_t announced) const {
    fail("the file ends too early: " + std::to_string(announced) + " bytes are announced, " +
         std::to_string(data_.size() - position_) + " are left.");
  }

  std::string_view data_;  ///< everything, or the piece at hand
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t before_ = 0;  ///< bytes before the piece
  std::size_t opcode_offset_ = 0;
  const ReadBytes* read_ = nullptr;  ///< none when everything is at hand
  std::vector<char> piece_;
  std::uint64_t frame_end_ = 0;
};

using Kind = PickleValue::Kind;

constexpr std::size_t kMostValuesAtOnce = std::size_t{1} << 26;  // on the stack
constexpr std::size_t kMostMarks = 1000;
// Elements are taken out of a list when this many lie on the stack.
constexpr std::size_t kTaken = 1000;
// Notes of containers: 0, or the memo number that names it plus one, or that more than one thing may refer to
// it.
constexpr std::uint32_t kShared = 0xFFFF'FFFF;
// A writer numbers what it remembers one by one; numbers left out, of the whole file, only cost memory.
constexpr std::size_t kMemoGap = 1 << 16;

/// A pickle is a program that builds its values on a stack; this is one run of it.
class PickleRun {
 public:
  PickleRun(PickleBytes bytes, PickleDocument& document, PickleListTaker* taker)
      : bytes_(std::move(bytes)), document_(document), taker_(taker) {}

  void run() {
    bytes_.read_protocol();
    while (true) {
      const PickleOpcode opcode = bytes_.take_opcode();
      if (opcode == PickleOpcode::stop) break;
      step(opcode);
    }
    if (stack_.size() != 1 || !marks_.empty()) {
      fail("the pickle ends with " + std::to_string(stack_.size()) + " values instead of one.");
    }
    bytes_.check_frames();
    document_.set_root(stack_.back());
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { bytes_.fail(what); }

  void step(PickleOpcode opcode) {
    switch (opcode) {
      using enum PickleOpcode;
      case proto:
        fail("a second pickle begins inside the first.");
      case frame:
        return bytes_.begin_frame(bytes_.take_number(8));
      case stop:
        return;

      case none:
        return push(PickleDocument::none());
      case new_true:
        return push(PickleDocument::boolean(true));
      case new_false:
        return push(PickleDocument::boolean(false));
      case bin_int:
        return push_integer(static_cast<std::int32_t>(bytes_.take_number(4)));
      case bin_int1:
        return push_integer(bytes_.take_byte());
      case bin_int2:
        return push_integer(static_cast<std::int64_t>(bytes_.take_number(2)));
      case long1:
        return push_long(bytes_.take_byte());
      case long4:
        return push_long(bytes_.take_number(4));
      case bin_float:
        return push_real();

      case short_bin_unicode:
      case short_bin_string:
        return push_text(bytes_.take_byte());
      case bin_unicode:
      case bin_string:
        return push_text(bytes_.take_number(4));
      case bin_unicode8:
        return push_text(bytes_.take_number(8));

      case mark:
        return push_mark();
      case pop:
        return pop_or_unmark();
      case pop_mark:
        return stack_.resize(take_mark());
      case dup:
        note_shared(top());
        return push(top());

      case empty_list:
        return push(new_container(Kind::list));
      case empty_dict:
        if (taker_ != nullptr) take_early();
        return push(new_container(Kind::dict));
      case empty_tuple:
        return push(new_container(Kind::tuple));
      case list:
        return replace_by(Kind::list, take_mark());
      case dict:
        return replace_by(Kind::dict, take_mark());
      case tuple:
        return replace_by(Kind::tuple, take_mark());
      case tuple1:
        return replace_by(Kind::tuple, above(1));
      case tuple2:
        return replace_by(Kind::tuple, above(2));
      case tuple3:
        return replace_by(Kind::tuple, above(3));
      case append:
        return append_from(above(1), Kind::list);
      case appends:
        return append_from(take_mark(), Kind::list);
      case set_item:
        return append_from(above(2), Kind::dict);
      case set_items:
        return append_from(take_mark(), Kind::dict);

      case memoize:
        return remember(memo_.size());
      case bin_put:
        return remember(bytes_.take_byte());
      case long_bin_put:
        return remember(bytes_.take_number(4));
      case bin_get:
        return recall(bytes_.take_byte());
      case long_bin_get:
        return recall(bytes_.take_number(4));
    }
    fail(refusal(opcode));
  }

  // --- Numbers and texts ---

  void push_integer(std::int64_t number) { push(document_.new_integer(number)); }

  // Two's complement of any length, the shortest that holds the number. A number of 64 bits without a sign,
  // as C++ writes them for line -1, is taken as the signed one of the same bits.
  void push_long(std::uint64_t size) {
    std::string_view bytes = bytes_.take(size);
    if (size == sizeof(std::uint64_t) + 1 && bytes.back() == 0) {
      bytes.remove_suffix(1);
      return push_integer(static_cast<std::int64_t>(little_endian(bytes, 0)));
    }
    if (size > sizeof(std::uint64_t)) return push(PickleDocument::huge());
    const bool is_negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    push_integer(static_cast<std::int64_t>(little_endian(bytes, is_negative ? ~std::uint64_t{0} : 0)));
  }

  // The only big-endian number of the format.
  void push_real() {
    std::uint64_t bits = 0;
    for (const char byte : bytes_.take(sizeof bits)) bits = bits << 8 | static_cast<std::uint8_t>(byte);
    push(document_.new_real(std::bit_cast<double>(bits)));
  }

  void push_text(std::uint64_t size) {
    if (document_.text_count() == PickleDocument::kMostHandles - 1) fail("has too many texts.");
    push(document_.new_text(bytes_.take(size)));
  }

  // --- The stack ---

  void push(PickleValue value) {
    if (stack_.size() == kMostValuesAtOnce) fail("puts too many values side by side.");
    stack_.push_back(value);
  }

  [[nodiscard]] PickleValue top() const { return stack_[above(1)]; }

  // Where the topmost `count` values begin. They must lie above the last mark.
  [[nodiscard]] std::size_t above(std::size_t count) const {
    const std::size_t fence = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() - fence < count) fail("a value is used that is not there.");
    return stack_.size() - count;
  }

  void push_mark() {
    if (marks_.size() == kMostMarks) fail("is nested too deeply.");
    marks_.push_back(stack_.size());
  }

  std::size_t take_mark() {
    if (marks_.empty()) fail("a mark is used that is not there.");
    const std::size_t height = marks_.back();
    marks_.pop_back();
    return height;
  }

  // POP takes a mark away, too.
  void pop_or_unmark() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();
    } else {
      stack_.resize(above(1));
    }
  }

  // --- Containers ---

  PickleValue new_container(Kind kind) {
    if (document_.container_count() == PickleDocument::kMostHandles) fail("has too many containers.");
    return document_.new_container(kind);
  }

  void fill(PickleValue container, std::size_t first) {
    const std::span values(stack_.data() + first, stack_.size() - first);
    if (container.kind() == Kind::dict && values.size() % 2 != 0) fail("a key of a dict lacks its value.");
    if (document_.items(container).size() + values.size() > PickleDocument::kMostHandles) {
      fail("a container has too many values.");
    }
    document_.append(container, values);
    stack_.resize(first);
  }

  void replace_by(Kind kind, std::size_t first) {
    const PickleValue container = new_container(kind);
    fill(container, first);
    push(container);
  }

  // The container lies right below what is appended to it.
  void append_from(std::size_t first, Kind kind) {
    const std::size_t fence = marks_.empty() ? 0 : marks_.back();
    if (first == fence || stack_[first - 1].kind() != kind) {
      fail(kind == Kind::list ? "something is appended to what is not a list."
                              : "a key is set in what is not a dict.");
    }
    std::size_t place = 0;
    if (taker_ != nullptr && kind == Kind::list && is_wanted(first - 1, marks_.size(), place)) {
      return give_to_taker(first - 1, place);
    }
    fill(stack_[first - 1], first);
  }

  // --- Lists that are taken ---

  // Whether the list at this height of the stack will be an element of the list at the wanted key of the
  // root. `marks` of the marks lie below it. Beside the list may lie others of the same list, after a mark;
  // and beside the key others of the root.
  [[nodiscard]] bool is_wanted(std::size_t list, std::size_t marks, std::size_t& place) const {
    if (list < 3 || stack_[list].kind() != Kind::list || stack_[0].kind() != Kind::dict) return false;
    std::size_t outer = list - 1;
    if (marks > 0 && marks_[marks - 1] > 1) outer = marks_[--marks] - 1;
    if (outer < 2 || outer >= list || stack_[outer].kind() != Kind::list) return false;
    const auto key = document_.text(stack_[outer - 1]);
    if (!key || *key != taker_->key()) return false;
    const std::size_t root_mark = marks > 0 ? marks_[marks - 1] : 1;
    if (marks > 1 || root_mark != 1 || (outer - 1 - root_mark) % 2 != 0) return false;
    place = document_.items(stack_[outer]).size() + (list - outer - 1);
    return true;
  }

  // Some writers close a list only when all its elements lie on the stack (R11.10).
  void take_early() {
    if (marks_.empty() || stack_.size() - marks_.back() < kTaken || marks_.back() == 0) return;
    const std::size_t list = marks_.back() - 1;
    std::size_t place = 0;
    if (is_wanted(list, marks_.size() - 1, place)) give_to_taker(list, place);
  }

  void give_to_taker(std::size_t list, std::size_t place) {
    const std::span<const PickleValue> elements(stack_.data() + list + 1, stack_.size() - list - 1);
    taker_->take(stack_[list], place, elements);
    for (const PickleValue element : elements) {
      if (element.kind() != Kind::dict) continue;
      const std::uint32_t note = document_.note_of(element);
      if (note == kShared) continue;
      if (note != 0 && memo_.at(note - 1) == element) memo_.set(note - 1, PickleDocument::absent());
      document_.recycle(element);
    }
    stack_.resize(list + 1);
  }

  // --- The memo ---

  void remember(std::uint64_t number) {
    if (!memo_.has_room()) fail("remembers too much.");
    if (number >= memo_.size()) {
      memo_gaps_ += number - memo_.size();
      if (memo_gaps_ > kMemoGap) fail("memo number " + std::to_string(number) + " is out of range.");
      memo_.grow(number + 1);
    }
    const PickleValue value = top();
    if (value.is_container()) {
      std::uint32_t& note = document_.note_of(value);
      note = note == 0 && number < kShared - 1 ? static_cast<std::uint32_t>(number + 1) : kShared;
    }
    memo_.set(number, value);
  }

  void recall(std::uint64_t number) {
    const PickleValue value = number < memo_.size() ? memo_.at(number) : PickleDocument::absent();
    if (value == PickleDocument::absent()) {
      fail("memo number " + std::to_string(number) + " is used and was never set.");
    }
    note_shared(value);
    push(value);
  }

  void note_shared(PickleValue value) {
    if (value.is_container()) document_.note_of(value) = kShared;
  }

  PickleBytes bytes_;
  PickleDocument& document_;
  PickleListTaker* taker_;
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;  ///< heights of the stack
  PickleMemo memo_;
  std::uint64_t memo_gaps_ = 0;  ///< numbers that were left out
};

}  // namespace

bool looks_like_pickle(std::string_view data) {
  return data.size() >= 2 && static_cast<PickleOpcode>(data[0]) == PickleOpcode::proto;
}

PickleDocument read_pickle(std::string_view data, const std::string& name) {
  PickleDocument document;
  PickleRun({data, name}, document, nullptr).run();
  check_pickle_shape(document, name);
  return document;
}

void read_pickle(std::string_view data, const std::string& name, PickleDocument& document,
                 PickleListTaker& taker) {
  PickleRun({data, name}, document, &taker).run();
  check_pickle_shape(document, name);
}

void read_pickle(const ReadBytes& read, const std::string& name, PickleDocument& document,
                 PickleListTaker& taker) {
  PickleRun({read, name}, document, &taker).run();
  check_pickle_shape(document, name);
}

}  // namespace vramlab
