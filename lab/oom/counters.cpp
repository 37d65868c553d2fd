// What the counters of the allocator tell: no request is in them, so less than an error's message.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/oom/reasoning.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using CounterHelps = OomAdvice::Helps;

struct NamedSize {
  const char* key;   ///< with dots, as memory_stats() names it
  const char* name;  ///< of the figure
  const char* meaning;
};

constexpr std::array kSizes{
    NamedSize{"allocated_bytes.all.current", "allocated", "in blocks of live tensors"},
    NamedSize{"requested_bytes.all.current", "requested", "what the program asked for, before rounding"},
    NamedSize{"active_bytes.all.current", "active", "allocated, or freed and waiting for another stream"},
    NamedSize{"reserved_bytes.all.current", "reserved", "taken from the driver"},
    NamedSize{"inactive_split_bytes.all.current", "idle_pinned",
              "idle pieces of segments that also hold live tensors: cannot be given back"},
    NamedSize{"allocated_bytes.all.peak", "peak_allocated", "most allocated since the last reset"},
    NamedSize{"reserved_bytes.all.peak", "peak_reserved", "most reserved since the last reset"},
};

std::optional<std::int64_t> json_counter(const Json& stats, std::string_view key) {
  if (const auto flat = stats.find(std::string{key}); flat != stats.end()) {
    return flat->is_number_integer() ? std::optional{flat->get<std::int64_t>()} : std::nullopt;
  }
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {};
  const auto inner = stats.find(std::string{key.substr(0, dot)});
  if (inner == stats.end() || !inner->is_object()) return {};
  return json_counter(*inner, key.substr(dot + 1));
}

SizeRange value_of(const MemoryCounters& counters, std::string_view key, const SizeRange& otherwise = {}) {
  const PrintedSize* value = counters.find(key);
  return value == nullptr ? otherwise : range_of(*value);
}

// Whether nearly all reserved memory was live at the peaks: what is idle now was freed after the failure.
bool was_full(const MemoryCounters& counters) {
  const SizeRange allocated = value_of(counters, "allocated_bytes.all.peak");
  const SizeRange reserved = value_of(counters, "reserved_bytes.all.peak");
  return reserved.value > 0 && allocated.value / 9 >= reserved.value / 10;
}

void compare(OomDiagnosis& diagnosis, const char* what, const SizeRange& less, const SizeRange& more) {
  const bool holds = exceeds(less, more) != Answer::yes;
  diagnosis.checks.push_back({fmt::format("{}: {} <= {}", what, less.value, more.value),
                              holds ? FigureCheck::Outcome::holds : FigureCheck::Outcome::broken,
                              holds ? "" : "counters of one moment always keep this"});
  if (!holds) diagnosis.cause = OomCause::inconsistent;
}

void check_counters(const MemoryCounters& counters, const SizeRange& allocated, const SizeRange& active,
                    const SizeRange& reserved, OomDiagnosis& diagnosis) {
  const SizeRange pinned = value_of(counters, "inactive_split_bytes.all.current");
  compare(diagnosis, "allocated <= active", allocated, active);
  compare(diagnosis, "active + pinned idle <= reserved", active + pinned, reserved);
  if (counters.find("reserved_bytes.all.peak") != nullptr) {
    compare(diagnosis, "reserved <= its peak", reserved, value_of(counters, "reserved_bytes.all.peak"));
  }
  if (counters.find("allocated_bytes.all.peak") != nullptr) {
    compare(diagnosis, "allocated <= its peak", allocated, value_of(counters, "allocated_bytes.all.peak"));
  }
}

void advise(OomDiagnosis& diagnosis, std::int64_t pinned, std::int64_t returnable) {
  diagnosis.advice = {
      {"torch.cuda.empty_cache()", returnable > 0 ? CounterHelps::perhaps : CounterHelps::no,
       fmt::format(
           "{} lie in segments without a live tensor and could go to other processes; PyTorch gives them "
           "back itself before it fails",
           oom_size(static_cast<Bytes>(returnable)))},
      {"expandable_segments:True", pinned > 0 ? CounterHelps::perhaps : CounterHelps::no,
       fmt::format("{} are idle in segments that hold live tensors", oom_size(static_cast<Bytes>(pinned)))},
      {"the text of the error", CounterHelps::yes, "it names the request, the free memory and the limit"}};
}

std::string peak_text(const MemoryCounters& counters) {
  const PrintedSize* live = counters.find("allocated_bytes.all.peak");
  const PrintedSize* reserved = counters.find("reserved_bytes.all.peak");
  if (live == nullptr || reserved == nullptr) return {};
  return fmt::format("peaks: {} allocated, {} reserved", size_text(range_of(*live)),
                     size_text(range_of(*reserved)));
}

