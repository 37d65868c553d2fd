// A workload model made from recorded steps: its data. fit/ makes it, lab/ reads and writes it as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/parameter_space.hpp"
#include "models/forms.hpp"

namespace vramlab {

/// Numbers of recorded shapes, as bits.
using ShapeSet = std::uint64_t;
inline constexpr std::size_t kMostShapes = 64;

/// What one variable of the size forms stands for.
struct RecordedVariable {
  enum class Kind : std::uint8_t {
    parameter,   ///< a parameter that a caller sets
    fixed,       ///< a parameter that never moved in the recording; other values are refused
    items,       ///< how many items the step has
    sum,         ///< a field summed over the items
    most,        ///< largest value of Σ weight · field over the items (a padded length)
    first_item,  ///< a field of the first item
    last_item,   ///< a field of the last item
    item,        ///< a field of the item that a loop is at; 0 outside loops
    round,       ///< how often a loop has gone round before; 0 outside loops
    parts,       ///< into how many parts of `value` a parameter is cut, the last one shorter
    part,        ///< how much of it the part has that a loop is at; outside loops the first part
  };

  std::string name;
  Kind kind = Kind::parameter;
  std::int64_t value = 0;             ///< of a fixed one; of parts their size
  std::vector<std::int64_t> weights;  ///< of the fields, for every kind that reads fields
  std::uint32_t of = 0;               ///< of parts: number of the parameter that is cut

  /// Whether it has one value for a whole step.
  [[nodiscard]] bool is_global() const {
    return kind != Kind::item && kind != Kind::round && kind != Kind::part;
  }
  friend bool operator==(const RecordedVariable&, const RecordedVariable&) = default;
};

/// A sort of item (sample) whose number is a parameter, and what its items look like when nobody says.
struct RecordedItemKind {
  std::uint32_t parameter = 0;                     ///< number of its count among the parameters
  std::vector<std::vector<std::int64_t>> columns;  ///< by field: values to be taken in turn

  friend bool operator==(const RecordedItemKind&, const RecordedItemKind&) = default;
};

/// Sizes of an allocation that no single form describes: a library chooses between algorithms, and within one
/// of them a size has a form.
struct RecordedTable {
  std::vector<Bytes> sizes;         ///< at the recorded shapes; 0 = not seen there
  std::vector<std::int32_t> forms;  ///< by shape: the form of the algorithm chosen there; -1 = none is known
  bool scales = false;              ///< whether a size seen at one shape only follows the main product

  friend auto operator<=>(const RecordedTable&, const RecordedTable&) = default;
};

/// Which shapes something occurs at, and how that goes on at other parameters.
struct RecordedGroup {
  ShapeSet in = 0;      ///< recorded shapes it occurs at
  ShapeSet within = 0;  ///< recorded shapes the question makes sense for
  /// Monomial that decides by a threshold; −1 = the nearest recorded shape of `within` decides.
  std::int32_t monomial = -1;
  std::int64_t from = 0;  ///< it occurs where the monomial's value is at least this …
  bool below = false;     ///< … or, if set, where it is smaller

  friend bool operator==(const RecordedGroup&, const RecordedGroup&) = default;
};

/// Layers that a library takes for the same, and what it asked for where their workspace was refused.
struct RecordedKernel {
  struct Refusal {
    std::uint32_t shape = 0;   ///< number of the recorded shape
    std::vector<Bytes> sizes;  ///< in order, the first choice in front, each rounded up to 512 bytes

    friend bool operator==(const Refusal&, const Refusal&) = default;
  };
  std::vector<Refusal> refusals;  ///< at most one a shape; the nearest recorded shape decides

  friend bool operator==(const RecordedKernel&, const RecordedKernel&) = default;
};

/// One allocation of the step.
struct RecordedTensor {
  std::int32_t size = 0;    ///< number of its form; negative: −1 − number of its table
  std::uint32_t group = 0;  ///< where it occurs
  std::int32_t kept = -1;   ///< rank among the tensors that live until the next step (gradients); −1 = none
  bool workspace = false;   ///< a library does without it if memory is short
  std::int32_t kernel =
      -1;  ///< of a workspace: number of what its library asks for if it is refused; −1 = not known
  std::uint32_t stream = 0;  ///< 0 = the default one

