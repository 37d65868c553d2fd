#include "recordings/logs/oom_message.hpp"

#include <algorithm>
#include <array>

namespace vramlab {
namespace {

constexpr std::string_view kTried = "Tried to allocate ";
constexpr std::string_view kAsync = "would exceed allowed memory";
constexpr std::string_view kOutOfMemory = " out of memory";

std::optional<int> device_after(std::string_view text, std::string_view anchor) {
  const auto value = number_after(text, anchor);
  if (!value || *value > 4096) return {};
  return static_cast<int>(*value);
}

std::vector<OomMessage::Process> processes_in(std::string_view text) {
  constexpr std::string_view kAnchor = "Process ";
  constexpr std::string_view kHas = " has ";
  std::vector<OomMessage::Process> processes;
  for (std::size_t at = text.find(kAnchor); at != std::string_view::npos; at = text.find(kAnchor, at + 1)) {
    std::string_view rest = text.substr(at + kAnchor.size());
    const auto pid = take_number(rest);
    if (!pid || !rest.starts_with(kHas)) continue;
    if (const auto size = parse_printed_size(rest.substr(kHas.size()))) processes.push_back({*pid, *size});
  }
  return processes;
}

void read_sentences(std::string_view text, OomMessage& message) {
  message.layout = OomLayout::torch_sentences;
  message.device = device_after(text, "GPU ");
  if (!message.device) message.device = device_after(text, "NPU ");
  message.total = size_after(text, " has a total capacity of ");
  if (!message.total) message.total = size_after(text, " has a total capacty of ");  // 2.1
  message.free = size_after(text, " of which ");
  message.others = processes_in(text);
  message.own_process = size_after(text, "this process has ");
  message.sizes_unknown = text.find(" has 17179869184.00 GiB memory in use") != std::string_view::npos;
  message.allowed = size_before(text, " allowed;");
  message.allocated = size_after(text, "Of the allocated memory ");
  message.private_pools = size_before(text, " allocated in private pools");
  message.idle = size_before(text, " is reserved by PyTorch but unallocated");
}

// Of other backends, too: "(NPU 0; … total capacity; … already allocated; … current active; … free; …)".
void read_parenthesis(std::string_view text, OomMessage& message) {
  message.device = device_after(text, "PU ");
  message.total = size_before(text, " total capacity");
  message.allocated = size_before(text, " already allocated");
  message.free = size_before(text, " free");
  message.allowed = size_before(text, " allowed;");
  message.idle = size_before(text, " cached");
  message.reserved = size_before(text, " reserved in total by PyTorch");
  message.layout = message.idle ? OomLayout::torch_cached : OomLayout::torch_reserved;
}

// "MPS backend out of memory (MPS allocated: 7.43 GB, other allocations: 24.46 GB, max allowed: 32.00 GB)."
void read_mps(std::string_view text, OomMessage& message) {
  message.layout = OomLayout::torch_mps;
  message.allocated = size_after(text, "MPS allocated: ");
  message.outside = size_after(text, "other allocations: ");
  message.allowed = size_after(text, "max allowed: ");
}

// "Currently allocated : 3.97 GiB Requested : …" after blanks were joined.
void read_async(std::string_view text, OomMessage& message) {
  message.device = device_after(text, "Allocation on device ");
  message.allocated = size_after(text, "Currently allocated : ");
  message.tried = size_after(text, "Requested : ");
  message.total = size_after(text, "Device limit : ");
  message.free = size_after(text, "Free (according to CUDA): ");
  message.allowed = size_after(text, "memory fraction) : ");
}

// The word in front of " out of memory" or " backend out of memory".
std::string backend_before(std::string_view text) {
  text = text.substr(0, text.rfind(kOutOfMemory));
  if (text.ends_with(" backend")) text.remove_suffix(8);
  text = text.substr(text.find_last_of(" :'\"(") + 1);
  constexpr std::array<std::string_view, 6> kBackends{"CUDA", "HIP", "XPU", "NPU", "MPS", "MUSA"};
  const bool known = std::find(kBackends.begin(), kBackends.end(), text) != kBackends.end();
  return known ? std::string{text} : std::string{};
}

// The message whose "Tried to allocate" begins at `tried` and that ends before `end`; `begin` is where the
// one before it ended.
OomMessage read_torch(std::string_view all, std::size_t begin, std::size_t tried, std::size_t end) {
  begin -= std::min(begin, std::string_view{"MPS backend"}.size());  // the name of the backend
  const std::string_view before = all.substr(begin, tried - begin);
  const std::string_view text = all.substr(tried, end - tried);
  OomMessage message;
  message.tried = size_after(text, kTried);
  if (!message.tried) return message;
  message.backend = backend_before(before);
  const std::size_t open = std::min(text.find(" (GPU "), text.find(" (NPU "));
  if (message.backend == "MPS") {
    read_mps(before.substr(std::min(before.rfind("(MPS allocated: "), before.size())), message);
  } else if (open < text.find(". GPU ")) {
    read_parenthesis(text.substr(open, text.find(')', open) - open), message);
  } else {
    read_sentences(text, message);
  }
  return message;
}

// Where the message after `at` begins: its figures are no part of the one before.
std::size_t next_message(std::string_view all, std::size_t at) {
  return std::min({all.find(kOutOfMemory, at), all.find(kTried, at), all.size()});
}

std::vector<OomMessage> torch_messages(std::string_view all) {
  std::vector<OomMessage> messages;
  std::size_t begin = 0;
  for (std::size_t at = all.find(kTried); at != std::string_view::npos; at = all.find(kTried, at + 1)) {
    const std::size_t end = next_message(all, at + kTried.size());
    OomMessage message = read_torch(all, begin, at, end);
    begin = end;
    if (message.tried) messages.push_back(std::move(message));
  }
  return messages;
}

std::vector<OomMessage> async_messages(std::string_view all) {
  constexpr std::string_view kBegin = "Allocation on device ";
  std::vector<OomMessage> messages;
  for (std::size_t at = all.find(kAsync); at != std::string_view::npos; at = all.find(kAsync, at + 1)) {
    std::size_t begin = all.rfind(kBegin, at);
    if (begin == std::string_view::npos) begin = at;
    OomMessage message;
    message.layout = OomLayout::cuda_malloc_async;
    message.backend = "CUDA";
    read_async(all.substr(begin, all.find(kBegin, at) - begin), message);
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace

const char* name_of(OomLayout layout) {
  constexpr std::array kNames{"none",
                              "torch-cached",
                              "torch-reserved",
                              "torch-sentences",
                              "torch-mps",
                              "cudaMallocAsync",
                              "absurd-size",
                              "driver",
                              "resource-exhausted",
                              "host-memory",
                              "not-a-failure",
                              "other-cuda-error"};
  static_assert(kNames.size() == static_cast<std::size_t>(OomLayout::other_cuda_error) + 1);
  return kNames[static_cast<std::size_t>(layout)];
}

std::vector<OomMessage> parse_oom_messages(std::string_view text) {
  const std::string line = one_line(text);
  // Intel's extension: "Current platform can NOT allocate memory block with size larger than 4GB! Tried to …"
  if (line.find("memory block with size larger than") != std::string::npos) return {parse_words(line)};
  const bool async_first = line.find(kAsync) < line.find(kTried);
  std::vector<OomMessage> messages = async_first ? async_messages(line) : torch_messages(line);
  if (messages.empty()) {
    OomMessage message = parse_words(one_line(without_other_words(text)));
    if (message.layout != OomLayout::none) messages.push_back(std::move(message));
  }
  return messages;
}

OomMessage parse_oom_message(std::string_view text) {
  std::vector<OomMessage> messages = parse_oom_messages(text);
  if (messages.empty()) return {};
  messages.front().messages = messages.size();
  return std::move(messages.front());
}

namespace {

struct Figure {
  const char* name;
  std::optional<PrintedSize> OomMessage::*value;
};

// In the order of the message, but for "allowed", which is compared last.
constexpr std::array kFigures{
    Figure{"tried to allocate", &OomMessage::tried},
    Figure{"total capacity", &OomMessage::total},
    Figure{"allocated by PyTorch", &OomMessage::allocated},
    Figure{"in private pools", &OomMessage::private_pools},
    Figure{"reserved but unallocated", &OomMessage::idle},
    Figure{"allowed", &OomMessage::allowed},
};

std::string text_of(const std::optional<PrintedSize>& size) { return size ? size->text : std::string{}; }

}  // namespace

std::vector<OomFigureDifference> compare_oom_figures(std::string_view recorded, std::string_view simulated) {
  const OomMessage real = parse_oom_message(recorded);
  const OomMessage ours = parse_oom_message(simulated);
  std::vector<OomFigureDifference> differences;
  for (const Figure& figure : kFigures) {
    const std::string a = text_of(real.*figure.value);
    const std::string b = text_of(ours.*figure.value);
    const bool behind_the_cut = a.empty() && !real.idle;
    if (a != b && !behind_the_cut) differences.push_back({figure.name, a, b});
  }
  return differences;
}

}  // namespace vramlab
