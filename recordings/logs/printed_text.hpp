// Text as programs print it and as logs keep it: sizes, words, and what a terminal does not show.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace vramlab {

/// A size as a message prints it, with the range of sizes that are printed so: "79.18 GiB" has two decimals,
/// so it stands for 79.175 to 79.185 GiB. A number of bytes is exact. MB and GB are read as MiB and GiB,
/// which is what the versions that wrote them meant.
struct PrintedSize {
  Bytes bytes = 0;  ///< the printed value itself
  Bytes low = 0;
  Bytes high = 0;
  std::string text;
};

/// "8.00 GiB" at the beginning of `text`; empty for anything else. XLA's "2.99G" counts if something follows.
std::optional<PrintedSize> parse_printed_size(std::string_view text);

/// The size that follows the first `anchor`.
std::optional<PrintedSize> size_after(std::string_view text, std::string_view anchor);

/// The size, number and unit, that stands in front of the first `anchor`.
std::optional<PrintedSize> size_before(std::string_view text, std::string_view anchor);

/// The whole number that follows the first `anchor`.
std::optional<std::uint64_t> number_after(std::string_view text, std::string_view anchor);

/// The whole number that `text` begins with, which is taken off.
std::optional<std::uint64_t> take_number(std::string_view& text);

/// Where `words` stand as whole words ("MemoryError" is not in "OutOfMemoryError"); npos if nowhere.
std::size_t find_words(std::string_view text, std::string_view words, std::size_t from = 0);

/// Blanks and line ends (also as the two characters that JSON logs write) as one blank each; what a terminal
/// obeys or has overwritten is left out.
std::string one_line(std::string_view text);

}  // namespace vramlab
