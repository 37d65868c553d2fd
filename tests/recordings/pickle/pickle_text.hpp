// Pickles put together by hand, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramlab::pickle_text {

/// The bytes of a literal, with its zeros.
template <std::size_t n>
std::string raw(const char (&bytes)[n]) {
  return std::string(bytes, n - 1);
}

/// `body` as a whole pickle.
inline std::string whole(const std::string& body, int protocol = 4) {
  return std::string{'\x80', static_cast<char>(protocol)} + body + '.';
}

/// A number of `size` bytes, little-endian.
inline std::string number(std::uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xFF);
  return bytes;
}

/// A short text, as Python writes it.
inline std::string text(std::string_view content) {
  return raw("\x8c") + static_cast<char>(content.size()) + std::string(content);
}

/// An integer of up to 64 bits.
inline std::string integer(std::int64_t value) {
  return raw("\x8a\x08") + number(static_cast<std::uint64_t>(value), 8);
}

inline std::string dict(const std::string& keys_and_values) { return "}(" + keys_and_values + 'u'; }
inline std::string list(const std::string& values) { return "](" + values + 'e'; }

}  // namespace vramlab::pickle_text
