// Which allocator a program runs on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vramlab {

/// PyTorch's own two, what the driver alone does, that of TensorFlow and JAX, and a pool of fixed chunks.
enum class BackendKind : std::uint8_t { native, cuda_malloc_async, direct, bfc, fixed_pool };

struct BackendChoice {
  BackendKind kind = BackendKind::native;
  /// bfc: the most of all regions, as a share of the card in (0, 1]; JAX's default
  /// (XLA_PYTHON_CLIENT_MEM_FRACTION).
  double share = 0.75;
  /// bfc: takes all of it at the first request; else regions grow as needed (XLA_PYTHON_CLIENT_PREALLOCATE,
  /// TensorFlow's allow_growth).
  bool preallocate = true;

  [[nodiscard]] bool is_native() const { return kind == BackendKind::native; }
  friend bool operator==(const BackendChoice&, const BackendChoice&) = default;
};

/// As scenarios and options name it: "native", "cudaMallocAsync", "direct", "bfc", "fixed-pool".
const char* name_of(BackendKind kind);
/// The names of all of them, in their order.
std::vector<std::string> backend_names();

/// Reads a name; behind "bfc" the share and "grow" may follow, as in "bfc:0.9" and "bfc:0.9:grow". Throws
/// InputError.
BackendChoice parse_backend(std::string_view text);

/// What parse_backend() reads it from.
std::string to_text(const BackendChoice& choice);

/// What must be known of its figures, one sentence; empty for `native`.
std::string backend_note(const BackendChoice& choice);

}  // namespace vramlab
