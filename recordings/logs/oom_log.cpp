#include "recordings/logs/oom_log.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace vramlab {
namespace {

bool holds(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

template <std::size_t n>
bool holds_any(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view one) { return holds(text, one); });
}

// What launchers put before each line: torchrun's "[rank3]:" and "[default3]:", mpirun's "[1,3]<stderr>:",
// srun's "3: ", Ray's "(Worker pid=71)". Taken off `line`; empty if there is none.
std::string take_writer(std::string_view& line) {
  constexpr std::array<std::string_view, 4> kRanks{"[rank", "[default", "[1,", ""};
  constexpr std::array<std::string_view, 4> kEnds{"]:", "]:", "]<std", ": "};
  for (std::size_t i = 0; i < kRanks.size(); ++i) {
    if (!line.starts_with(kRanks[i])) continue;
    std::string_view rest = line.substr(kRanks[i].size());
    const auto rank = take_number(rest);
    if (!rank || *rank > 100'000 || !rest.starts_with(kEnds[i])) continue;
    rest.remove_prefix(kEnds[i].size());
    if (kRanks[i] == "[1,") rest.remove_prefix(std::min(rest.find(':'), rest.size() - 1) + 1);
    line = rest;
    return "rank " + std::to_string(*rank);
  }
  const std::size_t pid = line.substr(0, 80).find(" pid=");
  const std::size_t end = line.find(')');
  // Schedulers put more in front: "node7: [rank3]: …".
  if (const std::size_t at = line.substr(0, 60).find("[rank"); at != 0 && at != std::string_view::npos) {
    std::string_view rest = line.substr(at);
    if (std::string name = take_writer(rest); !name.empty()) {
      line = rest;
      return name;
    }
  }
  if (!line.starts_with('(') || pid == std::string_view::npos || end == std::string_view::npos || end < pid)
    return {};
  const std::string name{line.substr(1, std::min(end, line.find(',')) - 1)};
  line.remove_prefix(end + 1);
  return name;
}

/// All lines of one writer, in their order.
struct Writer {
  std::string name;
  std::string text;
  std::size_t first_failure = std::string::npos;  ///< line of the whole log
};

bool tells_of_memory(std::string_view line) {
  return holds(line, "Tried to allocate") || holds(line, "out of memory") || holds(line, "allowed memory");
}

// A line without a writer goes on with what the one before it said.
std::vector<Writer> writers_of(std::string_view text) {
  std::vector<Writer> writers(1);
  std::size_t current = 0;
  for (std::size_t number = 0; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with("> ")) line.remove_prefix(2);  // as mails and issues quote
    if (const std::string name = take_writer(line); !name.empty()) {
      const auto known =
          std::find_if(writers.begin(), writers.end(), [&](const Writer& one) { return one.name == name; });
      current = static_cast<std::size_t>(known - writers.begin());
      if (known == writers.end()) writers.push_back({.name = name, .text = {}});
    }
    Writer& writer = writers[current];
    writer.text.append(line).push_back('\n');
    if (tells_of_memory(line)) writer.first_failure = std::min(writer.first_failure, number);
  }
  std::stable_sort(writers.begin(), writers.end(),
                   [](const Writer& a, const Writer& b) { return a.first_failure < b.first_failure; });
  return writers;
}

// The same figures: a traceback and a logger often print one failure twice.
bool is_repeated(const OomMessage& a, const OomMessage& b) {
  const auto text = [](const std::optional<PrintedSize>& size) { return size ? size->text : std::string{}; };
  return a.layout == b.layout && a.device == b.device && text(a.tried) == text(b.tried) &&
         text(a.free) == text(b.free) && text(a.allocated) == text(b.allocated) &&
         text(a.idle) == text(b.idle) && text(a.reserved) == text(b.reserved) &&
         text(a.in_use) == text(b.in_use);
}

void add_failure(OomLog& log, OomMessage message, const std::string& writer) {
  const auto same = std::find_if(log.failures.begin(), log.failures.end(), [&](const LoggedOom& one) {
    return one.writer == writer && is_repeated(one.message, message);
  });
  if (same != log.failures.end()) {
    ++same->times;
  } else {
    log.failures.push_back({std::move(message), writer});
  }
}

void read_failures(std::string_view text, OomLog& log) {
  for (const Writer& writer : writers_of(text)) {
    for (OomMessage& message : parse_oom_messages(writer.text))
      add_failure(log, std::move(message), writer.name);
  }
  // Figures say more than words: words count only where no message has figures.
  const auto has_figures = [](const LoggedOom& one) { return one.message.tried && one.message.allocated; };
  if (std::any_of(log.failures.begin(), log.failures.end(), has_figures)) {
    std::erase_if(log.failures, [](const LoggedOom& one) { return !one.message.tried; });
  }
}

