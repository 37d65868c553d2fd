// A recorded model under given conditions: what its variables are worth, and the step program that follows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "models/recorded_model.hpp"
#include "models/step_program.hpp"

namespace vramlab {

/// Values of the variables of one step: those of the whole step, then with a loop's item put in.
class RecordedValues {
 public:
  /// Throws InputError where fields do not fit the model or a product exceeds 2^62.
  RecordedValues(const RecordedSpec& spec, const RecordedConditions& conditions);

  /// Puts round `round` of `loop` in; null = outside loops.
  void enter(const RecordedLoop* loop, std::int64_t round);

  /// How often `loop` goes round; at least 0.
  [[nodiscard]] std::int64_t rounds(const RecordedLoop& loop) const;

  [[nodiscard]] const VariableValues& variables() const { return variables_; }

  /// Values of all monomials now.
  [[nodiscard]] std::span<const std::int64_t> monomials() const { return monomials_; }

 private:
  void update_monomials();

  const RecordedSpec& spec_;
  const RecordedConditions& conditions_;
  std::int64_t items_ = 0;
  VariableValues variables_;
  std::vector<std::int64_t> monomials_;
};

/// What a library asks for when a workspace is refused, carried over from a recorded shape to another: the
/// sizes that follow a refused first choice of `own` bytes (> 0), from `recorded`: those asked for at
/// another shape, the first choice in front, none of them 0.
///
/// A size within a tenth of the first choice is that of a kernel that copies the same tensors and has another
/// constant of its own; the constant is kept. Any other size is a multiple of the tensors and grows with
/// them.
std::vector<Bytes> attempts_at(const std::vector<Bytes>& recorded, Bytes own);

/// Slots of a recorded workload that outlive steps: what building left, what a step keeps for the next, and
/// what the first step of a process makes for good.
struct RecordedSlots {
  explicit RecordedSlots(const RecordedSpec& spec);

  std::uint32_t built = 0;   ///< slots 0 …
  std::uint32_t kept = 0;    ///< after them
  std::uint32_t extras = 0;  ///< after those
  [[nodiscard]] std::uint32_t all() const { return built + kept + extras; }
};

/// A step of a recorded model.
struct RecordedStep {
  StepProgram program;
  std::vector<std::uint32_t> tensors;  ///< that it allocates, in order: their numbers in the specification
};

/// Writes the step under given conditions. `shape`: the structure of that recorded shape; empty = as the
/// groups decide.
RecordedStep write_recorded_step(const RecordedSpec& spec, const RecordedConditions& conditions,
                                 std::optional<std::size_t> shape = {});

}  // namespace vramlab
