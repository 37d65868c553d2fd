// The steps of a recording as programs: what each allocated and freed, in order, and which of them stand for
// the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "models/recorded_spec.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// One action of a step.
struct StepAction {
  enum class Kind : std::uint8_t {
    allocate,   ///< the step's allocation number `what`
    free,       ///< of the step's own allocation `what`
    free_kept,  ///< of what the step before kept at rank `what`
  };
  Kind kind = Kind::allocate;
  std::uint32_t what = 0;

  friend auto operator<=>(const StepAction&, const StepAction&) = default;
};

/// What became of an allocation of a step.
enum class Fate : std::uint8_t {
  freed,    ///< within the step
  kept,     ///< freed by a later step: a gradient
  forever,  ///< never freed: optimizer state, workspaces
};

struct StepAllocation {
  Bytes size = 0;  ///< as requested
  Fate fate = Fate::freed;
  std::uint32_t actions = 0;  ///< actions between its birth and its free, both included; of a freed one
  std::uint32_t stream = 0;   ///< 0 = the default one, others numbered as they appear

  /// A workspace by its life: what a library asks for and returns around one kernel.
  [[nodiscard]] bool is_brief() const { return fate == Fate::freed && actions <= 3; }
};

/// Requests refused one after another with nothing in between: attempts at a workspace.
struct RefusedRequests {
  std::size_t after = 0;     ///< allocations that the step made before
  std::vector<Bytes> sizes;  ///< as the history has them: rounded up to 512 bytes

  friend bool operator==(const RefusedRequests&, const RefusedRequests&) = default;
};

/// One step.
struct StepRecord {
  StepMark mark;
  std::vector<StepAllocation> allocations;
  std::vector<StepAction> actions;
  std::size_t foreign_frees = 0;  ///< of what was there before the first step; moved to the end of building
  /// In order. The request that failed the step is none of them.
  std::vector<RefusedRequests> refusals;
  Bytes needed = 0;              ///< of a failed one: reserved at its last refused request, and that request
  std::optional<Bytes> outside;  ///< bytes of the card in use besides the allocator when it ended, if noted
};

/// A recording cut at its marks.
struct RecordedRun {
  /// What lay outside the allocator after the last step; empty if that was not noted, or moved by more than
  /// 64 MiB in the second half of the steps: then another process was on the card.
  [[nodiscard]] std::optional<Bytes> outside() const;

  std::vector<std::int64_t> build;          ///< before the first step, as RecordedSpec::build
  std::vector<StepRecord> steps;            ///< in order; failed ones included
  std::vector<RecordedSegment> segments{};  ///< as the driver handed them out, in order
  std::vector<std::string> warnings;
};

/// Cuts the history of the first device that has one. What lies between marks that are not steps counts as
/// building before the first step, and is an error after it (validation passes are not modelled yet).
/// Throws InputError if the history does not begin with an empty allocator or no step was marked.
RecordedRun cut_at_marks(const TorchSnapshot& snapshot, const std::vector<StepMark>& marks,
                         const std::string& name);

/// The same without marks: the actions at the end of the history repeat, and every repetition is a step with
/// `parameters`. Throws InputError if they do not.
RecordedRun cut_at_repeats(const TorchSnapshot& snapshot, const StepParameters& parameters,
                           const std::string& name);

/// The same without marks, by what optimizers note of themselves in the history (PyTorch 2.9 and newer), else
/// by the gradients that come and go: a step ends with its optimizer. `steps` are the parameters of all steps
/// in order. The first step begins where the first allocation of a later one with its parameters belongs;
/// without one it counts as building. Throws InputError if there are not as many steps.
RecordedRun cut_at_optimizers(const TorchSnapshot& snapshot, const std::vector<StepParameters>& steps,
                              const std::string& name);

/// The same at given places: `ends` says for each mark which entry of the history is the first that does not
/// belong to it.
RecordedRun cut_at_entries(const TorchSnapshot& snapshot, const std::vector<StepMark>& marks,
                           const std::vector<std::size_t>& ends, const std::string& name);

// Which of the recorded steps a model is made from.

/// The step that stands for each shape, and the first step of the process.
struct ChosenSteps {
  /// The last visit of each shape in the first run that has it, in order.
  std::vector<const StepRecord*> settled;
  const StepRecord* first = nullptr;
  std::size_t first_shape = 0;
  /// Steps after the first one, in its process, that made something for good (buckets rebuilt by the second
  /// step, state made late). Empty if more than half of them do: then the program leaks.
  std::vector<const StepRecord*> later;
  /// It stands for its shape, for want of another, though it frees no gradients.
  bool first_is_alone = false;

  /// The number of the shape of `step` among the settled ones.
  [[nodiscard]] std::optional<std::size_t> shape_of(const StepRecord& step) const;
};

/// Chooses them from the steps of all `runs` and adds warnings on those left out. Steps that ran out of
/// memory are left out; so are those at a shape where workspaces were refused, from then on, and the first
/// step of each process where another has its shape: it frees no gradients. Throws InputError if no step
/// succeeded, there is only one, or shapes are more than kMostShapes.
ChosenSteps choose_steps(const std::vector<RecordedRun>& runs, std::vector<std::string>& warnings);

}  // namespace vramlab
