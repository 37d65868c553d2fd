// What the variables of a recorded model are worth under given conditions, and what follows from them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/recorded_model.hpp"

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

}  // namespace vramlab
