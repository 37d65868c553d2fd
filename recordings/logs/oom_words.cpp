// Messages about memory that are told by words: of drivers, libraries, JAX, TensorFlow and the computer.
#include <algorithm>
#include <array>
#include <cctype>

#include "recordings/logs/oom_message.hpp"

namespace vramlab {
namespace {

struct Words {
  std::string_view words;
  OomLayout layout;
  const char* remark = "";  ///< what the words mean where they do not say it
};

constexpr const char* kNvml =
    "raised while PyTorch puts its out-of-memory message together: device memory ran out, and NVML cannot be "
    "used there (MIG, Jetson, containers)";
constexpr const char* kHandle =
    "a library's handle could not be made, which is usually a lack of device memory";

constexpr const char* kLargest = "the driver limits the size of one allocation";
constexpr const char* kCopied = "a copy to the card found no memory there";

// What ran out of memory, in words. The first in the text counts, then the first here.
constexpr std::array kMemoryWords{
    Words{"on host: CUDA_ERROR_OUT_OF_MEMORY", OomLayout::host_memory,
          "pinned memory of the computer, asked of CUDA"},
    Words{"could not allocate pinned host memory", OomLayout::host_memory,
          "pinned memory of the computer, asked of CUDA"},
    Words{"can NOT allocate memory block with size larger than 4GB", OomLayout::driver, kLargest},
    Words{"CUDA error: out of memory", OomLayout::driver},
    Words{"HIP error: out of memory", OomLayout::driver},
    Words{"hipErrorOutOfMemory", OomLayout::driver},
    Words{"hipErrorMemoryAllocation", OomLayout::driver},
    Words{"CUDA_ERROR_OUT_OF_MEMORY", OomLayout::driver},
    Words{"CUBLAS_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"HIPBLAS_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"rocblas_status_memory_error", OomLayout::driver},
    Words{"CUDNN_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"CUSOLVER_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"CUSPARSE_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"CUFFT_ALLOC_FAILED", OomLayout::driver},
    Words{"CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate", OomLayout::driver, kHandle},
    Words{"HIPBLAS_STATUS_NOT_INITIALIZED when calling `hipblasCreate", OomLayout::driver, kHandle},
    Words{"CUDNN_STATUS_NOT_INITIALIZED", OomLayout::driver, kHandle},
    Words{"CUSOLVER_STATUS_NOT_INITIALIZED when calling `cusolverDnCreate", OomLayout::driver, kHandle},
    Words{"UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", OomLayout::driver},
    Words{"ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", OomLayout::driver},
    Words{"UR_RESULT_ERROR_OUT_OF_RESOURCES", OomLayout::driver,
          "the driver of Intel's GPUs ran out of something, which is usually device memory"},
    Words{"PI_ERROR_OUT_OF_RESOURCES", OomLayout::driver,
          "the driver of Intel's GPUs ran out of something, which is usually device memory"},
    Words{"UR_RESULT_ERROR_OUT_OF_HOST_MEMORY", OomLayout::host_memory},
    Words{"PI_ERROR_OUT_OF_HOST_MEMORY", OomLayout::host_memory},
    Words{"kIOGPUCommandBufferCallbackErrorOutOfMemory", OomLayout::driver},
    Words{"out of device memory", OomLayout::driver},
    Words{"ACL_ERROR_RT_MEMORY_ALLOCATION", OomLayout::driver},
    Words{"Invalid buffer size", OomLayout::driver, kLargest},
    Words{"maximum allowed buffer size", OomLayout::driver, kLargest},
    Words{"cudaErrorMemoryAllocation", OomLayout::driver},
    Words{"Cuda failure 'out of memory'", OomLayout::driver},
    Words{"NVML_SUCCESS == ", OomLayout::driver, kNvml},
    Words{"RESOURCE_EXHAUSTED", OomLayout::resource_exhausted},
    Words{"Resource exhausted", OomLayout::resource_exhausted},
    Words{"ResourceExhaustedError", OomLayout::resource_exhausted},
    Words{"OOM when allocating tensor", OomLayout::resource_exhausted},
    Words{"Dst tensor is not initialized", OomLayout::resource_exhausted, kCopied},
    Words{"DNN library initialization failed", OomLayout::resource_exhausted, kHandle},
    Words{"bytes for new constant", OomLayout::resource_exhausted},
    Words{"Failed to allocate memory for requested buffer of size", OomLayout::driver},
    Words{"Out of memory while trying to allocate", OomLayout::resource_exhausted},
    Words{"out of memory trying to allocate", OomLayout::resource_exhausted},
    Words{"Ran out of memory in memory space hbm", OomLayout::resource_exhausted},
    Words{"MemoryError: std::bad_alloc: out_of_memory: CUDA", OomLayout::driver},
    Words{"MemoryError: std::bad_alloc: CUDA error", OomLayout::driver},
    Words{"DefaultCPUAllocator", OomLayout::host_memory},
    Words{"Buy new RAM", OomLayout::host_memory},
    Words{"std::bad_alloc: out_of_memory: CUDA", OomLayout::driver},
    Words{"std::bad_alloc: CUDA error", OomLayout::driver},
    Words{"std::bad_alloc", OomLayout::host_memory},
    Words{"Unable to allocate", OomLayout::host_memory},
    Words{"MemoryError", OomLayout::host_memory},
    Words{"_ArrayMemoryError", OomLayout::host_memory},
    Words{"Cannot allocate memory", OomLayout::host_memory},
    Words{"The paging file is too small", OomLayout::host_memory, "Windows could commit no more memory"},
    Words{"killed by signal: Killed", OomLayout::host_memory},
    Words{"oom-kill", OomLayout::host_memory},
    Words{"OOMKilled", OomLayout::host_memory},
    Words{"Out of memory: Kill", OomLayout::host_memory},
    Words{"SIGKILL", OomLayout::host_memory,
          "nearly always the kernel or the cluster ending a process that used too much of the computer's "
          "memory"},
    Words{"insufficient shared memory", OomLayout::host_memory},
    Words{"out of shared memory", OomLayout::host_memory,
          "of the loader's workers: /dev/shm, which --shm-size sets"},
    Words{"CUDA out of memory", OomLayout::driver},
    Words{"OutOfMemoryError", OomLayout::driver},
    Words{"out of memory", OomLayout::driver},
    Words{"Out of memory", OomLayout::driver},
};

constexpr std::array kAbsurd{Words{"more than 1EB memory", OomLayout::absurd_size}};
constexpr std::array kOtherErrors{
    Words{"CUDA error: ", OomLayout::other_cuda_error},
    Words{"HIP error: ", OomLayout::other_cuda_error},
    Words{"CUBLAS_STATUS_", OomLayout::other_cuda_error},
    Words{"CUDNN_STATUS_", OomLayout::other_cuda_error},
};

// Words that are followed by any others: "CUDA error: device-side assert triggered".
bool is_open(std::string_view words) {
  return words.ends_with('_') || words.ends_with(' ') || words.ends_with("Kill");
}

// Names the error in the answer: the words, with the clause that open ones begin, or the call that failed.
std::string clause_at(std::string_view text, std::size_t at, std::string_view words) {
  constexpr std::string_view kCall = " when calling `";
  std::size_t end = at + words.size();
  if (is_open(words)) end = std::min({text.find(". ", at), text.find(" at ", at), at + 100, text.size()});
  if (text.substr(end).starts_with(kCall))
    end = std::min(text.find('`', end + kCall.size()), text.size() - 1) + 1;
  if (words.find('`') != std::string_view::npos) end = std::min(text.find('`', end), text.size() - 1) + 1;
  text = text.substr(at, end - at);
  return std::string{text.substr(0, text.find_last_not_of(" .\"") + 1)};
}

template <std::size_t n>
const Words* first_of(std::string_view text, const std::array<Words, n>& rows, std::size_t& place) {
  const Words* first = nullptr;
  for (const Words& row : rows) {
    const std::size_t at = is_open(row.words) ? text.find(row.words) : find_words(text, row.words);
    if (at >= place) continue;
    place = at;
    first = &row;
  }
  return first;
}

bool has(std::string_view text, std::string_view words) { return text.find(words) != std::string_view::npos; }

std::string framework_of(std::string_view text) {
  for (const std::string_view sign : {"jaxlib", "jax/", "jax.", "JAX", "external/xla", "XlaRuntimeError"}) {
    if (has(text, sign)) return "JAX";
  }
  for (const std::string_view sign : {"tensorflow", "TensorFlow", "_bfc", "local_xla",
                                      "ResourceExhaustedError", "OOM when allocating tensor"}) {
    if (has(text, sign)) return "TensorFlow";
  }
  return {};
}

std::optional<PrintedSize> exactly(std::optional<std::uint64_t> bytes) {
  if (!bytes || *bytes >= Bytes{1} << 60) return {};
  return PrintedSize{*bytes, *bytes, *bytes, std::to_string(*bytes) + " bytes"};
}

// "shape[256,1024,3] and type float": the size of the tensor.
std::optional<PrintedSize> tensor_size(std::string_view text) {
  struct Type {
    std::string_view name;
    Bytes bytes;
  };
  constexpr std::array kTypes{Type{"half", 2},   Type{"bfloat16", 2}, Type{"float16", 2},  Type{"float", 4},
                              Type{"double", 8}, Type{"int32", 4},    Type{"int64", 8},    Type{"bool", 1},
                              Type{"int8", 1},   Type{"uint8", 1},    Type{"complex64", 8}};
  std::size_t shape = text.find("shape[");
  if (shape == std::string_view::npos) shape = text.find("shape [");
  const std::size_t type = text.find(" and type ", shape);
  if (shape == std::string_view::npos || type == std::string_view::npos) return {};
  const std::string_view name = text.substr(type + 10);
  const auto found = std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& one) {
    return name.starts_with(one.name) && (name.size() == one.name.size() || name[one.name.size()] == ' ');
  });
  if (found == kTypes.end()) return {};
  Bytes size = found->bytes;
  const std::size_t open = text.find('[', shape) + 1;
  std::string_view rest = text.substr(open, text.find(']', open) - open);
  while (!rest.empty()) {
    const auto side = take_number(rest);
    if (!side || (*side > 0 && size > (Bytes{1} << 59) / *side)) return {};
    size *= *side;
    rest.remove_prefix(std::min<std::size_t>(rest.size(), 1));  // the comma
  }
  return exactly(size);
}

// "3,206,250,496" or "3206250496".
std::optional<std::uint64_t> grouped_number(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789,"), text.size());
  if (end == text.size() || text[end] == '.') return {};  // may be cut off
  std::string digits{text.substr(0, end)};
  std::erase(digits, ',');
  std::string_view rest = digits;
  return take_number(rest);
}

// The exact number where one stands beside the rounded size: "4.90GiB (rounded to 5259396608)", "2.99GiB
// (3206250496B)", "17.79G (19104890880 bytes)".
std::optional<PrintedSize> exact_size_after(std::string_view text, std::string_view anchor) {
  const std::size_t at = text.find(anchor);
  if (at == std::string_view::npos) return {};
  text = text.substr(at + anchor.size());
  auto size = parse_printed_size(text);
  if (!size) return exactly(grouped_number(text));
  const std::string_view rest = text.substr(size->text.size(), 40);
  auto exact = exactly(number_after(rest, "(rounded to "));
  if (!exact && rest.starts_with(" (")) exact = parse_printed_size(rest.substr(2));
  return exact ? exact : size;
}

std::optional<PrintedSize> asked_size(std::string_view text) {
  for (const std::string_view anchor :
       {"trying to allocate ", "tried to allocate ", "Failed to allocate request for ",
        "Out of memory allocating ", "failed to allocate ", "failed to alloc ", "Failed to allocate ",
        "host memory of size: ", "Unable to allocate ", "Invalid buffer size: ", "Attempting to allocate ",
        "requested buffer of size ", "allocating "}) {
    if (auto size = exact_size_after(text, anchor)) return size;
  }
  if (auto size = size_after(text, "Tried to allocate ")) return size;
  return tensor_size(text);
}

// "Stats: Limit: 503270604 InUse: 503061248"; of a TPU "Used 20.05G of 15.48G hbm".
void read_pool(std::string_view text, OomMessage& message) {
  const std::size_t stats = text.find("Stats: ");
  if (stats != std::string_view::npos) {
    const std::string_view rest = text.substr(stats);
    message.allowed = exactly(number_after(rest, "Limit: "));
    if (message.allowed && message.allowed->bytes == 0)
      message.allowed.reset();  // the driver's pool has none
    message.in_use = exactly(number_after(rest, "InUse: "));
  }
  // A warning of XLA before the failure: "Can't reduce memory use below 15.00GiB (…); only reduced
  // to 39.2GiB"
  const auto base = exact_size_after(text, "reduce memory use below ");
  if (base && base->bytes > 0) {  // 0: the program's arguments alone are more than the device has
    message.total = base;
    message.in_use = exact_size_after(text, "only reduced to ");
    return;
  }
  if (const std::size_t used = text.find("Used "); used != std::string_view::npos && has(text, " hbm")) {
    message.total = size_after(text.substr(used), " of ");
    message.in_use = size_after(text, "Used ");
  }
}

// TensorFlow's allocators of the computer's memory: cpu, mklcpu, gpu_host_bfc, cuda_host_bfc.
bool is_host_allocator(std::string_view text) {
  for (const std::string_view name : {"by allocator cpu", "by allocator mklcpu", "host_bfc"}) {
    if (has(text, name)) return true;
  }
  return false;
}

OomMessage message_of(const Words& words, std::string_view text, std::size_t at) {
  OomMessage message;
  message.layout = words.layout;
  message.evidence = clause_at(text, at, words.words);
  message.remark = words.remark;
  message.messages = 1;
  message.framework = framework_of(text);
  if (words.layout == OomLayout::other_cuda_error || words.layout == OomLayout::absurd_size) return message;
  message.tried = asked_size(text.substr(at));
  if (!message.tried) message.tried = asked_size(text);
  read_pool(text, message);
  return message;
}

}  // namespace

