// The opcodes of Python pickles, by the names that Python gives them.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace vramlab
