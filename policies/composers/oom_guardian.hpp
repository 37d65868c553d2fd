// `guardian`: looks at a batch before it runs, and cuts it to pieces when memory ran out.
#pragma once

#include <memory>
#include <vector>

#include "policies/contract/composer.hpp"
#include "policies/contract/options.hpp"

namespace vramlab {

struct GuardianOptions {
  bool guardian = true;
  double safety_margin = 0.10;  ///< share of the memory kept free
  std::int64_t halvings = 3;
  bool keep_limit = false;
  bool reset_at_epoch_end = true;
  bool checkpointing = false;
};

/// Their rows, for the table of a composer whose options are derived from them.
std::vector<Row<GuardianOptions>> guardian_rows();

/// `inner` as it is, or with the guardian around it, a decorator of any composer.
///
/// Before a batch runs: allocated + predicted ≤ total · (1 − margin), or ≤ the question's budget, else the
/// cache is emptied, it is looked at again, and then it is split. After an OOM the batch is halved, each half
/// that fails again too, up to `halvings` times; then with checkpointing, if that is allowed; then the run
/// ends.
std::unique_ptr<Composer> guarded(std::unique_ptr<Composer> inner, const GuardianOptions& options);

inline constexpr std::int64_t kMostSafeBatch = 256;

/// The largest n of 1 … 256 for which `fits(n)` holds, found by bisection; 0 if not even 1 does.
template <class Fits>
std::int64_t safe_batch_size(const Fits& fits) {
  std::int64_t good = 0;
  for (std::int64_t bad = kMostSafeBatch + 1; bad - good > 1;) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace vramlab
