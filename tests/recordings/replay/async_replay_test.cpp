// What the simulation of backend:cudaMallocAsync meets of a recording, and what it does not
// (docs/fidelity.md).
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include <gtest/gtest.h>

#include "recordings/replay/oracle_replay.hpp"
#include "sim/memory/oom_report.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/segments/sim_segments.hpp"

namespace vramlab {
namespace {

const std::filesystem::path kFixtures = std::filesystem::path(VRAMLAB_SOURCE_DIR) / "tests/data/oracle";

constexpr const char* kReserved = "reserved_bytes.all.current";

// The message without the free memory of the whole device, which other processes share.
std::string without_device_free(std::string text) {
  const std::size_t line = text.find("Free (according to CUDA)");
  if (line != std::string::npos) text.erase(line, text.find('\n', line) - line);
  return text;
}

/// A replay of a log with addresses of the simulation's own. Its counters are all but those of reserved
/// bytes, and the address of every allocation is compared, but is not what makes it diverge.
struct Predicted : ReplayResult {
  // What depends on the addresses, reserved bytes.
  std::uint64_t reserved_checked = 0;  ///< operations
  std::uint64_t reserved_mismatches = 0;
  double reserved_mean_error = 0;   ///< |predicted − recorded| / recorded, where any are reserved
  double reserved_worst_error = 0;  ///< the same, at the worst operation
  Bytes peak_reserved_recorded = 0;
  Bytes peak_reserved_predicted = 0;
};

/// The replay in which the simulation chooses the addresses.
class Prediction {
 public:
  explicit Prediction(const OracleLog& log)
      : log_(log), card_(log.total_memory, 0), segments_(card_), allocator_(segments_, log.limit()) {
    const std::vector<std::string>& names = stat_names();
    for (const std::string& key : log.keys) {
      const auto name = std::find(names.begin(), names.end(), key);
      columns_.push_back(static_cast<std::size_t>(name - names.begin()));
    }
  }

  Predicted run() {
    for (; next_ < log_.operations.size(); ++next_) {
      const OracleOperation& op = log_.operations[next_];
      perform(op);
      check_counters(op);
      ++result_.operations;
    }
    if (with_reserved_ > 0) result_.reserved_mean_error = error_sum_ / static_cast<double>(with_reserved_);
    return result_;
  }

 private:
  void perform(const OracleOperation& op) {
    if (op.kind == "alloc" || op.kind == "alloc_t" || op.kind == "oom") {
      allocate(op);
    } else if (op.kind == "free" || op.kind == "free_deferred") {
      const auto live = live_.find(op.pointer);
      if (live == live_.end()) return;  // its allocation failed in the simulation
      allocator_.free(live->second);
      live_.erase(live);
    } else if (op.kind == "empty_cache") {
      allocator_.empty_cache();
    } else if (op.kind == "reset_peak") {
      allocator_.reset_peak_stats();
    }
  }

  void allocate(const OracleOperation& op) {
    const AllocationResult allocation = allocator_.allocate(op.bytes, kDefaultStream);
    if (allocation && op.text.empty()) {
      live_[op.pointer] = allocation->block;
      ++result_.addresses_checked;
      result_.address_mismatches += allocation->address != op.pointer ? 1 : 0;
      return;
    }
    if (allocation) allocator_.free(allocation->block);
    const std::string recorded = op.text.empty() ? "allocated" : without_device_free(op.text);
    const std::string simulated =
        allocation ? "allocated" : without_device_free(async_oom_message(allocation.oom()));
    ++result_.oom_texts_checked;
    if (recorded == simulated) return;
    ++result_.oom_text_mismatches;
    diverge("outcome", recorded, simulated);
  }

  void check_counters(const OracleOperation& op) {
    const std::vector<std::int64_t> values = stat_values(allocator_.stats());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::int64_t simulated = values[columns_[i]];
      if (log_.keys[i] == kReserved) check_reserved(op.counters[i], simulated);
      if (log_.keys[i].starts_with("reserved_bytes.")) continue;
      ++result_.counters_checked;
      if (simulated == op.counters[i]) continue;
      ++result_.counter_mismatches;
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
    if (result_.first_divergence) return;
    result_.first_divergence = Divergence{next_, log_.operations[next_].kind, what, recorded, simulated};
  }

  const OracleLog& log_;
  Predicted result_;
  SimulatedCard card_;
  SimSegments segments_;
  AsyncAllocator allocator_;
  std::vector<std::size_t> columns_;  ///< of each key in stat_values()
  std::size_t next_ = 0;
  std::unordered_map<Address, BlockId> live_;  ///< by recorded pointer
  std::uint64_t with_reserved_ = 0;
  double error_sum_ = 0;
};

OracleLog recording() { return read_oracle_log(kFixtures / "async_1.json.gz"); }

TEST(AsyncReplay, IsExactGivenTheAddresses) {
  const ReplayResult given = replay_oracle_log(recording());
  EXPECT_EQ(given.operations, 3009u);
  EXPECT_EQ(given.addresses_given, 1552u);
  EXPECT_EQ(given.counters_checked, 3009u * 21);
  EXPECT_EQ(given.counter_mismatches, 0u);
  EXPECT_EQ(given.oom_texts_checked, 18u);
  EXPECT_EQ(given.oom_text_mismatches, 0u);
  EXPECT_TRUE(given.exact());
}

// All but the three counters of reserved bytes (current, peak, and current of the small pool).
TEST(AsyncReplay, IsExactInAllThatDoesNotDependOnAddresses) {
  const Predicted predicted = Prediction(recording()).run();
  EXPECT_EQ(predicted.operations, 3009u);
  EXPECT_EQ(predicted.counters_checked, 3009u * 18);
  EXPECT_EQ(predicted.counter_mismatches, 0u);
  EXPECT_EQ(predicted.oom_texts_checked, 18u);
  EXPECT_EQ(predicted.oom_text_mismatches, 0u);
  EXPECT_TRUE(predicted.exact());
}

// docs/fidelity.md: "off by 6 % on average and 16 % at worst, and too low at the peak (4,544–4,672 against
// 4,960 MiB)". These are figures of first fit on this recording, no promise for others.
TEST(AsyncReplay, SaysHowFarReservedBytesAreOff) {
  const Predicted result = Prediction(recording()).run();
  EXPECT_EQ(result.addresses_checked, 1552u);
  EXPECT_EQ(result.address_mismatches, 1537u);
  EXPECT_EQ(result.reserved_checked, 3009u);
  EXPECT_EQ(result.reserved_mismatches, 2931u);
  EXPECT_NEAR(result.reserved_mean_error, 0.0566, 0.0001);
  EXPECT_NEAR(result.reserved_worst_error, 0.1622, 0.0001);
  EXPECT_EQ(result.peak_reserved_recorded, 4'960_MiB);
  EXPECT_EQ(result.peak_reserved_predicted, 4'544_MiB);
}

TEST(AsyncReplay, SaysWhereItParts) {
  OracleLog log = recording();
  log.fraction *= 0.9;  // a lower limit: the first request above it fails where the recording has none
  const Predicted result = Prediction(log).run();
  ASSERT_TRUE(result.first_divergence);
  EXPECT_EQ(result.first_divergence->what, "outcome");
  EXPECT_EQ(result.first_divergence->recorded, "allocated");
  EXPECT_EQ(result.operations, 3009u);
  EXPECT_FALSE(replay_oracle_log(log).exact());
}

}  // namespace
}  // namespace vramlab
