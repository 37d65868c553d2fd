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

/// Answers for parameters between and beyond the recorded shapes.
class RecordedNeighbours {
 public:
  /// `values` outside loops. Refers to both.
  RecordedNeighbours(const RecordedSpec& spec, const RecordedValues& values);

  /// The recorded shape of `within` that is nearest to the step: distance is the logarithm of the ratio of
  /// main products plus a tenth of that of every parameter. `within` must not be empty.
  [[nodiscard]] std::size_t nearest(ShapeSet within) const;

  /// Whether what `group` describes occurs.
  [[nodiscard]] bool occurs(const RecordedGroup& group) const;

  /// The size of a table at the step: at a recorded shape what was recorded, else the form of the nearest
  /// shape, if it has one. Without a form the size lies on the straight line through the two neighbours along
  /// the main product, for within one algorithm a workspace is a constant plus a multiple of it; beyond the
  /// recorded products neither of the two parts may be negative. Throws InputError above 2^62 bytes.
  [[nodiscard]] Bytes size(const RecordedTable& table) const;

 private:
  [[nodiscard]] Bytes on_line(const RecordedTable& table) const;

  const RecordedSpec& spec_;
  std::vector<std::int64_t> step_monomials_;
  std::vector<std::int64_t> products_;  ///< main product, by shape; at least 1
  std::vector<double> distances_;       ///< by shape
  std::int64_t product_ = 1;            ///< the step's own
};

// What a library asks for when a workspace is refused, carried over from a recorded shape to another.

/// The sizes that follow a refused first choice of `own` bytes (> 0), from `recorded`: those asked for at
/// another shape, the first choice in front, none of them 0.
///
/// A size within a tenth of the first choice is that of a kernel that copies the same tensors and has another
/// constant of its own; the constant is kept. Any other size is a multiple of the tensors and grows with
/// them.
std::vector<Bytes> attempts_at(const std::vector<Bytes>& recorded, Bytes own);

// Writes the step program of a recorded model under given conditions.

/// Slots of a recorded workload that outlive steps: what building left, what a step keeps for the next, and
/// what the first step of a process makes for good.
struct RecordedSlots {
  explicit RecordedSlots(const RecordedSpec& spec);

  std::uint32_t built = 0;   ///< slots 0 …
  std::uint32_t kept = 0;    ///< after them
  std::uint32_t extras = 0;  ///< after those
  [[nodiscard]] std::uint32_t all() const { return built + kept + extras; }
};

/// Writes one program. Used once.
class RecordedProgramWriter {
 public:
  /// `shape`: the structure of that recorded shape; empty = as the groups decide.
  RecordedProgramWriter(const RecordedSpec& spec, const RecordedConditions& conditions,
                        std::optional<std::size_t> shape);

  StepProgram write();

  /// The tensors that what was written allocates, in order.
  [[nodiscard]] const std::vector<std::uint32_t>& tensors() const { return tensors_; }

 private:
  std::size_t write_loop(std::size_t begin);
  void perform(std::size_t op, std::int64_t round);
  void allocate(std::uint32_t tensor);
  void release(std::size_t op, std::int64_t round);
  void drop(std::optional<Tensor>& tensor);
  void drop_what_is_left();
  std::uint32_t attempts_of(const RecordedTensor& tensor, Bytes size);
  [[nodiscard]] Bytes size_of(const RecordedTensor& tensor) const;

  const RecordedSpec& spec_;
  RecordedValues values_;
  RecordedNeighbours neighbours_;
  RecordedSlots slots_;
  ProgramWriter writer_;
  std::vector<bool> occurs_;                                ///< by group
  std::vector<Bytes> table_sizes_;                          ///< by table
  std::vector<std::vector<std::optional<Tensor>>> rounds_;  ///< by tensor: what each round made
  std::vector<std::size_t> outside_used_;                   ///< by operation
  std::vector<std::uint32_t> tensors_;
  std::vector<bool> old_is_freed_;  ///< by rank
};

}  // namespace vramlab
