// What torch.cuda.memory_stats() tells: no request is in it, so less than an error's message.
#include <array>

#include <fmt/format.h>

#include "lab/oom_diagnosis.hpp"
#include "sim/core/error.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using Helps = OomAdvice::Helps;

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

std::optional<std::int64_t> counter(const Json& stats, std::string_view key) {
  if (const auto flat = stats.find(std::string{key}); flat != stats.end()) {
    return flat->is_number_integer() ? std::optional{flat->get<std::int64_t>()} : std::nullopt;
  }
  const std::size_t dot = key.find('.');
  if (dot == std::string_view::npos) return {};
  const auto inner = stats.find(std::string{key.substr(0, dot)});
  if (inner == stats.end() || !inner->is_object()) return {};
  return counter(*inner, key.substr(dot + 1));
}

void check(OomDiagnosis& diagnosis, const char* what, std::int64_t less, std::int64_t more) {
  const bool holds = less <= more;
  diagnosis.checks.push_back({fmt::format("{}: {} <= {}", what, less, more),
                              holds ? FigureCheck::Outcome::holds : FigureCheck::Outcome::broken,
                              holds ? "" : "counters of one moment always keep this"});
  if (!holds) diagnosis.cause = OomCause::inconsistent;
}

void advise(OomDiagnosis& diagnosis, std::int64_t pinned, std::int64_t returnable) {
  diagnosis.advice = {
      {"torch.cuda.empty_cache()", returnable > 0 ? Helps::perhaps : Helps::no,
       fmt::format(
           "{} lie in segments without a live tensor and could go to other processes; PyTorch gives them "
           "back itself before it fails",
           oom_size(static_cast<Bytes>(returnable)))},
      {"expandable_segments:True", pinned > 0 ? Helps::perhaps : Helps::no,
       fmt::format("{} are idle in segments that hold live tensors", oom_size(static_cast<Bytes>(pinned)))},
      {"the text of the error", Helps::yes, "it names the request, the free memory and the limit"}};
}

}  // namespace

OomDiagnosis diagnose_memory_stats(const Json& stats, const std::string& name) {
  const auto allocated = counter(stats, "allocated_bytes.all.current");
  const auto reserved = counter(stats, "reserved_bytes.all.current");
  if (!stats.is_object() || !allocated || !reserved) {
    throw InputError(
        name,
        "is JSON, but has no allocated_bytes.all.current and reserved_bytes.all.current; the result "
        "of torch.cuda.memory_stats() is needed.");
  }
  OomDiagnosis diagnosis;
  diagnosis.layout = "memory_stats";
  for (const NamedSize& size : kSizes) {
    const auto value = counter(stats, size.key);
    if (!value || *value < 0) continue;
    const auto bytes = static_cast<Bytes>(*value);
    diagnosis.figures.push_back({size.name, bytes, bytes, bytes, true, size.meaning});
  }
  const std::int64_t active = counter(stats, "active_bytes.all.current").value_or(*allocated);
  const std::int64_t pinned = counter(stats, "inactive_split_bytes.all.current").value_or(0);
  const std::int64_t ooms = counter(stats, "num_ooms").value_or(0);
  const std::int64_t idle = *reserved - active;
  check(diagnosis, "0 <= allocated", 0, *allocated);
  check(diagnosis, "allocated <= active", *allocated, active);
  check(diagnosis, "active + pinned idle <= reserved", active + pinned, *reserved);
  if (const auto peak = counter(stats, "reserved_bytes.all.peak"))
    check(diagnosis, "reserved <= its peak", *reserved, *peak);
  if (const auto peak = counter(stats, "allocated_bytes.all.peak"))
    check(diagnosis, "allocated <= its peak", *allocated, *peak);
  diagnosis.idle = static_cast<Bytes>(std::max<std::int64_t>(idle, 0));
  if (diagnosis.cause == OomCause::inconsistent) {
    diagnosis.verdict = "the counters cannot all be of one moment";
    return diagnosis;
  }
  const std::string count = fmt::format("num_ooms is {}, num_alloc_retries {}", ooms,
                                        counter(stats, "num_alloc_retries").value_or(0));
  if (ooms == 0) {
    diagnosis.cause = OomCause::not_memory;
    diagnosis.verdict = fmt::format("no allocation has failed ({})", count);
  } else if (idle > *allocated) {
    diagnosis.cause = OomCause::fragmentation;
    diagnosis.verdict = fmt::format("{}; more of the reserved memory is idle ({}) than allocated ({})", count,
                                    oom_size(*diagnosis.idle), oom_size(static_cast<Bytes>(*allocated)));
  } else {
    diagnosis.verdict = fmt::format("{}; the counters hold neither the request nor the free memory", count);
  }
  advise(diagnosis, pinned, std::max<std::int64_t>(idle - pinned, 0));
  return diagnosis;
}

}  // namespace vramlab
