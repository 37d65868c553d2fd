// The composer family: which samples make the next batch, under a memory budget.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "models/sample.hpp"
#include "policies/contract/epoch_books.hpp"
#include "policies/contract/policy.hpp"

namespace vramlab {

/// Bytes that a batch takes at its peak above what is allocated before it.
struct PredictedMemory {
  Bytes likely = 0;
  Bytes at_most = 0;  ///< what a budget is held against; at least `likely`
};

enum class ComposerEvent : std::uint8_t {
  next,       ///< the next batch, please
  cleaned_up  ///< the cache was emptied, as the answer before asked
};

/// Asked before every step. References hold while a question is answered.
struct ComposerQuestion {
  ComposerEvent event = ComposerEvent::next;
  std::span<const Sample> samples;  ///< the data set, by SampleId; the same at every question
  Candidates& candidates;           ///< what waits; the host takes what is answered
  std::int64_t most = 1;            ///< that the batch may have, what the effective one lacks; at least 1
  bool packs = false;               ///< the collator packs rows
  bool accumulates = false;         ///< the batch goes on with an effective batch that has begun
  /// Bytes that may be allocated at the batch's peak, where the host says so. It takes the place of whatever
  /// the composer's options say of a budget and of what is kept free. Empty = they decide.
  std::optional<Bytes> budget{};
};

struct ComposerAnswer {
  enum class Action : std::uint8_t {
    run,       ///< train on `batch`
    clean_up,  ///< empty the cache and ask again
    give_up    ///< nothing fits; the run ends, and `reason` says why
  };
  Action action = Action::run;
  std::vector<SampleId> batch;  ///< at least one sample, at most `most`
  PredictedMemory predicted{};  ///< likely = 0: the composer does not predict
  bool oversize = false;        ///< one sample that alone is predicted over budget
  bool checkpointing = false;   ///< run it with activation checkpointing
  std::string reason;           ///< where there is one
};

/// What became of a batch. It is told after every step.
struct BatchOutcome {
  std::span<const SampleId> batch;
  const BatchShape& shape;
  StepResult result = StepResult::ok;
  Bytes rise = 0;  ///< peak of allocated bytes above what was allocated before; oom: what was wanted at least
  bool typical = true;  ///< false: the first step of a process, or with checkpointing; nothing to learn from
};

/// What the host does about a batch that ran out of memory.
enum class AfterOom : std::uint8_t {
  ask,  ///< its samples wait again, and the composer is asked
  skip  ///< its samples are left out of this epoch, as trainers do that catch the error and go on
};

/// A policy that composes batches.
class Composer : public Decider<ComposerQuestion, ComposerAnswer> {
 public:
  static constexpr const char* kFamily = "composer of batches";  ///< as users are told of it

  /// Hears how the last batch ended; says what is to become of its samples if it failed.
  virtual AfterOom told(const BatchOutcome& outcome) = 0;

  virtual void epoch_ends() {}

  /// Whether it obeys ComposerQuestion::budget; a host that moves a budget refuses one that does not.
  [[nodiscard]] virtual bool obeys_budget() const { return false; }

  /// How micro-batches make a step of the optimizer.
  [[nodiscard]] virtual AccumulationRule accumulation() const = 0;

  /// All that the composer has learnt or plans, as numbers; `restore` goes on from there. Composers with
  /// equal options take each other's. `restore` throws InputError for numbers that are not such a state.
  [[nodiscard]] virtual std::vector<double> save() const = 0;
  virtual void restore(std::span<const double> state) = 0;
};

}  // namespace vramlab
