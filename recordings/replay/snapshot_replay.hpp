// Replays the history of a snapshot on the simulated allocator and compares everything that was recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "recordings/replay/oracle_replay.hpp"
#include "recordings/snapshot/history.hpp"
#include "recordings/snapshot/initial_state.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"
#include "sim/memory/caching/caching_allocator.hpp"
#include "sim/memory/segments/recorded_segments.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// How well the simulation meets a snapshot. `operations` are entries of the history; counters are those of
/// the truth file's marks, OOM texts those of its labels. A divergence names the entry.
struct SnapshotReplayResult : ReplayResult {
  int device = 0;
  std::string initial_state = "empty";  ///< or "rebuilt", by undoing the history (R11.12)
  std::uint64_t initial_blocks = 0;     ///< in use at the start
  std::uint64_t inferred_blocks = 0;    ///< those of them whose size had to be inferred
  Bytes inferred_bytes = 0;             ///< in these

  std::uint64_t entries_checked = 0;   ///< entries that the allocator's own work leaves
  std::uint64_t entry_mismatches = 0;  ///< those that differ in action, address, size or stream
  std::uint64_t allocations = 0;
  std::uint64_t ooms = 0;
  std::uint64_t marks_checked = 0;
  std::uint64_t segments_checked = 0;  ///< of the final state
  std::uint64_t segment_mismatches = 0;
  std::uint64_t blocks_checked = 0;
  std::uint64_t block_mismatches = 0;

  // What the history does not say and was inferred from it.
  std::uint64_t empty_caches = 0;                ///< explicit empty_cache calls (R11.13)
  std::vector<std::size_t> empty_cache_entries;  ///< the first release of each of them
  std::uint64_t deferred_frees = 0;              ///< frees that waited for other streams (R3.8)
  std::uint64_t pending_frees = 0;               ///< those that still wait at the end
  std::uint64_t captures = 0;                    ///< stretches in private pools
};

/// What is known beside the snapshot.
struct SnapshotReplayOptions {
  const TruthFile* truth = nullptr;  ///< must outlive the replay
  std::optional<Bytes> limit;        ///< most bytes the allocator could reserve; overrides the truth file's
};

/// One replay of one device. Taken from the snapshot are sizes, streams, which block is freed, where deferred
/// frees completed, the settings, the bases of new segments, and when private pools were in use; from the
/// truth file, the limit. All else is predicted.
///
/// A history that begins late is replayed from its rebuilt initial state. Peaks, totals, GC ages and
/// requested sizes of free blocks are not known then: of the counters only current values are compared, and
/// of free blocks no requested sizes.
///
/// Without truth file and limit, `approximate` lists what cannot be predicted then: "failures" (they are
/// taken from the recording), "retries" (releases before a request count as empty_cache calls if these would
/// release the same, else as the request's own), "garbage collection" (how much is released is taken from the
/// recording; which blocks, is predicted). With a rebuilt initial state, "garbage collection ages".
class SnapshotReplay {
 public:
  /// `snapshot` must outlive the replay. Throws InputError if the device has no history, if the history
  /// contradicts itself or the final segments, or if it is of another allocator backend.
  SnapshotReplay(const TorchSnapshot& snapshot, int device, SnapshotReplayOptions options = {});
  SnapshotReplay(const SnapshotReplay&) = delete;
  SnapshotReplay& operator=(const SnapshotReplay&) = delete;

  /// Performs one action of the program and compares; false when none is left.
  bool step();
  /// The entry that the next step begins with.
  [[nodiscard]] std::size_t next_entry() const;

  /// Replays what is left of the history and compares the final state.
  const SnapshotReplayResult& run();

  [[nodiscard]] const SnapshotReplayResult& result() const { return result_; }
  [[nodiscard]] const InitialState& initial_state() const { return initial_; }
  /// Which recorded pool each private pool of the allocator stands for.
  [[nodiscard]] std::map<PoolId, SnapshotPool> pools() const;
  [[nodiscard]] CachingAllocator& allocator() { return *allocator_; }

