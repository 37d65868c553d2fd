// Writes Python pickles of protocol 4, opcode by opcode as Python's own pickler does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace vramlab {

/// Takes the bytes of a file piece by piece, in order. May throw to stop the writing.
using ByteSink = std::function<void(std::string_view)>;

/// The place of an object in a pickle's memo, by which it can be named again.
enum class MemoPlace : std::uint32_t {};

/// Containers are opened, filled and closed by the caller: begin_list(), then append batches as Python does.
/// Nothing but the current frame of 64 KiB is kept in memory.
class PickleWriter {
 public:
  explicit PickleWriter(ByteSink sink) : sink_(std::move(sink)) {}

  /// The head of the file. First of all calls.
  void begin();
  /// The end of the file. Last of all calls.
  void end();

  // --- Values. Before each a frame may end, as in Python. ---
  void integer(std::int64_t value);
  void real(double value);
  void boolean(bool value);
  /// A string, put in the memo. At most 2^32 - 1 bytes.
  MemoPlace text(std::string_view value);
  /// An object that was written before.
  void again(MemoPlace object);
  MemoPlace empty_list();
  MemoPlace empty_dict();

  // --- Container parts ---
  void mark() { put('('); }
  void append() { put('a'); }
  void appends() { put('e'); }
  void set_item() { put('s'); }
  void set_items() { put('u'); }
  /// A tuple of two: tuple_begins(), both values, tuple2().
  void tuple_begins() { value_begins(); }
  void tuple2();

  /// Items that one APPENDS or SETITEMS takes.
  static constexpr std::size_t kBatch = 1000;

 private:
  void value_begins();
  void put(char opcode) { frame_ += opcode; }
  void put_number(std::uint64_t value, int bytes);
  MemoPlace memoize();
  void flush_frame();

  ByteSink sink_;
  std::string frame_;
  std::uint32_t memo_ = 0;
};

}  // namespace vramlab
