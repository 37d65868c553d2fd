// One process of a job on one card that it shares with others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "sim/runs/cluster_books.hpp"
#include "sim/runs/step_executor.hpp"

namespace vramlab {

/// A context, an allocator of its own, and the steps it performs on them. What it holds goes back to the card
/// when it is destroyed. The seam to where it is: on a pretended card or on a real one.
class JobOnCard {
 public:
  virtual ~JobOnCard() = default;

  /// Opens the context. False if the card has too little left for it.
  [[nodiscard]] virtual bool open() = 0;

  struct Step {
    bool ok = true;
    SimTime driver_time{0};
    SimTime done{0};                   ///< the program's own time, as far as it got
    std::optional<OutOfMemory> oom{};  ///< not ok: what found no room in its allocator
    Bytes refused = 0;                 ///< … and the segment for it that the card could not give
    /// From here on the same program at the same shape goes on as it did, whatever other processes do: no
    /// driver call since an equal state, or, which is an assumption, none in 24 steps before this one.
    bool settled = false;
  };

  /// Performs `program`; `key` names it (0 = nobody asks whether it settles), `shape` the parameters it was
  /// made for.
  virtual Step run(const StepProgram& program, std::uint64_t key, std::uint64_t shape) = 0;

  // What a policy that steers the job asks of its process.

  /// What its program can read of memory: its own counters, and what is free on the card.
  [[nodiscard]] virtual MemoryView view() const = 0;

  /// torch.cuda.empty_cache(). Returns the time it took.
  virtual SimTime empty_cache() = 0;

  /// torch.cuda.reset_peak_memory_stats().
  virtual void reset_peak() = 0;

  [[nodiscard]] virtual Holding holding() const = 0;
};

/// A card that processes of jobs share.
class JobCard {
 public:
  virtual ~JobCard() = default;

  /// Sets what strangers hold of it from now on, in bytes; at most what the processes leave.
  virtual void set_others(Bytes bytes) = 0;

  /// A process on it, which must not outlive it. Nothing is taken yet.
  virtual std::unique_ptr<JobOnCard> start(const AllocatorOptions& options) = 0;
};

/// Makes card number `card` of the queue, of `total` bytes, of which every process takes `context` bytes
/// first; empty = pretended.
using MakeJobCard = std::function<std::unique_ptr<JobCard>(std::size_t card, Bytes total, Bytes context)>;

/// On a pretended card.
class JobProcess final : public JobOnCard {
 public:
  /// The card must outlive the process. Nothing is taken yet.
  JobProcess(SimulatedCard& card, Bytes context_bytes, const AllocatorOptions& options);
  ~JobProcess() override;
  JobProcess(const JobProcess&) = delete;
  JobProcess& operator=(const JobProcess&) = delete;

  [[nodiscard]] bool open() override;
  Step run(const StepProgram& program, std::uint64_t key = 0, std::uint64_t shape = 0) override;
  [[nodiscard]] Holding holding() const override;
  [[nodiscard]] MemoryView view() const override;
  SimTime empty_cache() override;
  void reset_peak() override { process_.allocator().reset_peak_stats(); }

 private:
  template <class Work>
  SimTime timed(const Work& work);

  [[nodiscard]] std::vector<std::int64_t> driver_calls() const;
  [[nodiscard]] bool is_settled(std::uint64_t key, const std::vector<std::int64_t>& calls_before);

  SimulatedCard& card_;
  Bytes context_bytes_;
  bool open_ = false;
  Bytes segments_ = 0;  ///< physical memory behind its segments
  SimulatedProcess process_;
  std::uint64_t last_key_ = 0;
  int quiet_steps_ = 0;
  std::set<std::vector<std::uint64_t>> seen_;  ///< states since the last driver call or change of program
};

/// A pretended card.
class PretendedCard final : public JobCard {
 public:
  /// Of `total` bytes, of which every process takes `context` bytes first.
  PretendedCard(Bytes total, Bytes context) : card_(total, 0), context_(context) {}

  void set_others(Bytes bytes) override { card_.set_others(bytes); }
  std::unique_ptr<JobOnCard> start(const AllocatorOptions& options) override {
    return std::make_unique<JobProcess>(card_, context_, options);
  }

 private:
  SimulatedCard card_;
  Bytes context_;
};

/// Steps without a call of the driver after which a process is taken to have settled. Small tensors can
/// wander through the cache without ever meeting an old state again; in the shipped models that do (GPT-2,
/// ResNet-50), no step after the fourth calls the driver.
inline constexpr int kSettledAfter = 24;

}  // namespace vramlab
