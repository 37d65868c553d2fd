#include "recordings/replay/backend_replay.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/memory/others/backends.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

/// Performs a program's requests and frees on any allocator.
class BackendReplay {
 public:
  BackendReplay(Allocator& allocator, const ClientProgram& program, std::vector<ReplayedAction>* told)
      : allocator_(allocator), program_(program), told_(told), blocks_(program.blocks) {}

  ProgramOutcome run(bool until_oom) {
    for (std::size_t i = 0; i < program_.actions.size(); ++i) {
      done_ = {};
      perform(program_.actions[i], i);
      if (told_ != nullptr) note();
      if (until_oom && outcome_.ooms > 0) break;
    }
    outcome_.stats = allocator_.stats();
    return outcome_;
  }

 private:
  void perform(const ClientAction& action, std::size_t index) {
    switch (action.kind) {
      case Kind::alloc:
        return allocate(action, index);
      case Kind::free:
        return free(action.block);
      case Kind::empty_cache:
        return allocator_.empty_cache();
      case Kind::reset_peak:
        allocator_.reset_peak_stats();
        return note_peaks(index);
      case Kind::mark:
        outcome_.marks.push_back({program_.texts[action.detail], allocator_.stats()});
        return;
      default:  // of streams, pools, graphs and PyTorch's own settings it knows nothing
        return;
    }
  }

  void allocate(const ClientAction& action, std::size_t index) {
    ++outcome_.operations;
    const AllocationResult result = allocator_.allocate(action.bytes, action.stream);
    if (result) {
      blocks_[action.block] = result->block;
      done_.address = result->address;
    } else {
      done_.failed = true;
      ++outcome_.ooms;
      if (!outcome_.first_oom) outcome_.first_oom = FailedRequest{index, result.oom()};
    }
    note_peaks(index);
  }

  void free(ProgramBlock block) {
    if (!blocks_[block]) return;  // its request failed
    ++outcome_.operations;
    allocator_.free(*blocks_[block]);
    blocks_[block].reset();
  }

  void note_peaks(std::size_t index) {
    const MemoryStats& stats = allocator_.stats();
    const auto peak = static_cast<Bytes>(stats.reserved_bytes.all().peak);
    if (peak != outcome_.reserved_at_peak) {
      outcome_.reserved_at_peak = peak;
      outcome_.active_at_peak = total_of(stats.active_bytes);
      outcome_.highest_reserved = std::max(outcome_.highest_reserved, peak);
    }
    // Where the whole share is taken at the beginning, what is in use at the end of it counts.
    if (total_of(stats.reserved_bytes) == outcome_.reserved_at_peak) {
      outcome_.active_at_peak = std::max(outcome_.active_at_peak, total_of(stats.active_bytes));
    }
    if (total_of(stats.allocated_bytes) > outcome_.highest_allocated) {
      outcome_.highest_allocated = total_of(stats.allocated_bytes);
      outcome_.highest_allocated_at = index;
    }
  }

  void note() {
    const MemoryStats& stats = allocator_.stats();
    done_.allocated = total_of(stats.allocated_bytes);
    done_.reserved = total_of(stats.reserved_bytes);
    done_.segments = stats.segment.all().current;
    told_->push_back(done_);
  }

  Allocator& allocator_;
  const ClientProgram& program_;
  std::vector<ReplayedAction>* told_;
  std::vector<std::optional<BlockId>> blocks_;  ///< by program block; empty = not there
  ReplayedAction done_;                         ///< what the action being performed did
  ProgramOutcome outcome_;
};

}  // namespace

ProgramOutcome replay_on_backend(const ClientProgram& program, const ReplaySetup& setup,
                                 std::vector<ReplayedAction>* actions) {
  SimulatedCard card(setup.total, setup.context);
  SimSegments segments(card);
  const std::unique_ptr<Allocator> allocator = make_backend(segments, setup.backend, setup.limit);
  ProgramOutcome outcome = BackendReplay{*allocator, program, actions}.run(setup.until_oom);
  outcome.driver_time = segments.driver_time();
  return outcome;
}

}  // namespace vramlab
