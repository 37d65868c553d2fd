// What differs between versions of PyTorch, in one table (docs/allocator-rules.md, section 15).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
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
/// The newest version whose allocator was read as a whole. Of later ones only what the table says is known.
inline constexpr TorchVersion kNewestTorch{2, 12};

/// Reads "2.6", "2.6.0" or "2.11.0+cu130". Throws InputError for anything else and for versions before 2.1.
TorchVersion parse_torch_version(std::string_view text);

/// As it is written: "2.6".
std::string to_text(TorchVersion version);

/// A rule that not every version has.
enum class TorchRule : std::uint8_t {
  strict_separators,
  split_above_20,
  rounding_key,
  fraction_key,
  capture_reuse_key,
  large_segment_key,
  pinned_limit_keys,
  throw_on_oom_key,
  pinned_catch_key,
  reserve_keys,
  mem_pool,
  mem_pool_use_on_oom,
  mem_pool_no_split,
  rounding_follows_segment,
  hint_always,
  pools_in_entries,
  alloc_conf_name,
};

/// One row of the table.
struct VersionRule {
  TorchRule rule{};
  TorchVersion from = kOldestTorch;
  std::optional<TorchVersion> to{};  ///< the last version that has it; empty = the newest, too
  std::string_view says;
  std::string_view source;  ///< a recording, or where it was read
};

/// All of them, one for each TorchRule, in its order.
std::span<const VersionRule> version_rules();
const VersionRule& version_rule(TorchRule rule);

/// Whether `version` has the rule. One that is newer than all that are known has the newest rules.
bool has_rule(TorchVersion version, TorchRule rule);

/// What must be said of answers for `version`: empty up to kNewestTorch, and a sentence for a later one.
std::string newer_version_note(TorchVersion version);

}  // namespace vramlab
