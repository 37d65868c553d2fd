// Refused although more was free than was asked: what may have refused, the likeliest first.
#include <algorithm>

#include <fmt/format.h>

#include "lab/oom/reasoning.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kGib = 1LL << 30;

// On Windows the driver's total is the card's nominal size, "24.00 GiB"; on Linux it is 23.69 GiB or so.
bool has_nominal_total(const OomMessage& message) {
  return message.total && message.total->bytes >= 1_GiB && message.total->text.ends_with(".00 GiB");
}

struct Weighed {
  int weight = 0;  ///< 0 and less: not worth naming
  PossibleCause cause;
};

class OpenVerdict {
 public:
  OpenVerdict(const OomMessage& message, const OomSizes& sizes, const OomLog& log)
      : message_(message), sizes_(sizes), log_(log) {}

  std::vector<PossibleCause> all() {
    largest_allocation();
    windows();
    unified_memory();
    mappings();
    race();
    fraction();
    unprinted_neighbours();
    driver();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Weighed& a, const Weighed& b) { return a.weight > b.weight; });
    std::vector<PossibleCause> causes;
    for (Weighed& one : found_) causes.push_back(std::move(one.cause));
    return causes;
  }

 private:
  void add(int weight, const char* cause, std::string speaks_for, const char* how_to_tell) {
    if (weight > 0) found_.push_back({weight, {cause, std::move(speaks_for), how_to_tell}});
  }
  [[nodiscard]] bool is(const char* backend) const { return message_.backend == backend; }

  void largest_allocation() {
    const bool intel = is("XPU");
    const bool large = sizes_.tried.value >= sizes_.total.value / 4;
    const bool past_four = sizes_.tried.high >= 4 * kGib;
    int weight = 1;
    if (large) weight += 2;
    if (intel && past_four) weight += 4;
    if (sizes_.reserved.value == 0) weight += 1;
    const std::string share =
        fmt::format("{:.0f} % of the card in one piece", 100.0 * static_cast<double>(sizes_.tried.value) /
                                                             static_cast<double>(sizes_.total.value));
    const std::string why =
        intel && past_four ? "Intel's driver allows 4 GiB in one piece by default; " + share
        : large            ? share + (sizes_.reserved.value == 0 ? ", and nothing is reserved" : "")
                           : fmt::format("speaks against: only {} were asked", size_text(sizes_.tried));
    add(weight, "limit on one allocation", why,
        intel ? "two tensors of half the size each fit; export UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1 "
                "lifts it"
              : "two tensors of half the size each fit");
  }

  void windows() {
    const bool windows = log_.platform == "Windows" || message_.sizes_unknown;
    const bool nominal = has_nominal_total(message_) && !is("HIP") && !is("XPU") && !is("NPU");
    const bool elsewhere = !log_.platform.empty() && !windows && !nominal;
    const bool may_be = is("CUDA") || message_.backend.empty();
    const int weight = windows ? 6 : elsewhere ? 0 : nominal ? 5 : may_be ? 3 : 0;
    const std::string why =
        windows   ? "the text names paths of Windows"
        : nominal ? fmt::format("a total of {} is printed by the driver of Windows", size_text(sizes_.total))
                  : "the text does not name the system";
    add(weight, "loader workers and page file on Windows",
        why +
            "; each worker loads CUDA's libraries, and Windows must commit memory for them and for the card",
        "it runs with num_workers=0, or with a larger page file");
  }

  void unified_memory() {
    const bool jetson = log_.platform == "Jetson";
    if (!is("HIP") && !jetson) return;
    add(5, "ROCm and unified memory",
        jetson ? "this card shares the computer's memory"
               : "ROCm backs memory of the card with the computer's, and APUs share it",
        "free -m and rocm-smi --showmeminfo all at the failure; dmesg names amdgpu's refusal; ulimit -l and "
        "the "
        "container's memory limit");
  }

  void mappings() {
    const bool many = sizes_.tried.value <= 32LL << 20 && sizes_.reserved.value > 16 * kGib;
    if (!many || log_.platform == "Windows") return;
    add(4, "limit on the number of mappings",
        fmt::format("only {} were asked with {} reserved, which may be in very many segments",
                    size_text(sizes_.tried), size_text(sizes_.reserved)),
        "wc -l /proc/PID/maps is near sysctl vm.max_map_count (65530); fewer, larger segments pass");
  }

  void race() {
    const bool neighbours = !message_.others.empty() && !sizes_.own_listed_as;
    add(neighbours ? 4 : 3, "a moment's race",
        neighbours
            ? "other processes are on the card; free memory is read after the refusal"
            : "free memory is read after the refusal: another process or thread may have given some back",
        "the figures of free memory differ from run to run; nvidia-smi or rocm-smi every 100 ms shows it");
  }

  void fraction() {
    const bool knows = message_.layout != OomLayout::torch_cached && !sizes_.allowed;
    if (!knows || sizes_.reserved.value == 0 || sizes_.free_is_bound) return;
    const FractionRange range = deduced_fraction(sizes_);
    if (range.low >= 1) return;  // paged
    add(range.round ? 2 : 1, "a memory fraction that is not printed",
        fmt::format("it would lie between {:.4f} and {:.4f} of the card{}", range.low,
                    std::min(range.high, 1.0),
                    range.round ? fmt::format("; {:g} does", *range.round) : ", which nobody sets"),
        "search the program for set_per_process_memory_fraction and per_process_memory_fraction");
  }

  void unprinted_neighbours() {
    if (!sizes_.free_is_bound) return;
    add(2, "other processes", fmt::format("{} prints neither free memory nor processes", message_.backend),
        is("XPU") ? "xpu-smi ps, or torch.xpu.mem_get_info() before the request"
                  : "the tool of the card's driver");
  }

  void driver() {
    if (!is("XPU") && !is("HIP") && !is("NPU")) return;
    add(is("XPU") ? 4 : 1, "the driver", "it refused what its own figures show as free",
        "the same request in a program of three lines; another version of the driver");
  }

  const OomMessage& message_;
  const OomSizes& sizes_;
  const OomLog& log_;
  std::vector<Weighed> found_;
};

}  // namespace

std::vector<PossibleCause> possible_causes(const OomMessage& message, const OomSizes& sizes,
                                           const OomLog& log) {
  return OpenVerdict{message, sizes, log}.all();
}

}  // namespace vramlab
