// Records a training step as PyTorch runs it: tensors that are freed with their last user, and the graph of
// operations that the backward pass walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "models/step_program.hpp"

namespace vramlab::layers {

/// A sort of number, by the bytes of one.
enum class Number : std::uint8_t { float32, bfloat16, float16, int64, int32, byte };

/// Bytes of one number.
Bytes bytes_of(Number number);

/// What a tensor is for, in answers to "what fills the memory".
enum class Purpose : std::uint8_t { activations, logits, gradients, optimizer, gathered, cache, workspaces };
inline constexpr std::size_t kPurposes = 7;

/// The product of counts ≥ 0; what exceeds 2^59 is 2^59, which fits on no card.
std::int64_t product(std::initializer_list<std::int64_t> counts);

class Tape;

/// Memory of one tensor of the step. It is freed with its last owner, unless the tape took it over.
class Storage {
 public:
  Storage(Tape& tape, std::uint32_t id, std::size_t place) : tape_(tape), id_(id), place_(place) {}
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

 private:
  friend class Tape;
  Tape& tape_;
  std::uint32_t id_;
  std::size_t place_;  // of its allocation among the operations
  bool kept_ = false;
};

/// Null where nothing of the step's own is held (weights).
using Memory = std::shared_ptr<Storage>;

/// Which gradient an operation passes on: input `slot` of operation `node`. Empty: nobody wants it.
struct Edge {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t node = kNone;
  std::uint32_t slot = 0;
  explicit operator bool() const { return node != kNone; }
};

/// A tensor as code of a model holds it.
struct Value {
  Memory memory;
  std::int64_t elements = 0;
  Number number = Number::float32;
  Edge from;  ///< what made it, if its gradient is wanted

  [[nodiscard]] bool wants_gradient() const { return static_cast<bool>(from); }
};

/// The gradient of a tensor.
struct Gradient {
  Memory memory;
  std::int64_t elements = 0;
  Number number = Number::float32;
  bool is_view = false;  ///< has another shape than the tensor it was computed as: never added to in place
};
using Gradients = std::vector<Gradient>;

/// A tensor that outlives steps.
struct Kept {
  std::uint32_t slot = 0;
  Bytes size = 0;
};

/// The tape of one step.
///
/// Operations are numbered; the backward pass performs, of those whose gradients are complete, always the one
/// that was recorded last, as PyTorch's engine does on one card. A gradient that comes second is added to the
/// first, in place where nobody else holds the first.
class Tape {
 public:
  /// Slots below `kept_slots` belong to tensors that outlive the step.
  explicit Tape(std::uint32_t kept_slots) : kept_slots_(kept_slots), next_id_(kept_slots) {}

  // ---- memory

  /// Allocates `size` bytes, > 0, for the current purpose.
  Memory allocate(Bytes size);
  /// A tensor without gradient.
  Value tensor(std::int64_t elements, Number number);
  /// A buffer for one kernel.
  void scratch(Bytes size) {
    if (size > 0) allocate(size);
  }
  void allocate_kept(const Kept& tensor);
  void ensure_kept(const Kept& tensor);
  void free_kept(const Kept& tensor);

  /// What the following allocations are for; those of a backward pass are for what its operation was for.
  Purpose purpose = Purpose::activations;

  // ---- the graph

  using Backward = std::function<Gradients(Gradients)>;

  /// Whether operations are recorded for a backward pass.
  bool recording = true;

  /// Records an operation with edges to what made its inputs; `backward` takes gradients of its outputs and
  /// gives one for each edge (an empty one where nobody wants it). It holds what the operation saved.
  Edge record(std::vector<Edge> inputs, Backward backward, std::uint32_t outputs = 1);

  /// A place that takes the gradient of something and hands it to `take`, as soon as it is complete.
  Edge record_leaf(std::function<void(Gradient)> take);

  /// Walks back from `root`, whose gradient is given. What the operations saved is freed on the way.
  void backward(Edge root, Gradient gradient);

  /// Operations so far.
  [[nodiscard]] std::size_t place() const { return ops_.size(); }

  /// Takes back what was allocated and freed again behind the last allocation since `place` that is still
  /// held: what a recomputation does not come to, because it stops once all that was saved is there again.
  void stop_early(std::size_t place);

  /// Makes `gradient` the kept tensor: no free follows, a later step frees it by its slot.
  void keep(const Gradient& gradient, const Kept& tensor);

  /// Whether the kept tensor was made by this tape and not freed since.
  [[nodiscard]] bool has(const Kept& tensor) const { return alive_.contains(tensor.slot); }

  // ---- mixed precision

  std::optional<Number> autocast;
  /// Casts of weights by slot, which live until the context is left.
  std::map<std::uint32_t, Value> casts;

  /// The program; the tape is empty afterwards. All memory must have been freed.
  StepProgram finish();

  /// Purpose of each operation of the program, in order; asked before `finish`.
  [[nodiscard]] const std::vector<Purpose>& purposes() const { return purposes_; }

 private:
  friend class Storage;
  struct Node {
    std::vector<Edge> inputs;
    Backward backward;
    std::uint32_t outputs = 1;
    bool leaf = false;
    Purpose purpose = Purpose::activations;
  };
  struct Walk;

  void put(MemoryOp op);
  void count_users(Edge root, Walk& walk) const;
  void perform(std::uint32_t number, Walk& walk);
  Gradient sum(Gradient first, Gradient second);

  std::uint32_t kept_slots_;
  std::uint32_t next_id_;
  std::vector<MemoryOp> ops_;
  std::vector<Purpose> purposes_;
  std::vector<Node> nodes_;
  std::set<std::uint32_t> alive_;
};

}  // namespace vramlab::layers
