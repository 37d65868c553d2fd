// Writes the step program of a recorded model under given conditions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/program_writer.hpp"
#include "models/recorded_values.hpp"

namespace vramlab {

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
