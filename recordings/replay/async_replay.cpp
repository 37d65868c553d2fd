#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "recordings/replay/oracle_replay.hpp"
#include "sim/memory/caching/allocator_settings.hpp"
#include "sim/memory/oom_report.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

constexpr const char* kReserved = "reserved_bytes.all.current";

// The message without the free memory of the whole device, which other processes share.
std::string without_device_free(std::string text) {
  const std::size_t line = text.find("Free (according to CUDA)");
  if (line != std::string::npos) text.erase(line, text.find('\n', line) - line);
  return text;
}

std::optional<Bytes> limit_of(const OracleLog& log) {
  if (log.fraction >= 1) return std::nullopt;
  return static_cast<Bytes>(log.fraction * static_cast<double>(log.total_memory));  // R9.1
}

/// The replay in which the simulation chooses the addresses.
class Prediction {
 public:
  Prediction(const OracleLog& log, AsyncReplayResult& result)
      : log_(log),
        result_(result),
        card_(log.total_memory, 0),
        segments_(card_),
        allocator_(segments_, limit_of(log)),
        live_(log) {
    result_.predicted.approximate = {"addresses", "reserved_bytes"};
    const std::vector<std::string>& names = stat_names();
    for (const std::string& key : log.keys) {
      const auto name = std::find(names.begin(), names.end(), key);
      if (name == names.end()) {
        throw InputError("/keys", "\"" + key + "\" is not a counter." + suggest_name(key, names));
      }
      columns_.push_back(static_cast<std::size_t>(name - names.begin()));
    }
  }

  void run() {
    for (; next_ < log_.operations.size(); ++next_) {
      const OracleOperation& op = log_.operations[next_];
      perform(op);
      check_counters(op);
      ++result_.predicted.operations;
    }
    if (with_reserved_ > 0) result_.reserved_mean_error = error_sum_ / static_cast<double>(with_reserved_);
  }

 private:
  void perform(const OracleOperation& op) {
    if (op.kind == "alloc" || op.kind == "alloc_t" || op.kind == "oom") {
      allocate(op);
    } else if (op.kind == "free" || op.kind == "free_deferred") {
      const auto block = live_.take(op.block);
      if (block) allocator_.free(*block);  // else its allocation failed in the simulation
    } else if (op.kind == "empty_cache") {
      allocator_.empty_cache();
    } else if (op.kind == "reset_peak") {
      allocator_.reset_peak_stats();
    }
  }

  void allocate(const OracleOperation& op) {
    const AllocationResult allocation = allocator_.allocate(op.bytes, kDefaultStream);
    ReplayResult& replay = result_.predicted;
    if (allocation && op.text.empty()) {
      live_.put(op.block, allocation->block);
      ++replay.addresses_checked;
      replay.address_mismatches += allocation->address != op.pointer ? 1 : 0;
      return;
    }
    if (allocation) allocator_.free(allocation->block);
    const std::string recorded = op.text.empty() ? "allocated" : without_device_free(op.text);
    const std::string simulated =
        allocation ? "allocated" : without_device_free(async_oom_message(allocation.oom()));
    ++replay.oom_texts_checked;
    if (recorded == simulated) return;
    ++replay.oom_text_mismatches;
    diverge("outcome", recorded, simulated);
  }

  void check_counters(const OracleOperation& op) {
    const std::vector<std::int64_t> values = stat_values(allocator_.stats());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::int64_t simulated = values[columns_[i]];
      if (log_.keys[i] == kReserved) check_reserved(op.counters[i], simulated);
      if (log_.keys[i].starts_with("reserved_bytes.")) continue;
      ++result_.predicted.counters_checked;
      if (simulated == op.counters[i]) continue;
      ++result_.predicted.counter_mismatches;
      diverge(log_.keys[i], std::to_string(op.counters[i]), std::to_string(simulated));
    }
  }

  void check_reserved(std::int64_t recorded, std::int64_t predicted) {
    ++result_.reserved_checked;
    if (recorded != predicted) ++result_.reserved_mismatches;
    result_.peak_reserved_recorded = std::max(result_.peak_reserved_recorded, static_cast<Bytes>(recorded));
    result_.peak_reserved_predicted =
        std::max(result_.peak_reserved_predicted, static_cast<Bytes>(predicted));
    if (recorded == 0) return;
    const double error = std::abs(static_cast<double>(predicted - recorded)) / static_cast<double>(recorded);
    ++with_reserved_;
    error_sum_ += error;
    result_.reserved_worst_error = std::max(result_.reserved_worst_error, error);
  }

  void diverge(const std::string& what, const std::string& recorded, const std::string& simulated) {
    if (result_.predicted.first_divergence) return;
    result_.predicted.first_divergence =
        Divergence{next_, log_.operations[next_].kind, what, recorded, simulated};
  }

  const OracleLog& log_;
  AsyncReplayResult& result_;
  SimulatedCard card_;
  SimSegments segments_;
  AsyncAllocator allocator_;
  std::vector<std::size_t> columns_;  ///< of each key in stat_values()
  std::size_t next_ = 0;
  ReplayedBlocks<BlockId> live_;
  std::uint64_t with_reserved_ = 0;
  double error_sum_ = 0;
};

}  // namespace

AsyncReplayResult replay_async_log(const OracleLog& log) {
  if (parse_allocator_settings(log.conf).backend != AllocatorBackend::cuda_malloc_async) {
    throw InputError("/conf", "\"" + log.conf + "\" is not backend:cudaMallocAsync.");
  }
  AsyncReplayResult result;
  result.given = replay_oracle_log(log);
  Prediction(log, result).run();
  return result;
}

}  // namespace vramlab
