#include "policies/contract/saved_state.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace vramlab {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw InputError("", "this is not the saved state of such a tuner: " + what +
                           ". Give the text that was saved, unchanged, to a tuner of the same kind.");
}

template <class Number>
Number parsed(std::string_view word) {
  Number value{};
  std::from_chars_result found{};
  if constexpr (std::is_floating_point_v<Number>) {
    found = std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::hex);
  } else {
    found = std::from_chars(word.data(), word.data() + word.size(), value);
  }
  if (word.empty()) refuse("it ends early");
  if (found.ec != std::errc{} || found.ptr != word.data() + word.size()) {
    refuse("\"" + std::string(word) + "\" is not a number that belongs there");
  }
  return value;
}

}  // namespace

void StateTextWriter::value(double number) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::hex).ptr;
  text_ += ' ';
  text_.append(text.data(), end);
}

StateTextReader::StateTextReader(std::string_view head, std::string_view text) : rest_(text) {
  const std::string_view found = word();
  if (found != head) refuse("it begins with \"" + std::string(found.substr(0, 40)) + "\"");
}

void StateTextReader::value(double& number) {
  number = parsed<double>(word());
  if (!std::isfinite(number)) refuse("a figure is not finite");
}

void StateTextReader::value(std::int64_t& number) { number = parsed<std::int64_t>(word()); }

void StateTextReader::value(std::uint64_t& number) { number = parsed<std::uint64_t>(word()); }

void StateTextReader::value(bool& flag) {
  const auto number = parsed<std::int64_t>(word());
  if (number != 0 && number != 1) refuse("a flag is neither 0 nor 1");
  flag = number == 1;
}

void StateTextReader::count(std::size_t& number, std::size_t most) {
  number = parsed<std::uint64_t>(word());
  if (number > most) refuse("a list is too long");
}

void StateTextReader::finish() const {
  if (rest_.find_first_not_of(" \n") != std::string_view::npos) refuse("text is left behind its end");
}

std::string_view StateTextReader::word() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
  const std::string_view found = rest_.substr(0, rest_.find_first_of(" \n"));
  rest_.remove_prefix(found.size());
  return found;
}

void require_state(std::span<const double> state, std::size_t expected) {
  if (state.size() == expected) return;
  throw InputError("", "the state to go on from has " + std::to_string(state.size()) + " numbers where " +
                           std::to_string(expected) + " are needed: it is that of another policy.");
}

}  // namespace vramlab
