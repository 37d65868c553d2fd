// Reads the text of an out-of-memory error, in every layout that users meet (R4.12, R4.12b).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recordings/logs/printed_text.hpp"

namespace vramlab {

/// Who wrote the message.
enum class OomLayout : std::uint8_t {
  none,                ///< no message about memory was found
  torch_cached,        ///< PyTorch up to 1.4: in parentheses, the last figure is idle memory ("cached")
  torch_reserved,      ///< PyTorch 1.5 to 2.0: in parentheses, the last figure is "reserved in total"
  torch_sentences,     ///< PyTorch 2.1 and newer
  torch_mps,           ///< PyTorch on Apple's GPUs: the figures stand before "Tried to allocate"
  cuda_malloc_async,   ///< PyTorch with backend:cudaMallocAsync
  absurd_size,         ///< PyTorch for requests of 2^60 bytes and more (R1.1)
  driver,              ///< the driver or a library, without figures
  resource_exhausted,  ///< JAX or TensorFlow
  host_memory,         ///< it is the computer's memory that ran out
  not_a_failure,       ///< TensorFlow: more memory would have been faster; nothing failed
  other_cuda_error,  ///< an error of CUDA or one of its libraries that has nothing to do with lack of memory
};

/// Such as "torch-sentences".
const char* name_of(OomLayout layout);

/// What a message says; a figure that it lacks is empty.
struct OomMessage {
  struct Process {
    std::uint64_t pid = 0;
    PrintedSize size;
  };

  OomLayout layout = OomLayout::none;
  std::string backend;    ///< "CUDA", "HIP", "XPU", "NPU" or "MPS", as PyTorch names it
  std::string framework;  ///< "JAX" or "TensorFlow"; empty for PyTorch and where nothing tells
  std::string evidence;   ///< the words by which a layout without figures was recognised
  std::string remark;     ///< what these words mean where they do not say it
  std::optional<int> device;
  std::optional<PrintedSize> tried;  ///< what was asked of the driver: the size of a segment (R1.7)
  std::optional<PrintedSize> total;
  std::optional<PrintedSize> free;
  std::optional<PrintedSize> own_process;  ///< this process with its context
  std::optional<PrintedSize> allowed;      ///< the limit, where one is set and the version prints it
  std::optional<PrintedSize> allocated;    ///< with `private_pools`, as newer versions count (R4.12)
  std::optional<PrintedSize> private_pools;
  std::optional<PrintedSize> idle;      ///< reserved and not allocated
  std::optional<PrintedSize> reserved;  ///< printed by PyTorch 1.5 to 2.0 only
  std::optional<PrintedSize> outside;   ///< "other allocations" of MPS
  std::optional<PrintedSize> in_use;    ///< JAX and TensorFlow: live in the pool; `allowed` is its limit
  std::vector<Process> others;
  bool sizes_unknown =
      false;  ///< "has 17179869184.00 GiB": -1, the driver of Windows does not tell processes' sizes
  std::size_t messages = 0;  ///< how many the text holds; the first one was read
};

/// Finds the first message in `text`, which may be a whole log with a traceback around it, wrapped anywhere
/// between words. A message that is cut off lacks the figures behind the cut.
OomMessage parse_oom_message(std::string_view text);

/// All messages of `text` that have figures, in its order; else what parse_oom_message finds, if anything.
std::vector<OomMessage> parse_oom_messages(std::string_view text);

/// `text` without the lines of services, of other languages and of code that handles the error: nothing ran
/// out there, whatever their words.
std::string without_other_words(std::string_view text);

/// For words without PyTorch's figures: of the driver, libraries, JAX, TensorFlow, the computer. `line` is
/// one line (one_line). Layout `none` if there is nothing of the kind.
OomMessage parse_words(std::string_view line);

// The figures of an OOM message that the allocator alone determines (R4.12), for comparing two messages.

/// One figure that differs between two messages; a figure that a message lacks is empty.
struct OomFigureDifference {
  std::string figure;
  std::string recorded;
  std::string simulated;
};

/// What differs in what was tried to be allocated, total capacity, limit, allocated bytes, idle bytes of
/// private pools and other idle bytes. Free memory of the device and the list of processes are left out.
/// `recorded` may be cut off at its end: figures beyond the cut are not compared.
std::vector<OomFigureDifference> compare_oom_figures(std::string_view recorded, std::string_view simulated);

}  // namespace vramlab