// "|    0   N/A  N/A      1183      C   python3      75660MiB |"; older tables lack the two N/A.
std::optional<SmiProcess> smi_process(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(" |\r"); at != std::string_view::npos;
       at = line.find_first_not_of(" |\r", at)) {
    const std::size_t end = std::min(line.find_first_of(" |\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  const auto is_type = [](std::string_view word) { return word == "C" || word == "G" || word == "C+G"; };
  const auto type = std::find_if(words.begin(), words.end(), is_type);
  if (words.size() < 5 || type == words.end() || type - words.begin() < 2 || words.end() - type < 3)
    return {};
  std::string_view gpu = words.front();
  std::string_view pid = *(type - 1);
  const auto gpu_number = take_number(gpu);
  const auto pid_number = take_number(pid);
  if (!gpu_number || *gpu_number > 4096 || !gpu.empty() || !pid_number || !pid.empty()) return {};
  const auto bytes = parse_printed_size(words.back());
  return SmiProcess{.gpu = static_cast<int>(*gpu_number),
                    .pid = *pid_number,
                    .name = std::string{*(type + 1)},
                    .bytes = bytes ? std::optional{bytes->bytes} : std::nullopt};
}

// "|  12000MiB / 24576MiB |"
std::optional<SmiCard> smi_card(std::string_view line) {
  const std::size_t slash = line.find("MiB / ");
  if (slash == std::string_view::npos || !line.starts_with('|')) return {};
  const std::size_t begin = line.find_last_not_of("0123456789", slash - 1) + 1;
  const auto used = parse_printed_size(line.substr(begin));
  const auto total =
      parse_printed_size(line.substr(std::min(line.find_first_not_of(' ', slash + 6), line.size())));
  if (!used || !total) return {};
  return SmiCard{used->bytes, total->bytes};
}

void read_smi(std::string_view text, OomLog& log) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find('|'), line.size()));
    if (auto process = smi_process(line)) log.smi_processes.push_back(std::move(*process));
    if (const auto card = smi_card(line)) log.smi_cards.push_back(*card);
  }
}

// What the message itself advises ("try setting PYTORCH_CUDA_ALLOC_CONF=…") was not in force.
std::vector<std::string> settings_in(std::string_view text) {
  constexpr std::array<std::string_view, 7> kNames{
      "expandable_segments:",      "max_split_size_mb:", "garbage_collection_threshold:",
      "roundup_power2_divisions:", "backend:",           "expandable_segments_reserve:",
      "throw_on_cudamalloc_oom:"};
  std::vector<std::string> settings;
  for (const std::string_view name : kNames) {
    for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      const std::size_t advice = text.rfind("try setting", at);
      if (advice != std::string_view::npos && at - advice < 60) continue;
      const std::size_t end = std::min(text.find_first_of(" ,;'\"\n\r)`", at), text.size());
      std::string setting{text.substr(at, end - at)};
      if (std::find(settings.begin(), settings.end(), setting) == settings.end() &&
          setting.size() > name.size()) {
        settings.push_back(std::move(setting));
      }
    }
  }
  return settings;
}

std::string version_in(std::string_view text) {
  for (const std::string_view anchor :
       {"orch version: ", "orch Version: ", "torch==", "torch: ", "PyTorch ", "torch "}) {
    for (std::size_t at = text.find(anchor); at != std::string_view::npos; at = text.find(anchor, at + 1)) {
      std::string_view rest = text.substr(at + anchor.size(), 8);
      const std::string_view begin = rest;
      const auto major = take_number(rest);
      if (!major || *major > 9 || !rest.starts_with('.')) continue;
      rest.remove_prefix(1);
      if (take_number(rest)) return std::string{begin.substr(0, begin.size() - rest.size())};
    }
  }
  return {};
}

// "C:\\Users": a letter, and a name behind.
bool names_drive(std::string_view text) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = text.find(":\\", 1); at != std::string_view::npos; at = text.find(":\\", at + 1)) {
    const bool drive = is_letter(text[at - 1]) && (at < 2 || !is_letter(text[at - 2]));
    if (drive && at + 2 < text.size() && (is_letter(text[at + 2]) || text[at + 2] == '\\')) return true;
  }
  return false;
}

// Paths and names that only one system has.
std::string platform_of(std::string_view text) {
  constexpr std::array<std::string_view, 4> kWindows{"\\site-packages\\", "\\lib\\", "Windows", "WDDM"};
  constexpr std::array<std::string_view, 3> kJetson{"Jetson", "tegra", "nvmap"};
  constexpr std::array<std::string_view, 3> kMac{"/Users/", "macOS", "/opt/homebrew"};
  constexpr std::array<std::string_view, 6> kLinux{"/home/", "/root/", "/opt/",
                                                   "/usr/",  "Linux",  "/lib/python"};
  if (holds_any(text, kWindows) || names_drive(text)) return "Windows";
  if (holds_any(text, kJetson)) return "Jetson";
  if (holds_any(text, kMac)) return "macOS";
  return holds_any(text, kLinux) ? "Linux" : "";
}

}  // namespace

OomLog read_oom_log(std::string_view text) {
  constexpr std::array<std::string_view, 4> kPinning{"pin_memory", "cudaHostAlloc", "CachingHostAllocator",
                                                     "hipHostMalloc"};
  OomLog log;
  read_failures(text, log);
  log.counters = parse_memory_counters(text);
  read_smi(text, log);
  log.settings = settings_in(text);
  log.torch_version = version_in(text);
  log.is_before_2_5 = holds(text, "torch.cuda.OutOfMemoryError") || holds(text, "total capacty");
  for (const std::string_view name :
       {"XLA_PYTHON_CLIENT_MEM_FRACTION=", "XLA_CLIENT_MEM_FRACTION=", "TF_FORCE_GPU_ALLOW_GROWTH="}) {
    if (holds(text, name)) log.settings_of_frameworks.emplace_back(name);
  }
  log.platform = platform_of(text);
  log.pins_memory = holds_any(text, kPinning);
  return log;
}

}  // namespace vramlab
