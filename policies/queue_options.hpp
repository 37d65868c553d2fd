// The options of the job queue, and the profiles that bundle them.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/card_index.hpp"
#include "policies/option_table.hpp"
#include "policies/registry.hpp"

namespace vramlab {

/// What counts as taken on a card (P3.2).
enum class Accounting : std::uint8_t {
  ledger,    ///< foreign memory, and for each job the larger of its promise and its use
  measured,  ///< what is really taken now; a job that was admitted but has not allocated yet is not seen
  doubled,   ///< 003: allocated + reserved of the jobs, so that memory counts twice; strangers are not seen
  nothing    ///< each job is looked at as if it were alone
};

/// Who goes first, and who may pass whom (P3.5).
enum class QueueOrder : std::uint8_t {
  two_fifos,    ///< 003: high priority, then the rest; a job that does not fit goes to the back
  strict,       ///< nobody passes the first
  best_effort,  ///< whoever fits, first come first served
  backfill      ///< EASY: others may pass the first if they do not delay it
};

enum class Degrade : std::uint8_t { never, wait_first, degrade_first };
enum class Accumulation : std::uint8_t { exact, floor };
enum class OnOom : std::uint8_t { fail, requeue, smaller };

/// Times in seconds, 0 = off; memory in MiB (003's "MB").
struct QueueOptions {
  QueueOrder order = QueueOrder::backfill;
  FitRule placement = FitRule::best;
  Accounting accounting = Accounting::ledger;
  std::int64_t safety_margin_mb = 1000;
  std::int64_t max_concurrent_jobs = 0;
  double wait_timeout_s = 300;
  double poll_s = 0;
  Degrade degrade = Degrade::never;
  Accumulation accumulation = Accumulation::exact;
  OnOom on_oom = OnOom::requeue;
  std::int64_t oom_retries = 3;
  double oom_raise = 1.5;
  double job_timeout_s = 0;
  double lease_s = 60;
  double ageing_s = 0;
  std::int64_t backfill_depth = 100;
  bool per_phase = false;

  [[nodiscard]] Bytes margin() const { return static_cast<Bytes>(safety_margin_mb) * 1_MiB; }
};

const OptionTable<QueueOptions>& queue_option_table();
std::vector<PolicyProfile> queue_profiles();

}  // namespace vramlab