std::string without_other_words(std::string_view text) {
  constexpr std::array<std::string_view, 7> kOthers{"quota",
                                                    "Quota",
                                                    "message larger than",
                                                    "java.lang.",
                                                    "except MemoryError",
                                                    "in str(",
                                                    "without running out of memory"};
  std::string kept;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const auto is_in_line = [&](std::string_view words) {
      return line.find(words) != std::string_view::npos;
    };
    if (std::ranges::none_of(kOthers, is_in_line)) kept += std::string(line) + '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return kept;
}

OomMessage parse_words(std::string_view line) {
  // A warning of TensorFlow names a lack of memory that failed nothing; what comes after it may have.
  constexpr std::string_view kHarmless = "this is not a failure";
  std::size_t after = 0;
  for (std::size_t at = line.find(kHarmless); at != std::string_view::npos;
       at = line.find(kHarmless, at + 1)) {
    after = at;
  }
  std::size_t place = std::string_view::npos;
  const Words* words = first_of(line, kAbsurd, place);
  if (words == nullptr) {
    words = first_of(line.substr(after), kMemoryWords, place);
    place += words == nullptr ? 0 : after;
  }
  const bool harmless = words == nullptr && after > 0;
  if (harmless) words = first_of(line, kMemoryWords, place);
  if (words == nullptr) words = first_of(line, kOtherErrors, place);
  if (words == nullptr) return {};
  OomMessage message = message_of(*words, line, place);
  if (harmless) message.layout = OomLayout::not_a_failure;
  const bool device_words =
      message.layout == OomLayout::resource_exhausted || message.layout == OomLayout::driver;
  if (device_words && is_host_allocator(line)) {
    message.layout = OomLayout::host_memory;
    message.remark = "an allocator of the computer's memory";
  }
  if (message.layout == OomLayout::driver && !message.framework.empty()) {
    message.layout = OomLayout::resource_exhausted;
  }
  return message;
}

}  // namespace vramlab
