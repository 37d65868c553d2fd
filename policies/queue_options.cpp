#include "policies/queue_options.hpp"

namespace vramlab {
namespace {

constexpr double kLongest = 1e9;  // seconds, some 30 years

}  // namespace

const OptionTable<QueueOptions>& queue_option_table() {
  using O = QueueOptions;
  static const OptionTable<O> rows{
      .owner = "job-queue",
      .options = {
          {"order", choice_of<&O::order>({"two-fifos", "strict", "best-effort", "backfill"}), "", 0, 0,
           "who goes first, and who may pass whom"},
          {"placement", choice_of<&O::placement>({"first", "best", "worst", "fragments"}), "", 0, 0,
           "which card is taken where several fit"},
          {"accounting", choice_of<&O::accounting>({"ledger", "measured", "doubled", "nothing"}), "", 0, 0,
           "what counts as taken: promises kept in a ledger, memory as read from the card, the original's "
           "allocated + reserved, or nothing"},
          {"safety_margin_mb", &O::safety_margin_mb, "MiB", 0, 1e6, "kept free on every card"},
          {"max_concurrent_jobs", &O::max_concurrent_jobs, "jobs a card", 0, 1e6,
           "at most so many jobs on one card; 0 = as many as fit"},
          {"wait_timeout_s", &O::wait_timeout_s, "s", 0, kLongest,
           "a job that has waited so long fails; one that can start in that moment does; 0 = never"},
          {"poll_s", &O::poll_s, "s", 0, kLongest,
           "look for free memory only that often; 0 = whenever some is released"},
          {"degrade", choice_of<&O::degrade>({"never", "wait-first", "degrade-first"}), "", 0, 0,
           "halve the batch of a job that does not fit: not at all, when its wait is over, or at once"},
          {"accumulation", choice_of<&O::accumulation>({"exact", "floor"}), "", 0, 0,
           "a smaller batch keeps the effective batch exactly, or original // new as the original did"},
          {"on_oom", choice_of<&O::on_oom>({"fail", "requeue", "smaller"}), "", 0, 0,
           "a job that ran out of memory fails, waits again with a raised need, or with a halved batch"},
          {"oom_retries", &O::oom_retries, "attempts", 0, 1000, "further attempts after a job's first OOM"},
          {"oom_raise", &O::oom_raise, "factor", 1, 100, "multiplies the need of a job that waits again"},
          {"job_timeout_s", &O::job_timeout_s, "s", 0, kLongest,
           "a job is ended so long after it was submitted; 0 = never"},
          {"lease_s", &O::lease_s, "s", 0, kLongest,
           "a promise outlives a dead owner by so much; 0 = for ever"},
          {"ageing_s", &O::ageing_s, "s", 0, kLongest,
           "each such span of waiting counts as one priority; 0 = off"},
          {"backfill_depth", &O::backfill_depth, "jobs", 1, 1e6,
           "of jobs that ask for the same, so many are looked at for a short one"},
          {"per_phase", &O::per_phase, "", 0, 0, "a job asks for memory anew at each of its phases"},
      }};
  return rows;
}

std::vector<PolicyProfile> queue_profiles() {
  return {
      {"faithful",
       "the original with its defects: cached memory counted twice, ledger ignored, polling, waiting before "
       "degrading, effective batch lost",
       {{"order", "two-fifos", {}},
        {"placement", "first", {}},
        {"accounting", "doubled", {}},
        {"max_concurrent_jobs", std::int64_t{2}, {}},
        {"poll_s", 5.0, {}},
        {"degrade", "wait-first", {}},
        {"accumulation", "floor", {}},
        {"on_oom", "smaller", {}},
        {"oom_retries", std::int64_t{1}, {}},
        {"job_timeout_s", 3600.0, {}},
        {"lease_s", 0.0, {}}}},
      {"strict-fifo", "reserves, and nobody passes the first in the queue", {{"order", "strict", {}}}},
      {"best-effort", "reserves, and whoever fits may start", {{"order", "best-effort", {}}}},
      {"backfill", "reserves, and others may pass the first only where that does not delay it", {}},
      {"free-memory",
       "reads free memory and starts, without a ledger: check, then allocate",
       {{"order", "best-effort", {}}, {"accounting", "measured", {}}}},
      {"exclusive",
       "one job a card",
       {{"order", "strict", {}}, {"max_concurrent_jobs", std::int64_t{1}, {}}}},
      {"no-admission",
       "starts every job at once",
       {{"order", "best-effort", {}}, {"placement", "worst", {}}, {"accounting", "nothing", {}}}},
  };
}

}  // namespace vramlab
