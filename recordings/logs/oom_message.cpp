#include "recordings/logs/oom_message.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace vramlab {
namespace {

constexpr std::string_view kDigits = "0123456789";

struct Unit {
  std::string_view name;
  Bytes bytes;
};

// Longer names first where one begins another.
constexpr std::array kUnits{Unit{"bytes", 1},   Unit{"byte", 1},       Unit{"KiB", 1_KiB}, Unit{"MiB", 1_MiB},
                            Unit{"GiB", 1_GiB}, Unit{"TiB", 1024_GiB}, Unit{"KB", 1_KiB},  Unit{"MB", 1_MiB},
                            Unit{"GB", 1_GiB},  Unit{"TB", 1024_GiB},  Unit{"B", 1}};

std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end == digits.data()) return {};
  return value;
}

std::string_view take_digits(std::string_view& text) {
  const std::size_t n = std::min(text.find_first_not_of(kDigits), text.size());
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// How logs write the character ESC: as it is, or as JSON, Python and printf show it.
constexpr std::array<std::string_view, 4> kEscapes{"\x1b", "\\u001b", "\\x1b", "\\033"};

// What `text` begins with and a terminal obeys instead of showing (ECMA-48): colours, erased lines, titles,
// links. Empty if it begins with nothing of the kind.
std::string_view control_sequence(std::string_view text) {
  const auto escape = std::find_if(kEscapes.begin(), kEscapes.end(),
                                   [&](std::string_view form) { return text.starts_with(form); });
  if (escape == kEscapes.end()) return {};
  std::size_t i = escape->size();
  const auto skip = [&](char low, char high) {
    while (i < text.size() && text[i] >= low && text[i] <= high) ++i;
  };
  const char kind = i < text.size() ? text[i] : '\0';
  if (kind == ']') {  // OSC: ends with BEL or ESC backslash; what has no end is not hidden
    const std::size_t end = text.find_first_of("\x07\x1b\n", i);
    if (end == std::string_view::npos || text[end] == '\n') return text.substr(0, i + 1);
    return text.substr(0, end + (text[end] == '\x07' ? 1 : 2));
  }
  if (kind == '[') ++i;  // CSI: parameters, then as in every other sequence
  if (kind == '[') skip('0', '?');
  skip(' ', '/');  // intermediates, and one final character
  return text.substr(0, i + 1);
}

// Windows terminals write blanks and line ends as moves of the cursor.
bool moves_cursor(std::string_view sequence) {
  return sequence.find('[') != std::string_view::npos &&
         std::string_view{"ABCDEFGHf"}.find(sequence.back()) != std::string_view::npos;
}

// A progress bar that a later one has overwritten: from a carriage return up to the next one of the same
// line.
std::string_view overwritten_bar(std::string_view text) {
  if (!text.starts_with('\r')) return {};
  const std::size_t end = text.find_first_of("\r\n", 1);
  if (end == std::string_view::npos || text[end] != '\r') return {};
  const std::string_view bar = text.substr(0, end);
  return bar.find("%|") == std::string_view::npos ? std::string_view{} : bar;
}

// Blanks and line ends (also as the two characters that JSON logs write) become one blank; what a terminal
// does not show is left out.
std::string one_line(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    std::string_view piece = control_sequence(text);
    if (piece.empty()) piece = overwritten_bar(text);
    const bool hidden = !piece.empty();
    if (!hidden) piece = text.substr(0, text.starts_with("\\n") ? 2 : 1);
    const bool blank =
        hidden ? moves_cursor(piece) : piece.size() == 2 || piece.find_first_of(" \n\r\t") == 0;
    if (!hidden && !blank) line += piece;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
    text.remove_prefix(piece.size());
  }
  return line;
}

std::optional<PrintedSize> size_after(std::string_view text, std::string_view anchor) {
  const std::size_t at = text.find(anchor);
  return at == std::string_view::npos ? std::nullopt : parse_printed_size(text.substr(at + anchor.size()));
}

