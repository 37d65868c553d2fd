#include "lab/oom/diagnosis.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/oom/reasoning.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

void list_given_figures(const OomMessage& message, OomDiagnosis& diagnosis) {
  const auto add = [&](const std::string& name, const std::optional<PrintedSize>& size, const char* meaning) {
    if (size) diagnosis.figures.push_back({name, size->bytes, size->low, size->high, true, meaning});
  };
  const bool as_asked = message.layout == OomLayout::cuda_malloc_async ||
                        message.layout == OomLayout::host_memory ||
                        message.layout == OomLayout::resource_exhausted;
  add("tried", message.tried,
      as_asked ? "what the program asked for"
               : "asked of the driver: the size of a segment, at least that of the tensor");
  add("total", message.total, "memory of the card, for all processes");
  add("free", message.free, "not in use by any process at that moment");
  add("this_process", message.own_process,
      "held by this process as the driver counts it: reserved memory, context, libraries");
  for (const auto& process : message.others) {
    add("process_" + std::to_string(process.pid), process.size, "held by another process on the card");
  }
  add("allowed", message.allowed, "limit on reserved memory, from the memory fraction");
  add("allocated", message.allocated,
      message.private_pools ? "in blocks of live tensors, and idle memory of private pools"
                            : "in blocks of live tensors");
  add("private_pools", message.private_pools,
      "idle in private pools (CUDA graphs, MemPools); only they can use it");
  add("idle", message.idle, "reserved and not allocated: cached for later requests");
  add("reserved", message.reserved, "taken from the driver: allocated and idle");
}

void list_computed_figures(const OomMessage& message, const OomSizes& sizes, OomDiagnosis& diagnosis) {
  if (message.layout == OomLayout::cuda_malloc_async) return;
  const auto add = [&](const char* name, const SizeRange& size, const char* meaning) {
    const SizeRange shown = size.at_least_zero();
    diagnosis.figures.push_back(
        {name, shown.bytes(), static_cast<Bytes>(shown.low), static_cast<Bytes>(shown.high), false, meaning});
  };
  if (!message.reserved) add("reserved", sizes.reserved, "taken from the driver: allocated + idle");
  if (!message.idle) add("idle", sizes.idle, "reserved - allocated");
  add("outside", sizes.outside, "in use on the card and not by PyTorch here: total - free - reserved");
  add("own_context", sizes.own_context,
      sizes.others_listed ? "this process outside PyTorch: context, libraries"
                          : "of it assumed to be this process's context, at most 771 MiB");
}

std::string limit_verdict(const OomSizes& sizes, const OomRefusal& refusal) {
  if (!refusal.limit_is_deduced) {
    return fmt::format(
        "{} reserved and the {} asked for exceed the {} that this process may reserve; the card has {} free",
        size_text(sizes.reserved), size_text(sizes.tried), size_text(*sizes.allowed), size_text(sizes.free));
  }
  const FractionRange fraction = deduced_fraction(sizes);
  const std::string which = fraction.round ? fmt::format("; {:g} fits", *fraction.round) : "";
  return fmt::format(
      "{} were asked for and {} are free, so a memory fraction refused (between {:.4f} and {:.4f} of the "
      "card{}); {} reserved",
      size_text(sizes.tried), size_text(sizes.free), fraction.low, fraction.high, which,
      size_text(sizes.reserved));
}

std::string verdict_text(OomCause cause, const OomSizes& sizes, const OomRefusal& refusal) {
  switch (cause) {
    case OomCause::fraction_limit:
      return limit_verdict(sizes, refusal);
    case OomCause::fragmentation:
      return fmt::format("{} idle and {} free would hold the {} asked for, but not in one piece",
                         size_text(sizes.all_idle()), size_text(sizes.free), size_text(sizes.tried));
    case OomCause::other_processes:
      return fmt::format("they hold {}; {} were left free for the {} asked for", size_text(sizes.others),
                         size_text(sizes.free), size_text(sizes.tried));
    case OomCause::too_big: {
      const SizeRange need = sizes.live + sizes.tried + sizes.own_context - sizes.total;
      return fmt::format(
          "{} in live tensors, {} of context and the {} asked for are {} more than the card has",
          size_text(sizes.live), size_text(sizes.own_context), size_text(sizes.tried), size_text(need));
    }
    default:
      return "";
  }
}

const FigureCheck* first_broken(const std::vector<FigureCheck>& checks) {
  const auto broken = std::find_if(checks.begin(), checks.end(), [](const FigureCheck& check) {
    return check.outcome == FigureCheck::Outcome::broken;
  });
  return broken == checks.end() ? nullptr : &*broken;
}

