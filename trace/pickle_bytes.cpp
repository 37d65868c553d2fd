#include "trace/pickle_bytes.hpp"

#include <algorithm>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

}  // namespace

bool looks_like_pickle(std::string_view data) {
  return data.size() >= 2 && static_cast<PickleOpcode>(data[0]) == PickleOpcode::proto;
}

void PickleBytes::fail(const std::string& what) const {
  throw InputError(name_, "byte " + std::to_string(opcode_offset_) + ": " + what);
}

void PickleBytes::end_too_early(std::uint64_t announced) const {
  fail("the file ends too early: " + std::to_string(announced) + " bytes are announced, " +
       std::to_string(data_.size() - position_) + " are left.");
}

// Makes the next `size` bytes lie in the piece; false if the file ends before.
bool PickleBytes::ensure(std::uint64_t size) {
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

std::string_view PickleBytes::take(std::uint64_t size) {
  if (size > data_.size() - position_ && !ensure(size)) end_too_early(size);
  const std::string_view taken = data_.substr(position_, size);
  position_ += size;
  return taken;
}

std::uint64_t PickleBytes::take_number(std::size_t size) {
  const std::string_view bytes = take(size);
  std::uint64_t number = 0;
  for (std::size_t i = size; i-- > 0;) number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
  return number;
}

void PickleBytes::read_protocol() {
  ensure(2);
  if (!looks_like_pickle(data_)) fail("is no pickle of protocol 2 to 5.");
  position_ = 1;
  const int protocol = take_byte();
  if (protocol < 2 || protocol > 5) {
    fail("is a pickle of protocol " + std::to_string(protocol) + "; 2 to 5 are read.");
  }
}

void PickleBytes::begin_frame(std::uint64_t size) {
  if (read_ == nullptr && size > data_.size() - position_) end_too_early(size);
  frame_end_ = std::max(frame_end_, offset() + size);
  if (frame_end_ < offset()) end_too_early(size);
}

void PickleBytes::check_frames() {
  if (frame_end_ > offset() && !ensure(frame_end_ - offset())) end_too_early(frame_end_ - offset());
}

}  // namespace vramlab