// The two words in front of the anchor: a number and its unit.
std::optional<PrintedSize> size_before(std::string_view text, std::string_view anchor) {
  const std::size_t end = text.find(anchor);
  if (end == std::string_view::npos || end == 0) return {};
  const std::size_t unit = text.rfind(' ', end - 1);
  if (unit == std::string_view::npos || unit == 0) return {};
  const std::size_t before = text.rfind(' ', unit - 1);
  return parse_printed_size(text.substr(before == std::string_view::npos ? 0 : before + 1));
}

std::optional<int> device_after(std::string_view text, std::string_view anchor) {
  const std::size_t at = text.find(anchor);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + anchor.size());
  const auto value = number(take_digits(rest));
  if (!value || *value > 4096) return {};
  return static_cast<int>(*value);
}

std::vector<OomMessage::Process> processes_in(std::string_view text) {
  constexpr std::string_view kAnchor = "Process ";
  constexpr std::string_view kHas = " has ";
  std::vector<OomMessage::Process> processes;
  for (std::size_t at = text.find(kAnchor); at != std::string_view::npos; at = text.find(kAnchor, at + 1)) {
    std::string_view rest = text.substr(at + kAnchor.size());
    const auto pid = number(take_digits(rest));
    if (!pid || !rest.starts_with(kHas)) continue;
    if (const auto size = parse_printed_size(rest.substr(kHas.size()))) processes.push_back({*pid, *size});
  }
  return processes;
}

void read_sentences(std::string_view text, OomMessage& message) {
  message.device = device_after(text, "GPU ");
  message.total = size_after(text, " has a total capacity of ");
  if (!message.total) message.total = size_after(text, " has a total capacty of ");  // 2.1
  message.free = size_after(text, " of which ");
  message.others = processes_in(text);
  message.own_process = size_after(text, "this process has ");
  message.allowed = size_before(text, " allowed;");
  message.allocated = size_after(text, "Of the allocated memory ");
  message.private_pools = size_before(text, " allocated in private pools");
  message.idle = size_before(text, " is reserved by PyTorch but unallocated");
}