  friend bool operator==(const RecordedTensor&, const RecordedTensor&) = default;
};

/// A part of the step that is done once an item, once a token, or once a part of the batch.
struct RecordedLoop {
  std::uint32_t count = 0;   ///< variable that says how often …
  std::int64_t plus = 0;     ///< … and what to add
  bool from_last = false;    ///< items are taken from the last one on
  std::int64_t skipped = 0;  ///< items or parts passed over before the first round

  friend bool operator==(const RecordedLoop&, const RecordedLoop&) = default;
};

/// One operation of the program.
struct RecordedOp {
  enum class Kind : std::uint8_t {
    allocate,   ///< tensor `what`
    free,       ///< tensor `what`; of a loop's tensors the one that `place` names
    ensure,     ///< kept extra `what`, made once by the first step of a process
    free_kept,  ///< what the step before kept at rank `what`
    loop,       ///< the operations up to the matching `end` belong to loop `what`
    end,
  };
  /// Which round's tensor a free means: offset + step · round, counted from the first or the last round.
  struct Place {
    bool from_end = false;
    std::int32_t offset = 0;
    std::int32_t step = 0;                 ///< −1, 0 or 1
    std::vector<std::uint32_t> outside{};  ///< tensors freed instead, in turn, while that is out of range

    friend bool operator==(const Place&, const Place&) = default;
  };

  Kind kind = Kind::allocate;
  std::uint32_t what = 0;
  std::uint32_t group = 0;
  Place place{};

  friend bool operator==(const RecordedOp&, const RecordedOp&) = default;
};

/// A recorded step that ran out of memory.
struct RecordedFailure {
  std::vector<std::int64_t> point;  ///< values of the parameters, in their order
  Bytes needed = 0;  ///< reserved when it failed, all that was free given back, and what it asked for then

  friend bool operator==(const RecordedFailure&, const RecordedFailure&) = default;
};

/// A segment that the driver handed out, as recorded. Which of two addresses is lower decides between equal
/// free blocks.
struct RecordedSegment {
  std::uint64_t address = 0;
  Bytes size = 0;

  friend bool operator==(const RecordedSegment&, const RecordedSegment&) = default;
};

/// The whole model.
struct RecordedSpec {
  std::string name;
  std::vector<Parameter> parameters;  ///< in the order of points; low and high are what may be asked for
  std::vector<Parameter> recorded;    ///< the same with the smallest and largest recorded value
  std::vector<RecordedVariable> variables;  ///< the parameters first, in their order
  std::vector<std::string> fields;          ///< per-item quantities
  std::vector<RecordedItemKind> item_kinds;
  std::vector<Monomial> monomials;     ///< over all variables; 0 is the number 1
  std::uint32_t main_product = 0;      ///< the monomial along which sizes and structure are compared
  std::uint32_t samples = 0;           ///< the monomial that counts samples
  std::vector<VariableValues> shapes;  ///< values of the variables at the recorded shapes; others 0
  std::vector<SizeForm> forms;
  std::vector<RecordedTable> tables;
  std::vector<RecordedGroup> groups;  ///< 0 = always
  std::vector<RecordedTensor> tensors;
  std::vector<RecordedKernel> kernels;
  std::vector<RecordedLoop> loops;
  std::vector<Bytes> extras;  ///< sizes of kept extras
  std::vector<RecordedOp> program;
  std::uint32_t kept = 0;           ///< ranks of tensors that live until the next step
  std::vector<std::int64_t> build;  ///< sizes to allocate; −k frees the k-th allocation, counted from 1
  StepTimeForm time;
  std::uint32_t workspace_refusals = 21;
  /// Of the card, besides the allocator, as recorded: context and libraries; 0 = not known.
  Bytes outside = 0;
  Bytes card_total = 0;  ///< of that card
  std::vector<RecordedFailure> failures;
  std::vector<RecordedSegment> segments;  ///< of the recorded process, in order; another one starts like it

  friend bool operator==(const RecordedSpec&, const RecordedSpec&) = default;
};

/// Throws InputError with everything in `spec` that points nowhere: what a damaged file could hold.
void check_recorded_spec(const RecordedSpec& spec);

}  // namespace vramlab
