// The settings of PyTorch's caching allocator, and the reader of PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF)
// strings.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/caching/version_rules.hpp"

namespace vramlab {

/// "No limit" for sizes: max_split_size when the option is not given (R2.5).
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

enum class AllocatorBackend : std::uint8_t { native, cuda_malloc_async };

/// How large a range an expandable segment reserves: a share of the card, or bytes
/// (`expandable_segments_reserve`).
struct SegmentReserve {
  bool is_share = true;
  double value = 0;  ///< above 0; in GiB if it is no share

  /// Of a card of `total` bytes, at most 9/8 of it: what a segment reserves without the setting.
  [[nodiscard]] Bytes of(Bytes total) const;

  friend bool operator==(const SegmentReserve&, const SegmentReserve&) = default;
};

/// Parsed allocator settings; the defaults are those of an empty string (R9.5).
struct AllocatorSettings {
  AllocatorBackend backend = AllocatorBackend::native;
  Bytes max_split_size = kUnlimited;      ///< M: blocks of at least this size are never split
  Bytes max_non_split_rounding = 20_MiB;  ///< Q: how much larger an oversize block may be than its request
  Bytes large_segment_size = 20_MiB;      ///< segments for requests between 1 and 10 MiB
  std::array<std::uint64_t, 16> roundup_power2_divisions{};  ///< D[0..15] by size class (R1.4); 0 = off
  double garbage_collection_threshold = 0;                   ///< share of the limit, in (0, 1); 0 = off
  bool expandable_segments = false;
  double per_process_memory_fraction = 1.0;  ///< share of the device in [0, 1]; 1 = no limit (R9.1)

  bool graph_capture_record_stream_reuse = false;  ///< frees that wait may end inside a capture (R3.9)
  /// What would go above the configured memory fraction is rejected at once, where the limit in force allows
  /// it (from torch 2.12 on).
  bool throw_on_cudamalloc_oom = false;
  std::optional<SegmentReserve> expandable_segments_reserve;  ///< empty = 9/8 of the card
  /// The same by class of stream. Classes are given to streams by calls from C++ that no recording tells of,
  /// so here no stream has one.
  std::vector<std::pair<std::string, SegmentReserve>> expandable_segments_reserve_by_class;

  // Read and kept, without effect on which block a request gets.
  bool release_lock_on_cudamalloc = false;
  bool pinned_use_cuda_host_register = false;
  std::uint64_t pinned_num_register_threads = 1;
  bool pinned_use_background_threads = false;
  std::uint64_t pinned_reserve_segment_size_mb = 0;
  std::uint64_t pinned_max_round_size_mb = 0;
  std::uint64_t pinned_max_cached_size_mb = 0;
  bool pinned_free_catch_all = false;

  TorchVersion torch;  ///< whose keys, ranges and rules these are
  std::string text;    ///< the string these settings were read from last

  friend bool operator==(const AllocatorSettings&, const AllocatorSettings&) = default;
};

/// Reads a settings string such as "max_split_size_mb:128,garbage_collection_threshold:0.8" (R9.3 to R9.5).
///
/// What the string does not mention falls back to its default, except the sticky keys of R9.4, which keep
/// the value they have in `current`. Throws InputError naming the key and its allowed range; unknown keys,
/// bad values and values out of range are told apart in the text, and so are keys that came with a later
/// version than `current.torch` (docs/allocator-rules.md, section 15).
AllocatorSettings parse_allocator_settings(std::string_view conf, AllocatorSettings current = {});

/// The same for a string that a recording holds: the PyTorch that wrote it has accepted it. An item that
/// cannot be read here is passed over, and `unread` gets its key and the reason.
AllocatorSettings parse_recorded_settings(std::string_view conf, TorchVersion torch,
                                          std::vector<std::string>& unread);

/// The keys of `conf` that are read and have no effect on which block a request gets, with the reason: those
/// of host memory, of locks, and of AMD's builds; one sentence each.
std::vector<std::string> keys_without_effect(std::string_view conf);

/// The first version that knows every key of `conf` that is known here.
TorchVersion first_version_with(std::string_view conf);

}  // namespace vramlab
