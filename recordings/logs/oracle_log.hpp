// Oracle logs: what PyTorch's real allocator answered to a seeded sequence of operations, one by one.
//
// A log is a JSON object (plain, gzip or zstd):
//   torch, device      versions and card it was recorded on
//   total_memory       bytes of the device
//   fraction           the memory fraction that was set; the limit is trunc(fraction · total_memory)
//   conf               allocator settings string
//   keys               names of the counters that every operation carries
//   streams            handles of the streams, by index (absent in pool logs)
//   ops                [kind, bytes, stream index or tag, pointer or other, counters after it, text]
//
// Kinds of operations; the fourth field is a pointer unless said otherwise:
//   init                         the state before the first operation
//   alloc, alloc_t, oom          an allocation; through a tensor on stream 0; one that failed, with its
//   message free, free_deferred          a free; one after record_stream(stream 1), all device work done
//   before and after empty_cache, reset_peak
// and in pool logs, where the third field is a tag (−1 = default pools, 0… = MemPool, 1000… = graph):
//   pool_alloc, graph_alloc      an allocation in use_mem_pool; on the capturing stream
//   *_oom                        the same, failed
//   pool_new, pool_del           a MemPool object is made (its kind: plain, use_on_oom, no_split) or dies
//   settings                     settings at run time (the string)
//   capture_begin, capture_end   a graph capture (handle of its stream)
//   graph_del                    reset() of a graph
//   stopped                      the next request raised an error that is not an OOM; no counters
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"

namespace vramlab {

/// One recorded operation.
struct OracleOperation {
  std::string kind;
  Bytes bytes = 0;
  std::int64_t tag = 0;                ///< index of a stream, or in pool logs the number of a pool or graph
  std::uint64_t pointer = 0;           ///< or the handle of a capture's stream
  std::string argument;                ///< the fourth field where it is a text: a pool's kind, or settings
  std::vector<std::int64_t> counters;  ///< in the order of the log's keys
  std::string text;                    ///< message of a failed allocation
};

struct OracleLog {
  std::string torch;
  std::string device;
  Bytes total_memory = 0;
  double fraction = 1;
  std::string conf;
  std::vector<std::string> keys;
  std::vector<StreamId> streams;
  std::vector<OracleOperation> operations;

  /// Most bytes that the allocator could reserve; empty = no limit (R9.1).
  [[nodiscard]] std::optional<Bytes> limit() const;

  /// Place of reserved_bytes.all.current among the keys, if it is one of them.
  [[nodiscard]] std::optional<std::size_t> reserved_column() const;
};

/// Reads a log. Throws InputError naming the place for anything that is not as described above.
OracleLog read_oracle_log(const std::filesystem::path& file);

/// The same from text; `name` stands for the file in errors.
OracleLog parse_oracle_log(std::string_view text, const std::string& name);

}  // namespace vramlab