void reason(const OomMessage& message, const OomSizes& sizes, OomDiagnosis& diagnosis) {
  const OomRefusal refusal = refusal_of(sizes, message.layout);
  diagnosis.checks = check_figures(message, sizes, refusal);
  if (const FigureCheck* broken = first_broken(diagnosis.checks)) {
    diagnosis.cause = OomCause::inconsistent;
    diagnosis.verdict = broken->what + " does not hold (" + broken->remark + ")";
  } else {
    diagnosis.cause = cause_of(sizes, refusal);
    diagnosis.verdict = verdict_text(diagnosis.cause, sizes, refusal);
    if (!refusal.limit_is_deduced || deduced_fraction(sizes).round) {
      diagnosis.short_by = std::max<std::int64_t>(shortfall(sizes, refusal).value, 0);
    }
  }
  if (message.layout != OomLayout::cuda_malloc_async) {
    diagnosis.idle = sizes.all_idle().bytes();
    diagnosis.others = sizes.others.bytes();
  }
  diagnosis.advice = advice_for(diagnosis.cause, message, sizes, refusal);
}

// Layouts without the figures that a diagnosis needs.
void reason_without_figures(const OomMessage& message, OomDiagnosis& diagnosis) {
  using Helps = OomAdvice::Helps;
  diagnosis.cause = OomCause::not_memory;
  switch (message.layout) {
    case OomLayout::absurd_size:
      diagnosis.verdict = "a request of 2^60 bytes or more is a wrong size, not a lack of memory";
      diagnosis.advice = {{"finding the shape that was computed wrongly", Helps::yes,
                           "such a size comes from an overflow, a negative length or uninitialised data"}};
      return;
    case OomLayout::host_memory:
      diagnosis.verdict =
          fmt::format("the computer's memory ran out, not the card's (\"{}\")", message.evidence);
      diagnosis.advice = {{"fewer or leaner loader workers, no copies in host memory", Helps::yes,
                           "the request was for host memory"},
                          {"allocator settings of PyTorch", Helps::no, "they concern the card"}};
      return;
    case OomLayout::other_cuda_error:
      diagnosis.verdict = fmt::format("another error of CUDA (\"{}\")", message.evidence);
      diagnosis.advice = {
          {"running with CUDA_LAUNCH_BLOCKING=1", Helps::yes, "it shows the call that failed"},
          {"a smaller batch", Helps::no, "nothing says that memory was short"}};
      return;
    default:
      break;
  }
  diagnosis.cause = OomCause::undetermined;
  diagnosis.verdict =
      message.evidence.empty()
          ? "device memory ran out; the message is cut off before the figures that tell why"
          : fmt::format("device memory ran out (\"{}\"); no figures tell why", message.evidence);
  if (message.evidence.empty()) {
    diagnosis.advice = {{"the whole text of the error", Helps::yes, "its figures tell the cause"}};
    return;
  }
  const bool jax = message.layout == OomLayout::resource_exhausted;
  diagnosis.advice = {
      {jax ? "a smaller XLA_PYTHON_CLIENT_MEM_FRACTION for the others, or none preallocated"
           : "torch.cuda.empty_cache() before the call",
       Helps::perhaps,
       jax ? "JAX takes 75 % of the card at its start; TensorFlow nearly all"
           : "a library or the driver allocates outside PyTorch's cache and cannot use what is idle in it"},
      {"torch.cuda.memory_stats() and nvidia-smi at that moment", Helps::yes,
       "they tell whether the memory is in live tensors, idle, or held by others"}};
}

}  // namespace

const char* name_of(OomCause cause) {
  // In the order of the enumeration.
  constexpr std::array kNames{
      "too big at any setting", "fragmentation", "limit set by fraction", "other processes", "not memory",
      "inconsistent figures",   "undetermined"};
  return kNames.at(static_cast<std::size_t>(cause));
}

OomDiagnosis diagnose_oom(const OomMessage& message, const std::string& name) {
  if (message.layout == OomLayout::none) {
    throw InputError(name,
                     "holds no out-of-memory message that is known here. Give the text of the error as the "
                     "program printed it, a traceback around it may stay, or the JSON of "
                     "torch.cuda.memory_stats().");
  }
  OomDiagnosis diagnosis;
  diagnosis.layout = name_of(message.layout);
  list_given_figures(message, diagnosis);
  if (const auto sizes = oom_sizes(message)) {
    list_computed_figures(message, *sizes, diagnosis);
    reason(message, *sizes, diagnosis);
  } else {
    reason_without_figures(message, diagnosis);
  }
  return diagnosis;
}

// What torch.cuda.memory_stats() tells: no request is in it, so less than an error's message.
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