 private:
  /// Keeps the events of one step.
  class Recorder : public AllocatorListener {
   public:
    void on_event(const AllocatorEvent& event) override;
    std::vector<AllocatorEvent> events;
    std::size_t releases = 0;               ///< among them
    std::function<void()> after_release{};  ///< is told of each
    void clear();
  };

  /// Refuses all memory while it is told to.
  class Refusal : public SegmentAdaptor {
   public:
    using SegmentAdaptor::SegmentAdaptor;
    std::optional<Address> reserve(Bytes size) override;
    bool map(Address address, Bytes size) override;
    bool active = false;
  };

  void make_allocator();
  void list_approximations();
  void cut_at_marks();
  void perform(const TraceStep& step);
  [[nodiscard]] bool any_entry(std::size_t first, std::size_t end, bool (*is_it)(TraceEntry::Action)) const;

  // snapshot_start.cpp
  void start_from_rebuilt();
  void make_initial_pools();
  [[nodiscard]] std::vector<SegmentView> initial_views() const;
  void take_over_blocks();

  // snapshot_requests.cpp
  void request(const TraceStep& step);
  AllocationResult attempt(const TraceStep& step, std::size_t completed);
  std::optional<AllocationResult> attempt_forced(const TraceStep& step, std::size_t completed,
                                                 std::size_t collected, bool by_limit);
  [[nodiscard]] std::optional<Bytes> collecting_limit(const TraceStep& step, std::size_t collected) const;
  [[nodiscard]] std::vector<std::size_t> possible_collections(std::size_t releases) const;
  [[nodiscard]] bool released_anything() const;
  void supply_bases(const TraceStep& step);
  void settle(const TraceStep& step, const AllocationResult& result);
  void note_empty_cache(const TraceStep& step);
  [[nodiscard]] std::size_t releases_in(const TraceStep& step) const;

  // Frees.
  void free(const TraceStep& step);
  [[nodiscard]] std::size_t completed_first(const TraceStep& step) const;
  void complete_deferred(const TraceStep& step, std::size_t count);
  void forget_completed();
  void lead_without_request(const TraceStep& step);

  // Private pools.
  void begin_pool_uses(const TraceStep& step);
  void end_pool_uses(const TraceStep& step);

  // Comparisons.
  [[nodiscard]] bool entries_match(const TraceStep& step) const;
  void check_entries(const TraceStep& step);
  void check_marks_up_to(std::size_t place);
  void check_mark(const TruthMark& mark);
  void check_oom_text(const TruthMark& mark);
  void check_final_state();
  void diverge(std::size_t entry, const std::string& what, const std::string& recorded,
               const std::string& simulated);

  const TorchSnapshot& snapshot_;
  const std::vector<TraceEntry>& trace_;
  SnapshotReplayOptions options_;
  InitialState initial_;
  std::vector<TraceStep> steps_;
  std::size_t next_step_ = 0;
  std::vector<std::size_t> mark_places_;  ///< number of entries before each mark
  std::size_t next_mark_ = 0;
  std::unique_ptr<RecordedSegments> segments_;
  std::unique_ptr<Refusal> refusal_;
  bool limit_known_ = false;  ///< that the allocator has, or that it had none
  std::unique_ptr<CachingAllocator> allocator_;
  Recorder recorder_;

  std::vector<PoolUse> pool_uses_;
  std::size_t next_pool_use_ = 0;
  std::vector<std::size_t> open_pool_uses_;
  std::map<SnapshotPool, PoolId> pools_;

  std::unordered_map<Address, BlockId> live_;  ///< by recorded address
  std::map<Address, BlockId> pending_;         ///< freed and not completed
  StreamId next_unknown_stream_;
  std::optional<OutOfMemory> last_oom_;  ///< since the last mark
  SnapshotReplayResult result_;
};

/// The settings of a recording: those of the snapshot, or of `truth` (may be null) where it has no string.
AllocatorSettings recorded_settings(const TorchSnapshot& snapshot, const TruthFile* truth);

/// The devices that have a history in the snapshot.
std::vector<int> recorded_devices(const TorchSnapshot& snapshot);

/// Replays one device.
SnapshotReplayResult replay_snapshot(const TorchSnapshot& snapshot, int device,
                                     const SnapshotReplayOptions& options = {});

}  // namespace vramlab
