#include <bit>

#include "recordings/pickle/pickle.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kFrame = 64 * 1024;  // a frame that has reached this ends before the next value
constexpr std::size_t kSmallestFrame = 4;  // Python writes shorter ones without a FRAME opcode

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// Bytes of the shortest two's complement form.
int length_of(std::int64_t value) {
  int bytes = 1;
  while (bytes < 8 && (value >> (8 * bytes - 1)) != (value < 0 ? -1 : 0)) ++bytes;
  return bytes;
}

}  // namespace

void PickleWriter::begin() { sink_(std::string_view{"\x80\x04", 2}); }

void PickleWriter::end() {
  put('.');
  flush_frame();
}

void PickleWriter::integer(std::int64_t value) {
  value_begins();
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value <= 0xFF) return put('K', bits, 1);
  if (value >= 0 && value <= 0xFFFF) return put('M', bits, 2);
  if (value >= INT32_MIN && value <= INT32_MAX) return put('J', bits, 4);
  const int bytes = length_of(value);
  put('\x8a', static_cast<std::uint64_t>(bytes), 1);
  frame_ += little_endian(bits, bytes);
}

void PickleWriter::real(double value) {
  value_begins();
  put('G');
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) put(static_cast<char>(bits >> (8 * i)));
}

void PickleWriter::boolean(bool value) {
  value_begins();
  put(value ? '\x88' : '\x89');
}

MemoPlace PickleWriter::text(std::string_view value) {
  value_begins();
  value.size() < 256 ? put('\x8c', value.size(), 1) : put('X', value.size(), 4);
  frame_ += value;
  return memoize();
}

void PickleWriter::again(MemoPlace object) {
  value_begins();
  const auto place = static_cast<std::uint32_t>(object);
  place < 256 ? put('h', place, 1) : put('j', place, 4);
}

MemoPlace PickleWriter::empty(char opcode) {
  value_begins();
  put(opcode);
  return memoize();
}

void PickleWriter::tuple2() {
  put('\x86');
  memoize();
}

void PickleWriter::value_begins() {
  if (frame_.size() >= kFrame) flush_frame();
}

void PickleWriter::put(char opcode, std::uint64_t number, int bytes) {
  put(opcode);
  frame_ += little_endian(number, bytes);
}

MemoPlace PickleWriter::memoize() {
  put('\x94');
  return MemoPlace{memo_++};
}

void PickleWriter::flush_frame() {
  if (frame_.size() >= kSmallestFrame) {
    sink_('\x95' + little_endian(frame_.size(), 8));
  }
  sink_(frame_);
  frame_.clear();
}

}  // namespace vramlab
