// Which parameters the recorded steps and their items had, and which quantities sizes may follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fit/union_program.hpp"
#include "models/recorded_model.hpp"
#include "models/recorded_spec.hpp"
#include "recordings/snapshot/marks.hpp"

namespace vramlab {

/// The variables of a model that is being fitted.
struct FitParameters {
  std::vector<Parameter> recorded;          ///< that moved, with the range recorded
  std::vector<RecordedVariable> variables;  ///< those first; then the fixed ones
  std::vector<Monomial> monomials;          ///< the number 1, then products that moved, lowest degree first
  std::vector<VariableValues> shapes;       ///< by shape

  /// Adds a variable that sizes inside loops may follow; products with it come behind all others.
  void add_loop_variable(RecordedVariable variable);

  /// Values of all monomials at a shape.
  [[nodiscard]] std::vector<std::int64_t> monomial_values(const VariableValues& variables_values) const;
};

/// Adds a warning if the recorded shapes do not tell 1, the parameters and the products of two of them apart;
/// `counters` are parameters that only say how often a loop goes round.
void warn_of_confusion(const FitParameters& fit, const std::vector<std::uint32_t>& counters,
                       std::vector<std::string>& warnings);

/// Reads them off the parameters of the recorded shapes. Adds warnings on parameters that never moved.
/// Throws InputError if the shapes do not all have the same parameters.
FitParameters fit_parameters(const std::vector<StepParameters>& shapes, std::vector<std::string>& warnings);

// Steps over items of different kinds and lengths: which quantities of the items sizes may follow.

/// The items of every recorded shape. A parameter whose name is a word of the marks' lists counts the items
/// of that kind (`"T1": 4` beside `"tasks": ["T1", …]`).
class RecordedItems {
 public:
  /// Throws InputError if lists of a step differ in length, or its kinds and their counts do not agree.
  explicit RecordedItems(const std::vector<StepParameters>& shapes);

  /// The counts by kind, constant parameters, and the number of items; loops are looked for with these.
  [[nodiscard]] FitParameters first_parameters(std::vector<std::string>& warnings) const;

  /// Number of the variable that counts items.
  [[nodiscard]] std::uint32_t item_count(const FitParameters& parameters) const;

  /// Says for every loop over items which item it begins with, and finds a further field if sizes in a loop
  /// follow the kind of the item alone (images of a sample). Then adds sums, largest values (padded lengths),
  /// first, last and current items to `parameters`, and the products that sizes may follow.
  void complete(FitParameters& parameters, std::vector<RecordedLoop>& loops,
                const std::vector<ShapeProgram>& programs, std::vector<std::string>& warnings);

  [[nodiscard]] const std::vector<std::string>& fields() const { return fields_; }
  [[nodiscard]] std::vector<RecordedItemKind> kinds() const;
  [[nodiscard]] RecordedConditions conditions(std::size_t shape) const;

 private:
  [[nodiscard]] std::size_t items(std::size_t shape) const { return kinds_[shape].size(); }
  [[nodiscard]] std::size_t item_at(const RecordedLoop& loop, std::size_t shape, std::size_t round) const;
  [[nodiscard]] static std::vector<Bytes> round_sizes(std::int32_t loop, std::size_t place,
                                                      const ShapeProgram& program);
  [[nodiscard]] std::size_t follows(const RecordedLoop& loop, std::int32_t number,
                                    const std::vector<ShapeProgram>& programs) const;
  [[nodiscard]] std::size_t largest_shape() const;
  void find_kind_names();
  void read_items(const StepParameters& shape);
  [[nodiscard]] std::optional<bool> place_follows(const RecordedLoop& loop, std::int32_t number,
                                                  std::size_t place,
                                                  const std::vector<ShapeProgram>& programs) const;
  static void set_products(FitParameters& parameters, std::size_t globals);
  void find_kind_field(const std::vector<RecordedLoop>& loops, const std::vector<ShapeProgram>& programs);
  [[nodiscard]] std::vector<Bytes> sizes_by_kind(const RecordedLoop& loop, std::size_t allocation,
                                                 const std::vector<ShapeProgram>& programs) const;
  void add_derived(FitParameters& parameters, std::vector<std::string>& warnings) const;
  void add_most(FitParameters& parameters, const std::string& name, std::vector<std::string>& warnings) const;

  const std::vector<StepParameters>& shapes_;
  std::vector<std::string> kind_names_;  ///< parameters that count items
  std::vector<std::string> fields_;
  std::vector<std::vector<std::size_t>> kinds_;                 ///< [shape][item]: place in kind_names_
  std::vector<std::vector<std::vector<std::int64_t>>> values_;  ///< [shape][field][item]
};

}  // namespace vramlab
