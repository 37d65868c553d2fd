// A tuner's state as text and back, exactly: every class names its members once, in `visit`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vramlab {

/// Writes what it visits.
class StateTextWriter {
 public:
  explicit StateTextWriter(std::string_view head) : text_(head) {}

  void operator()(const double& value);
  void operator()(const std::int64_t& value);
  void operator()(const std::uint64_t& value);
  void operator()(const bool& value) { (*this)(std::int64_t{value}); }
  void count(const std::size_t& value, std::size_t /*most*/) { (*this)(std::uint64_t{value}); }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Reads what it visits from a text that a StateTextWriter wrote. Every call throws InputError where the text
/// does not have what is wanted: it is damaged, or that of another kind of tuner.
class StateTextReader {
 public:
  StateTextReader(std::string_view head, std::string_view text);

  void operator()(double& value);  ///< finite
  void operator()(std::int64_t& value);
  void operator()(std::uint64_t& value);
  void operator()(bool& value);
  void count(std::size_t& value, std::size_t most);

  /// Call when everything was visited: throws InputError if text is left.
  void finish() const;

 private:
  std::string_view word();

  std::string_view rest_;
};

}  // namespace vramlab
