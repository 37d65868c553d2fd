// Replays oracle logs and compares everything that was recorded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "recordings/scripts/recorded_program.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/segments/recorded_segments.hpp"

namespace vramlab {

/// What differed, and where.
struct Divergence {
  std::size_t operation = 0;  ///< index in the log or history
  std::string kind;           ///< of the operation
  std::string what;           ///< a counter's name, "address", or a figure of the OOM message
  std::string recorded;
  std::string simulated;
  std::string state{};  ///< of the simulated allocator at that moment, for people
};

/// One line about an allocator: reserved bytes and segments, allocated bytes and blocks, free blocks with the
/// largest, and the settings that are not the default.
std::string describe_state(const CachingAllocator& allocator);

/// How well the simulation meets a recording.
struct ReplayResult {
  std::uint64_t operations = 0;
  std::uint64_t addresses_checked = 0;  ///< pointers that were predicted
  std::uint64_t addresses_given = 0;    ///< bases of new segments, taken from the recording
  std::uint64_t address_mismatches = 0;
  std::uint64_t counters_checked = 0;
  std::uint64_t counter_mismatches = 0;
  std::uint64_t oom_texts_checked = 0;
  std::uint64_t oom_text_mismatches = 0;
  std::uint64_t segment_events_recorded = 0;  ///< device allocations and frees
  std::uint64_t segment_events_matched = 0;   ///< those that the same operation made in the simulation
  std::vector<std::string> approximate;       ///< what of this is known not to be exact
  std::vector<std::string> warnings;          ///< situations in which PyTorch itself goes wrong (R4.7, R7.9)
  std::optional<Divergence> first_divergence;

  [[nodiscard]] bool exact() const { return !first_divergence.has_value(); }
};

/// One replay. Taken from the log are sizes, streams, which block is freed, settings, the limit, the bases of
/// new segments, and, where the device itself ran out, how much of it there was. All else is predicted. Of a
/// log of backend:cudaMallocAsync every address is taken, because that driver's choice is not known.
class OracleReplay {
 public:
  /// `log` must outlive the replay. Throws InputError, here or in run(), where the log contradicts itself.
  explicit OracleReplay(const OracleLog& log);
  OracleReplay(const OracleReplay&) = delete;
  OracleReplay& operator=(const OracleReplay&) = delete;

  /// Performs all operations and compares.
  const ReplayResult& run();

  /// The allocator, unless the log is one of backend:cudaMallocAsync.
  [[nodiscard]] CachingAllocator& allocator() { return *caching_; }

 private:
  void perform(const OracleOperation& op, const ClientAction& action);
  void perform_native(const OracleOperation& op, const ClientAction& action);
  void allocate(const OracleOperation& op, const ClientAction& action);
  void supply(Address pointer);
  void check_allocation(const OracleOperation& op, const ClientAction& action,
                        const AllocationResult& result);
  void check_address(const OracleOperation& op, const Allocation& allocation);
  void check_oom_text(const OracleOperation& op, const OutOfMemory& oom);
  void check_counters(const OracleOperation& op);
  void warn(const std::string& warning);
  void diverge(const std::string& what, const std::string& recorded, const std::string& simulated);

  const OracleLog& log_;
  const OracleProgram written_;
  bool device_limited_ = false;
  std::unique_ptr<RecordedSegments> segments_;
  std::unique_ptr<CachingAllocator> caching_;
  std::unique_ptr<AsyncAllocator> async_;     ///< instead of `caching_`
  Allocator* allocator_ = nullptr;            ///< the one in use
  std::vector<std::size_t> counter_columns_;  ///< of each key in stat_values()
  std::size_t next_ = 0;
  std::vector<std::optional<BlockId>> blocks_;  ///< by program block; none where it is not live
  std::vector<PoolId> pools_;                   ///< by program pool
  std::map<Address, Address> symbolic_bases_;   ///< recorded bases of segments that were symbolic at first
  std::vector<std::int64_t> counters_before_;
  std::vector<std::int64_t> recorded_before_;
  bool orphan_reported_ = false;
  ReplayResult result_;
};

/// Replays a whole log.
ReplayResult replay_oracle_log(const OracleLog& log);

}  // namespace vramlab