void read_parenthesis(std::string_view text, OomMessage& message) {
  message.device = device_after(text, "(GPU ");
  message.total = size_before(text, " total capacity");
  message.allocated = size_before(text, " already allocated");
  message.free = size_before(text, " free");
  message.idle = size_before(text, " cached");
  message.reserved = size_before(text, " reserved in total by PyTorch");
  message.layout = message.idle ? OomLayout::torch_cached : OomLayout::torch_reserved;
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

// Layouts told by words, from the most telling to the least.
struct Words {
  std::string_view words;
  OomLayout layout;
};
constexpr std::array kWords{
    Words{"more than 1EB memory", OomLayout::absurd_size},
    Words{"CUDA error: out of memory", OomLayout::driver},
    Words{"CUDA_ERROR_OUT_OF_MEMORY", OomLayout::driver},
    Words{"CUBLAS_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"CUDNN_STATUS_ALLOC_FAILED", OomLayout::driver},
    Words{"cudaErrorMemoryAllocation", OomLayout::driver},
    Words{"Cuda failure 'out of memory'", OomLayout::driver},
    Words{"RESOURCE_EXHAUSTED", OomLayout::resource_exhausted},
    Words{"ResourceExhaustedError", OomLayout::resource_exhausted},
    Words{"Out of memory while trying to allocate", OomLayout::resource_exhausted},
    Words{"DefaultCPUAllocator", OomLayout::host_memory},
    Words{"std::bad_alloc", OomLayout::host_memory},
    Words{"Unable to allocate", OomLayout::host_memory},
    Words{"MemoryError", OomLayout::host_memory},
    Words{"Cannot allocate memory", OomLayout::host_memory},
    Words{"killed by signal: Killed", OomLayout::host_memory},
    Words{"oom-kill", OomLayout::host_memory},
    Words{"OOMKilled", OomLayout::host_memory},
    Words{"Out of memory: Kill", OomLayout::host_memory},
    Words{"insufficient shared memory", OomLayout::host_memory},
    Words{"CUDA error: ", OomLayout::other_cuda_error},
    Words{"HIP error: ", OomLayout::other_cuda_error},
    Words{"CUBLAS_STATUS_", OomLayout::other_cuda_error},
    Words{"CUDNN_STATUS_", OomLayout::other_cuda_error},
    Words{"CUDA out of memory", OomLayout::driver},
    Words{"out of memory", OomLayout::driver},
};

// The words and what follows them, up to the end of the clause: names the error in the answer.
std::string clause_at(std::string_view text, std::size_t at) {
  const std::size_t end = std::min({text.find(". ", at), text.find(" at ", at), at + 100, text.size()});
  text = text.substr(at, end - at);
  return std::string{text.substr(0, text.find_last_not_of(' ') + 1)};
}

void read_words(std::string_view text, OomMessage& message) {
  for (const Words& words : kWords) {
    const std::size_t at = text.find(words.words);
    if (at == std::string_view::npos) continue;
    message.layout = words.layout;
    message.evidence = clause_at(text, at);
    message.messages = 1;
    if (words.layout == OomLayout::resource_exhausted) {
      message.tried = size_after(text, "trying to allocate ");
    }
    if (words.layout == OomLayout::host_memory) message.tried = size_after(text, "tried to allocate ");
    return;
  }
}

std::size_t count(std::string_view text, std::string_view words) {
  std::size_t n = 0;
  for (std::size_t at = text.find(words); at != std::string_view::npos; at = text.find(words, at + 1)) ++n;
  return n;
}

}  // namespace

const char* name_of(OomLayout layout) {
  constexpr std::array kNames{
      "none",        "torch-cached", "torch-reserved",     "torch-sentences", "cudaMallocAsync",
      "absurd-size", "driver",       "resource-exhausted", "host-memory",     "other-cuda-error"};
  static_assert(kNames.size() == static_cast<std::size_t>(OomLayout::other_cuda_error) + 1);
  return kNames[static_cast<std::size_t>(layout)];
}

std::optional<PrintedSize> parse_printed_size(std::string_view text) {
  const std::string_view begin = text;
  const auto whole = number(take_digits(text));
  if (!whole || *whole > 10'000'000'000'000'000) return {};
  std::string_view decimals;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = take_digits(text);
    if (decimals.empty() || decimals.size() > 6) return {};
  }
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const Unit& candidate) { return text.starts_with(candidate.name); });
  if (unit == kUnits.end() || *whole > (Bytes{1} << 60) / unit->bytes) return {};
  text.remove_prefix(unit->name.size());

  PrintedSize size;
  size.text = begin.substr(0, begin.size() - text.size());
  Bytes scale = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
  const Bytes fraction = (number(decimals).value_or(0) * unit->bytes + scale / 2) / scale;
  size.bytes = *whole * unit->bytes + fraction;
  // Half a unit of the last digit to either side; whole bytes are exact.
  const Bytes half = unit->bytes == 1 ? 0 : (unit->bytes + 2 * scale - 1) / (2 * scale);
  size.low = size.bytes > half ? size.bytes - half : 0;
  size.high = size.bytes + half;
  return size;
}

OomMessage parse_oom_message(std::string_view text) {
  constexpr std::string_view kTried = "Tried to allocate ";
  constexpr std::string_view kAsync = "would exceed allowed memory";
  const std::string line = one_line(text);
  const std::string_view all = line;
  OomMessage message;
  const std::size_t tried = all.find(kTried);
  const std::size_t async = all.find(kAsync);
  if (tried < async) {
    const std::string_view first = all.substr(tried, all.find(kTried, tried + 1) - tried);
    message.tried = size_after(first, kTried);
    if (message.tried) {
      message.messages = count(all, kTried);
      message.layout = OomLayout::torch_sentences;
      first.find(" (GPU ") != std::string_view::npos ? read_parenthesis(first, message)
                                                     : read_sentences(first, message);
      return message;
    }
  }
  if (async != std::string_view::npos) {
    const std::size_t begin = all.rfind("Allocation on device ", async);
    message.layout = OomLayout::cuda_malloc_async;
    message.messages = count(all, kAsync);
    read_async(all.substr(begin == std::string_view::npos ? async : begin), message);
    return message;
  }
  read_words(all, message);
  return message;
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
