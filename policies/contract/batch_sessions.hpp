// The host's side of composers and searchers: asks them, checks what they answer, and keeps the books. The
// same code runs above the simulator and in real programs; it touches no device itself.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "policies/contract/composer.hpp"
#include "policies/contract/searcher.hpp"

namespace vramlab {

/// What a host says once of the samples that batches are made of.
struct EpochData {
  std::span<const Sample> samples;  ///< by SampleId, at least one; must outlive the session
  std::int64_t target_batch = 0;    ///< samples of an effective batch; 0 = each batch is one
  std::uint64_t seed = 1;           ///< of the order
  bool shuffle = true;
  bool packs = false;  ///< the collator packs rows
};

/// Where a session stands. Batches that run while it is taken count as samples that wait.
struct ComposerState {
  EpochPosition position;
  std::int64_t effective = 0;  ///< samples of the effective batch so far
  std::int64_t micro_batches = 0;
  std::int64_t micro_steps = 0;  ///< that an effective batch has now (adaptive accumulation)
  std::int64_t failed_in_a_row = 0;
  std::vector<double> composer;
};

/// What the host asks of batches from now on, beside what the composer's options say.
struct BatchLimits {
  std::optional<Bytes> budget;               ///< ComposerQuestion::budget
  std::optional<std::int64_t> most_samples;  ///< of a batch, at least 1
};

/// How a batch ended.
struct BatchResult {
  StepResult result = StepResult::ok;
  Bytes rise = 0;       ///< as BatchOutcome has it
  bool typical = true;  ///< as BatchOutcome has it
  double usage = 0;     ///< its peak of allocated bytes over what may be used
};

/// What follows from it.
struct BatchConsequence {
  bool steps = false;          ///< the optimizer steps now …
  std::int64_t effective = 0;  ///< … over this many samples
  std::int64_t skipped = 0;    ///< samples that are left out of this epoch
};

/// Batches that may run at once: a loader that fetches ahead asks for the next ones before it tells.
inline constexpr std::size_t kMostBatchesAtOnce = 1024;

/// Failed batches in a row after which a run is given up, whatever its policy says (K3-11).
inline constexpr std::int64_t kMostFailedBatchesInARow = 32;

/// One composer at work on one data set. No composer can lose or double a sample, or exceed what the
/// effective batch still lacks.
class ComposerSession {
 public:
  /// Stands at the beginning of epoch 0. `composer` must outlive it.
  ComposerSession(Composer& composer, const EpochData& data);

  void begin_epoch(std::int64_t epoch);

  /// The epoch is over: composer and accumulation are told. Returns the samples of the last effective batch,
  /// which is smaller than the others; 0 if there is none.
  std::int64_t end_epoch();

  /// Holds for the next question and all later ones. A batch that is in pieces already (a guardian's) keeps
  /// them.
  void set_limits(const BatchLimits& limits) { limits_ = limits; }

  /// Samples of the epoch that still wait; those of batches that run are not among them.
  [[nodiscard]] std::size_t left() const { return candidates_.left(); }

  /// Batches that were handed out and not told.
  [[nodiscard]] std::size_t running() const { return running_.size(); }

  /// Asks for the next batch and hands it out. After `clean_up` the host empties the cache and asks again,
  /// with what it reads then. Throws PolicyFault for a second clean-up in a row, for samples that do not
  /// wait, and for none or too many; InputError if kMostBatchesAtOnce run, or one runs while there is a
  /// target.
  ComposerAnswer next(const Observation& observation);

  /// True between an answer `clean_up` and the next question.
  [[nodiscard]] bool cleaned_up() const { return cleaned_up_; }

  /// What the next batch, or the one just handed out, goes on with.
  [[nodiscard]] bool accumulates() const { return accumulation_.done() > 0; }

  /// Of the batch handed out last. Valid until one is told.
  [[nodiscard]] const BatchShape& shape() const { return running_.back().shape; }

  /// `batch`, as it was handed out, has ended. Where it ran out of memory its samples wait again, unless the
  /// composer skips them. Throws InputError for a batch that does not run.
  BatchConsequence told(std::span<const SampleId> batch, const BatchResult& result);

  /// Batches that ran out of memory since the last one that did not.
  [[nodiscard]] std::int64_t failed_in_a_row() const { return failed_in_a_row_; }

  /// Throws PolicyFault if the composer fails.
  [[nodiscard]] ComposerState save() const;

  /// Goes on from `state`, but for what the composer knew. Throws InputError if it is not of this data set.
  void restore_books(const ComposerState& state);

 private:
  struct Running {
    std::vector<SampleId> batch;
    BatchShape shape;
  };
  void hand_out(const ComposerAnswer& answer);
  [[nodiscard]] std::int64_t room() const;

  Composer& composer_;
  EpochData data_;
  Accumulation accumulation_;
  Candidates candidates_;
  BatchLimits limits_;
  std::deque<Running> running_;  ///< handed out and not told, oldest first
  bool cleaned_up_ = false;      ///< the cache was just emptied, as the composer asked
  std::int64_t failed_in_a_row_ = 0;
};

/// Probes a search may make before it is given up.
inline constexpr std::int64_t kMostProbes = 1000;

/// One searcher at work on one search.
class SearchSession {
 public:
  /// Probes are of `low` to `high` samples. `policy` must outlive it. Throws InputError unless 1 ≤ low ≤
  /// high.
  SearchSession(Searcher& policy, std::int64_t low, std::int64_t high);

  /// What to do next; sizes outside the range are moved into it. Throws PolicyFault if the policy fails, and
  /// InputError while the probe that was asked for has not been told.
  const SearcherAnswer& next(const Observation& observation);

  /// What the probe found. Throws InputError for another size than was asked for.
  void told(Probe probe);

  [[nodiscard]] std::int64_t probes() const { return probes_; }

 private:
  Searcher& policy_;
  std::int64_t low_;
  std::int64_t high_;
  std::int64_t probes_ = 0;
  SearcherAnswer answer_;
  std::optional<Probe> last_;
  bool asked_ = false;  ///< for a probe that was not told yet
};

}  // namespace vramlab
