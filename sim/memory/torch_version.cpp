#include "sim/memory/torch_version.hpp"

#include <charconv>
#include <optional>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

/// The number that `text` begins with, which is taken off.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<TorchVersion> read(std::string_view text) {
  const auto major = take_number(text);
  if (!major || !text.starts_with('.')) return {};
  text.remove_prefix(1);
  const auto minor = take_number(text);
  if (!minor || !(text.empty() || text.front() == '.' || text.front() == '+')) return {};
  return TorchVersion{*major, *minor};
}

}  // namespace

TorchVersion parse_torch_version(std::string_view text) {
  const auto version = read(text);
  if (!version || *version < kOldestTorch) {
    throw InputError("torch version", '"' + std::string(text) + "\" is not a version from " +
                                          to_text(kOldestTorch) + " on. Write it as 2.6 or 2.11.0.");
  }
  return *version;
}

std::string to_text(TorchVersion version) {
  return std::to_string(version.major) + '.' + std::to_string(version.minor);
}

}  // namespace vramlab
