// Which PyTorch the allocator is: its versions differ at the edges, the core is the same since 2.1 (section
// 15).
#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace vramlab {

/// A version of PyTorch, without the patch number. The default is the one the recordings come from.
struct TorchVersion {
  int major = 2;
  int minor = 11;

  friend auto operator<=>(const TorchVersion&, const TorchVersion&) = default;
};

inline constexpr TorchVersion kOldestTorch{2, 1};

/// Reads "2.6", "2.6.0" or "2.11.0+cu130". Throws InputError for anything else and for versions before 2.1.
TorchVersion parse_torch_version(std::string_view text);

/// As it is written: "2.6".
std::string to_text(TorchVersion version);

}  // namespace vramlab
