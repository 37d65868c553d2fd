// The settings of PyTorch's caching allocator, the reader of PYTORCH_CUDA_ALLOC_CONF strings, and whose
// version they are.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

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

/// "No limit" for sizes: max_split_size when the option is not given (R2.5).
inline constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max();

enum class AllocatorBackend : std::uint8_t { native, cuda_malloc_async };

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
  bool throw_on_cudamalloc_oom = false;  ///< a request refused by the limit fails at once (after torch 2.11)

  // Read and kept, without effect on which block a request gets.
  bool release_lock_on_cudamalloc = false;
  bool pinned_use_cuda_host_register = false;
  std::uint64_t pinned_num_register_threads = 1;
  bool pinned_use_background_threads = false;
  std::uint64_t pinned_reserve_segment_size_mb = 0;
  std::uint64_t pinned_max_round_size_mb = 0;
  std::uint64_t pinned_max_cached_size_mb = 0;

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

/// The first version that knows every key of `conf` that is known here.
TorchVersion first_version_with(std::string_view conf);

}  // namespace vramlab
