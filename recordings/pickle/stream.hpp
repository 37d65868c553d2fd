// A pickle as the reader meets it: opcodes and the bytes that follow them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

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

/// Why a reader of plain data refuses `opcode`: "opcode GLOBAL would import code; ...", or that there is no
/// such opcode.
std::string pickle_refusal(std::uint8_t opcode);

// The bytes of a pickle, at hand or as they come, with the offset that errors name.

/// Puts up to `size` bytes at a place and returns how many; fewer only at the end.
using ReadBytes = std::function<std::size_t(char* place, std::size_t size)>;

/// Whether `data` begins like a pickle of protocol 2 or later.
bool looks_like_pickle(std::string_view data);

/// Hands out a pickle's bytes from the first to the last. All errors are InputErrors with the offset of the
/// opcode at hand.
class PickleBytes {
 public:
  /// Everything is at hand; `data` and `name`, which stands for the file in errors, must outlive this.
  PickleBytes(std::string_view data, const std::string& name) : data_(data), name_(name) {}
  /// Bytes come piece by piece; what was taken is only good until the next call.
  PickleBytes(const ReadBytes& read, const std::string& name) : name_(name), read_(&read) {}

  /// The first opcode and the protocol, which must be 2 to 5.
  void read_protocol();

  PickleOpcode take_opcode() {
    opcode_offset_ = offset();
    return static_cast<PickleOpcode>(take_byte());
  }
  std::uint8_t take_byte() {
    if (position_ == data_.size() && !ensure(1)) end_too_early(1);
    return static_cast<std::uint8_t>(data_[position_++]);
  }
  std::string_view take(std::uint64_t size);
  /// Little-endian, as everything but floating-point numbers.
  std::uint64_t take_number(std::size_t size);

  /// A frame says nothing but how many bytes follow at least. Where the end is not known yet, a frame that is
  /// too long shows at the end.
  void begin_frame(std::uint64_t size);
  void check_frames();

  [[noreturn]] void fail(const std::string& what) const;

 private:
  bool ensure(std::uint64_t size);
  [[nodiscard]] std::size_t offset() const { return before_ + position_; }
  [[noreturn]] void end_too_early(std::uint64_t announced) const;

  std::string_view data_;  ///< everything, or the piece at hand
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t before_ = 0;  ///< bytes before the piece
  std::size_t opcode_offset_ = 0;
  const ReadBytes* read_ = nullptr;  ///< none when everything is at hand
  std::vector<char> piece_;
  std::uint64_t frame_end_ = 0;
};

}  // namespace vramlab
