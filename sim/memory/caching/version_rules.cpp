#include "sim/memory/caching/version_rules.hpp"

#include <array>
#include <charconv>

#include "core/error.hpp"

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

constexpr std::string_view kKeysRead = "c10/cuda/CUDAAllocatorConfig.h";

// Versions are those of the release behind the change; a source without a recording was read, not recorded.
constexpr std::array kRules{
    VersionRule{TorchRule::strict_separators, kOldestTorch, TorchVersion{2, 8},
                "a wrong token in the place of a separator is refused", "c10/cuda/CUDAAllocatorConfig.cpp"},
    VersionRule{TorchRule::split_above_20, kOldestTorch, TorchVersion{2, 8},
                "`max_split_size_mb` must be above 20; later 20 itself is allowed", kKeysRead},
    VersionRule{TorchRule::rounding_key,
                {2, 6},
                {},
                "`max_non_split_rounding_mb`",
                "PR 136174; recorded with 2.11: bigsplit_1"},
    VersionRule{TorchRule::fraction_key,
                {2, 10},
                {},
                "`per_process_memory_fraction`",
                "c10/cuda/CUDAAllocatorConfig.h; recorded with 2.11: split32_1"},
    VersionRule{TorchRule::capture_reuse_key, {2, 10}, {}, "`graph_capture_record_stream_reuse`", kKeysRead},
    VersionRule{TorchRule::large_segment_key,
                {2, 11},
                {},
                "`large_segment_size_mb`",
                "PR 172056; recorded with 2.11: largeseg_1"},
    VersionRule{TorchRule::pinned_limit_keys,
                {2, 11},
                {},
                "`pinned_max_round_size_mb`, `pinned_max_cached_size_mb`",
                kKeysRead},
    VersionRule{TorchRule::throw_on_oom_key,
                {2, 12},
                {},
                "`throw_on_cudamalloc_oom`, and the counter `num_oom_rejections`",
                "PR 179473"},
    VersionRule{TorchRule::pinned_catch_key, {2, 12}, {}, "`pinned_free_catch_all`", "PR 178154"},
    VersionRule{TorchRule::reserve_keys,
                {2, 14},
                {},
                "`expandable_segments_reserve`, `expandable_segments_reserve_by_class`",
                "PR 192269; CUDACachingAllocatorReserveTest.cpp"},
    VersionRule{TorchRule::mem_pool, {2, 5}, {}, "MemPool", "recorded with 2.11: pools_1"},
    VersionRule{TorchRule::mem_pool_use_on_oom,
                {2, 9},
                {},
                "MemPool(use_on_oom=True)",
                "recorded with 2.11: pools_1"},
    VersionRule{
        TorchRule::mem_pool_no_split, {2, 10}, {}, "MemPool(no_split=True)", "recorded with 2.11: pools_1"},
    VersionRule{TorchRule::rounding_follows_segment,
                {2, 11},
                {},
                "every settings string sets `max_non_split_rounding_mb` back to the large segment size",
                "PR 172056; recorded with 2.11: pools_1"},
    VersionRule{TorchRule::hint_always, kOldestTorch, TorchVersion{2, 11},
                "the message advises expandable segments though they are on",
                "PR 173051; recorded with 2.11: expand_1"},
    VersionRule{TorchRule::pools_in_entries,
                {2, 12},
                {},
                "entries of a history name their pool",
                "torch/csrc/cuda/memory_snapshot.cpp"},
    VersionRule{TorchRule::alloc_conf_name,
                {2, 9},
                {},
                "the settings string is also read from `PYTORCH_ALLOC_CONF`",
                kKeysRead},
};

consteval bool in_order() {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (static_cast<std::size_t>(kRules[i].rule) != i) return false;
  }
  return true;
}
static_assert(in_order());

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

std::span<const VersionRule> version_rules() { return kRules; }

const VersionRule& version_rule(TorchRule rule) { return kRules[static_cast<std::size_t>(rule)]; }

bool has_rule(TorchVersion version, TorchRule rule) {
  const VersionRule& row = version_rule(rule);
  return version >= row.from && (!row.to || version <= *row.to);
}

std::string newer_version_note(TorchVersion version) {
  if (version <= kNewestTorch) return {};
  return "torch " + to_text(version) +
         " is newer than the allocator's rules here, which are known as far as " + to_text(kNewestTorch) +
         " (and the few later ones of docs/allocator-rules.md). The newest known rules hold.";
}

}  // namespace vramlab