// How much of what was reserved was live when most was; the peaks need not be of one moment.
std::vector<PossibleCause> causes_by_peaks(const MemoryCounters& counters) {
  const SizeRange live = value_of(counters, "allocated_bytes.all.peak");
  const SizeRange reserved = value_of(counters, "reserved_bytes.all.peak");
  const std::string peaks = reserved.value <= 0 ? "the counters hold no peaks"
                                                : fmt::format("at the peaks {} of {} reserved were live",
                                                              size_text(live), size_text(reserved));
  const PossibleCause too_big{name_of(OomCause::too_big), peaks,
                              "by the error's text, live memory and the request exceed the card"};
  const PossibleCause holes{name_of(OomCause::fragmentation), peaks,
                            "by the error's text, idle and free memory hold the request"};
  const bool mostly_live = live.value >= reserved.value / 10 * 9;
  return mostly_live ? std::vector{too_big, holes} : std::vector{holes, too_big};
}

}  // namespace

OomDiagnosis diagnose_counters(const MemoryCounters& counters) {
  OomDiagnosis diagnosis;
  diagnosis.layout = counters.from_summary ? "memory_summary" : "memory_stats";
  for (const NamedSize& size : kSizes) {
    if (const PrintedSize* value = counters.find(size.key)) {
      diagnosis.figures.push_back({size.name, value->bytes, value->low, value->high, true, size.meaning});
    }
  }
  const SizeRange allocated = value_of(counters, "allocated_bytes.all.current");
  const bool knows_reserved = counters.find("reserved_bytes.all.current") != nullptr;
  const SizeRange active = value_of(counters, "active_bytes.all.current", allocated);
  const SizeRange reserved = value_of(counters, "reserved_bytes.all.current", active);
  const std::int64_t pinned = value_of(counters, "inactive_split_bytes.all.current").value;
  const auto ooms = value_of(counters, "num_ooms").value;
  const auto retries = value_of(counters, "num_alloc_retries").value;
  if (knows_reserved) check_counters(counters, allocated, active, reserved, diagnosis);
  const SizeRange idle = (reserved - active).at_least_zero();
  if (knows_reserved) diagnosis.idle = idle.bytes();
  // What lies in segments without a live tensor goes back to the driver before a request fails.
  const SizeRange stuck = value_of(counters, "inactive_split_bytes.all.current", idle);
  const std::string count = counters.find("num_ooms") == nullptr
                                ? "failed allocations are not counted in it"
                                : fmt::format("failed allocations: {}, retries: {}", ooms, retries);
  diagnosis.key_figures = {
      fmt::format(
          "allocated {}, active {}{}", size_text(allocated), size_text(active),
          knows_reserved ? fmt::format(", reserved {} ({} idle)", size_text(reserved), size_text(idle)) : ""),
      count};
  if (const std::string peaks = peak_text(counters); !peaks.empty()) diagnosis.key_figures.push_back(peaks);
  if (diagnosis.cause == OomCause::inconsistent) {
    diagnosis.verdict = "the counters cannot all be of one moment";
    return diagnosis;
  }
  if (ooms == 0 && counters.find("num_ooms") != nullptr) {
    diagnosis.cause = OomCause::not_memory;
    diagnosis.verdict = fmt::format("no allocation had failed when this was printed ({})", count);
  } else if (stuck.value > allocated.value && !was_full(counters)) {
    diagnosis.cause = OomCause::fragmentation;
    diagnosis.verdict = fmt::format("{}; more of the reserved memory is idle ({}) than allocated ({})", count,
                                    size_text(stuck), size_text(allocated));
    diagnosis.notes = {
        "Inferred from the counters alone: they hold neither the request nor the free memory."};
  } else {
    diagnosis.verdict = fmt::format("{}; the counters hold neither the request nor the free memory", count);
    diagnosis.possible_causes = causes_by_peaks(counters);
  }
  if (retries > 0) {
    diagnosis.notes.emplace_back(
        "Before each retry the cache was given back to the driver: memory is tight, and every time costs "
        "time.");
  }
  diagnosis.steps = {"add the text of the error: it names the request, the free memory and the limit"};
  advise(diagnosis, pinned, std::max<std::int64_t>(idle.value - pinned, 0));
  return diagnosis;
}

OomDiagnosis diagnose_memory_stats(const Json& stats, const std::string& name) {
  MemoryCounters counters;
  const auto read = [&](const std::string& key) {
    const auto value = stats.is_object() ? json_counter(stats, key) : std::nullopt;
    if (!value || *value < 0) return;
    const auto number = static_cast<Bytes>(*value);
    counters.values[key] = {number, number, number, std::to_string(number)};
  };
  for (const NamedSize& size : kSizes) read(size.key);
  for (const char* key :
       {"num_ooms", "num_alloc_retries", "inactive_split.all.current", "segment.all.current"})
    read(key);
  if (counters.find("allocated_bytes.all.current") == nullptr ||
      counters.find("reserved_bytes.all.current") == nullptr) {
    throw InputError(
        name,
        "is JSON, but has no allocated_bytes.all.current and reserved_bytes.all.current; the result "
        "of torch.cuda.memory_stats() is needed.");
  }
  return diagnose_counters(counters);
}

}  // namespace vramlab
