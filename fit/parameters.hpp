// Which parameters the recorded steps and their items had, and which quantities sizes may follow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fit/union_program.hpp"
#include "models/recorded_model.hpp"
#include "models/recorded_spec.hpp"
#include "recordings/snapshot/marks.hpp"

namespace vramlab {

/// A specification that holds the parameters that moved, with the range recorded and the one that may be
/// asked for; as variables those first, then the fixed ones; as monomials the number 1, then products that
/// moved, lowest degree first; the shapes. Adds warnings on parameters that never moved. Throws InputError if
/// the shapes do not all have the same parameters.
RecordedSpec fit_parameters(const std::vector<StepParameters>& shapes, std::vector<std::string>& warnings);

/// Adds a variable that sizes inside loops may follow; products with it come behind all others.
void add_loop_variable(RecordedSpec& spec, RecordedVariable variable);

/// Adds what a loop over parts of `size` of the parameter number `parameter` needs: the number of parts (the
/// variable that is returned), and how much the part at hand has, with its products in front of those without
/// it: where no recorded part was shorter, what follows another parameter is taken to follow the part as
/// well.
std::uint32_t add_part_variables(RecordedSpec& spec, std::uint32_t parameter, std::int64_t size);

/// The product that a step's work follows: the main one, with the whole parameter in place of a part of it.
std::uint32_t work_product(const RecordedSpec& spec);

/// The product that says how often the host goes round in a step over parts; 0 where there are none.
std::uint32_t rounds_product(RecordedSpec& spec);

/// Values of all monomials, by shape.
std::vector<std::vector<std::int64_t>> monomials_by_shape(const RecordedSpec& spec);

std::vector<std::string> names_of(const std::vector<RecordedVariable>& variables);

/// Adds a warning if the recorded shapes do not tell 1, the parameters and the products of two of them apart.
/// The parameters that count rounds of its loops are left out.
void warn_of_confusion(const RecordedSpec& spec, std::vector<std::string>& warnings);

// Steps over items of different kinds and lengths: which quantities of the items sizes may follow.

/// The items of every recorded shape. A parameter whose name is a word of the marks' lists counts the items
/// of that kind (`"T1": 4` beside `"tasks": ["T1", …]`).
class RecordedItems {
 public:
  /// Throws InputError if lists of a step differ in length, or its kinds and their counts do not agree.
  explicit RecordedItems(const std::vector<StepParameters>& shapes);

  /// The counts by kind, constant parameters, and behind them the number of items; loops are looked for with
  /// these.
  [[nodiscard]] RecordedSpec first_parameters(std::vector<std::string>& warnings) const;

  /// Says for every loop of `spec` which item it begins with, and finds a further field if sizes in a loop
  /// follow the kind of the item alone (images of a sample). Then adds the fields and kinds of items, sums,
  /// largest values (padded lengths), first, last and current items, and the products that sizes may follow.
  void complete(RecordedSpec& spec, const std::vector<ShapeProgram>& programs,
                std::vector<std::string>& warnings);

  [[nodiscard]] RecordedConditions conditions(std::size_t shape) const;

 private:
  /// What a round of a loop allocated at one place of its body.
  struct Seen {
    Bytes size = 0;
    std::size_t shape = 0;
    std::size_t item = 0;
  };

  [[nodiscard]] std::size_t items(std::size_t shape) const { return kinds_[shape].size(); }
  [[nodiscard]] std::size_t item_at(const RecordedLoop& loop, std::size_t shape, std::size_t round) const;
  [[nodiscard]] std::vector<std::vector<Seen>> seen_in(const RecordedLoop& loop, std::int32_t number,
                                                       const std::vector<ShapeProgram>& programs) const;
  [[nodiscard]] bool follows_items(const std::vector<Seen>& seen) const;
  [[nodiscard]] std::size_t largest_shape() const;
  void find_kind_field(const std::vector<RecordedLoop>& loops, const std::vector<ShapeProgram>& programs);
  [[nodiscard]] std::vector<Bytes> sizes_by_kind(const RecordedLoop& loop, const ShapeAllocation& one) const;
  [[nodiscard]] std::vector<RecordedItemKind> kinds() const;
  void add_derived(RecordedSpec& spec, std::vector<std::string>& warnings) const;
  void add_most(RecordedSpec& spec, const std::string& name, std::vector<std::string>& warnings) const;

  const std::vector<StepParameters>& shapes_;
  std::vector<std::string> kind_names_;  ///< parameters that count items
  std::vector<std::string> fields_;
  std::vector<std::vector<std::size_t>> kinds_;                 ///< [shape][item]: place in kind_names_
  std::vector<std::vector<std::vector<std::int64_t>>> values_;  ///< [shape][field][item]
};

}  // namespace vramlab
