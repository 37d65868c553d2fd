#include "lab/oom/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/oom/reasoning.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

void list_given_figures(const OomMessage& message, std::optional<std::uint64_t> own_pid,
                        OomDiagnosis& diagnosis) {
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
    add("process_" + std::to_string(process.pid), process.size,
        own_pid == process.pid ? "this process under its number on the host, as the sums show (inferred)"
                               : "held by another process on the card");
  }
  add("allowed", message.allowed,
      message.layout == OomLayout::resource_exhausted ? "limit of the pool that the framework took"
      : message.layout == OomLayout::torch_mps        ? "limit of the high watermark"
                                                      : "limit on reserved memory, from the memory fraction");
  add("in_use", message.in_use, "live in the pool");
  add("other_allocations", message.outside, "of this process, outside PyTorch's cache");
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
  if (sizes.free_is_bound)
    add("free_at_most", sizes.free, "total - reserved; the message prints no free memory");
  if (!message.reserved) add("reserved", sizes.reserved, "taken from the driver: allocated + idle");
  if (!message.idle) add("idle", sizes.idle, "reserved - allocated");
  if (sizes.free_is_bound) return;
  add("outside", sizes.outside, "in use on the card and not by PyTorch here: total - free - reserved");
  add("own_context", sizes.own_context,
      message.own_process   ? "this process outside PyTorch: context, libraries"
      : sizes.own_listed_as ? "this process outside PyTorch: context, libraries (inferred)"
      : sizes.others_listed ? "what the listed processes leave of it: this process's context (inferred)"
                            : "of it assumed to be this process's context; the message does not say");
}

std::string limit_verdict(const OomSizes& sizes, const OomRefusal& refusal) {
  if (!refusal.limit_is_deduced) {
    return fmt::format(
        "{} reserved and the {} asked for exceed the {} that this process may reserve; the card has {} free",
        size_text(sizes.reserved), size_text(sizes.tried), size_text(*sizes.allowed), size_text(sizes.free));
  }
  const FractionRange fraction = deduced_fraction(sizes);
  return fmt::format(
      "{} were asked for and {} are free, so a memory fraction refused, as far as one can infer: it lies "
      "between "
      "{:.4f} and {:.4f} of the card, and {:g} fits; {} reserved",
      size_text(sizes.tried), size_text(sizes.free), fraction.low, fraction.high, *fraction.round,
      size_text(sizes.reserved));
}

std::string too_big_verdict(const OomSizes& sizes) {
  const SizeRange held = sizes.live + sizes.tried;
  if (sizes.free_is_bound) {
    return fmt::format("{} in live tensors and the {} asked for are {} of the card's {}",
                       size_text(sizes.live), size_text(sizes.tried), size_text(held),
                       size_text(sizes.total));
  }
  if (is_paged(sizes)) {
    return fmt::format(
        "{} in live tensors and the {} asked for, on a card of {}: the rest is paged to the "
        "computer's memory",
        size_text(sizes.live), size_text(sizes.tried), size_text(sizes.total));
  }
  const SizeRange need = held + sizes.own_context - sizes.total;
  const char* const whose = sizes.others_listed || sizes.own_listed_as ? "of context" : "outside PyTorch";
  return fmt::format("{} in live tensors, {} {} and the {} asked for exceed the card's {} by {}",
                     size_text(sizes.live), size_text(sizes.own_context), whose, size_text(sizes.tried),
                     size_text(sizes.total), shortfall_text(need));
}

std::string driver_pool_verdict(const OomSizes& sizes) {
  return fmt::format(
      "{} live and {} free of {}: the other {} are neither, and no context is that large. The driver's pool "
      "of "
      "cudaMallocAsync holds them in pieces too small for the {} asked for, unless other processes do",
      size_text(sizes.live), size_text(sizes.free), size_text(sizes.total), size_text(sizes.own_context),
      size_text(sizes.tried));
}

std::string others_verdict(const OomSizes& sizes) {
  const std::string left =
      fmt::format("{} were left free for the {} asked for", size_text(sizes.free), size_text(sizes.tried));
  if (!sizes.small_equals.empty()) {
    return fmt::format(
        "{} other processes hold about {} each, as much as a context: ranks of the same job, it "
        "seems; {}",
        sizes.small_equals.size(), size_text(range_of(sizes.small_equals.front().size)), left);
  }
  if (sizes.others_listed) return fmt::format("they hold {}; {}", size_text(sizes.others), left);
  return fmt::format(
      "about {} are in use and not by PyTorch here, more than a context holds (estimated: the message "
      "lists no such process); {}",
      size_text(sizes.others), left);
}

std::string open_verdict(const OomSizes& sizes, const OomRefusal& refusal) {
  if (refusal.is_explained() && idle_would_do(sizes, refusal)) {
    return fmt::format(
        "{} asked for and {} free; the {} idle would hold it in one piece, and so would what lies outside "
        "PyTorch ({}) if other processes hold it, which the message does not tell",
        size_text(sizes.tried), size_text(sizes.free), size_text(sizes.all_idle()), size_text(sizes.outside));
  }
  if (refusal.is_explained()) {
    return fmt::format(
        "{} asked for and {} free; the {} outside PyTorch may be this process's context, and then live "
        "memory is too big, or other processes'",
        size_text(sizes.tried), size_text(sizes.free), size_text(sizes.own_context));
  }
  if (sizes.free_is_bound) {
    return fmt::format(
        "{} were refused on a card of {} with {} reserved. By the figures it fits, so something else "
        "refused",
        size_text(sizes.tried), size_text(sizes.total), size_text(sizes.reserved));
  }
  std::string limit = "no memory fraction that a person would set explains it";
  if (deduced_fraction(sizes).round)
    limit = "no memory fraction is printed; one is among the possible causes";
  if (sizes.allowed) limit = fmt::format("the limit of {} was not reached", size_text(*sizes.allowed));
  return fmt::format("{} were refused although {} of {} are free, and {}", size_text(sizes.tried),
                     size_text(sizes.free), size_text(sizes.total), limit);
}

std::string verdict_text(OomCause cause, const OomSizes& sizes, const OomRefusal& refusal) {
  switch (cause) {
    case OomCause::fraction_limit:
      return limit_verdict(sizes, refusal);
    case OomCause::fragmentation:
      return fmt::format("{} idle and {}{} free would hold the {} asked for, but not in one piece",
                         size_text(sizes.all_idle()), sizes.free_is_bound ? "at most " : "",
                         size_text(sizes.free), size_text(sizes.tried));
    case OomCause::other_processes:
      return others_verdict(sizes);
    case OomCause::too_big:
      return too_big_verdict(sizes);
    case OomCause::driver_pool:
      return driver_pool_verdict(sizes);
    case OomCause::outside_pytorch:
      return fmt::format(
          "this process holds {} outside PyTorch's allocator, {} more than any measured context; {} "
          "were left free for the {} asked for",
          size_text(sizes.own_context), size_text(excess_outside(sizes)), size_text(sizes.free),
          size_text(sizes.tried));
    case OomCause::idle_block:
      return fmt::format(
          "{} are idle, and one idle block is large enough for the {} asked for: it waited for another "
          "stream or belongs to a pool that this request may not use",
          size_text(sizes.all_idle()), size_text(sizes.tried));
    case OomCause::undetermined:
      return open_verdict(sizes, refusal);
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

// Counters of the same moment tell how many idle pieces there are: one of them is at least as large as the
// mean.
bool one_idle_block_suffices(const OomSizes& sizes, const OomLog& log) {
  if (sizes.live.high <= 0) return sizes.all_idle().low >= sizes.tried.high;
  for (const MemoryCounters& counters : log.counters) {
    const PrintedSize* bytes = counters.find("inactive_split_bytes.all.current");
    const PrintedSize* pieces = counters.find("inactive_split.all.current");
    const PrintedSize* live = counters.find("allocated_bytes.all.current");
    if (bytes == nullptr || pieces == nullptr || live == nullptr || pieces->high == 0) continue;
    const std::int64_t apart = range_of(*live).value - sizes.live.value;
    const bool same_moment = std::abs(apart) <= sizes.live.value / 20;
    if (same_moment && range_of(*bytes).low / range_of(*pieces).high >= sizes.tried.high) return true;
  }
  return false;
}

// What an assumed context decides is left open.
std::vector<PossibleCause> causes_of_assumed_context(const OomSizes& sizes, const OomRefusal& refusal) {
  if (idle_would_do(sizes, refusal)) {
    return {{name_of(OomCause::fragmentation),
             fmt::format("{} idle and {} free are enough in one piece", size_text(sizes.all_idle()),
                         size_text(sizes.free)),
             "nvidia-smi shows no other process on the card"},
            {name_of(OomCause::other_processes),
             fmt::format("about {}, if this process's context is no larger than any measured",
                         size_text(sizes.others)),
             "nvidia-smi shows another process on the card"}};
  }
  const std::string held =
      fmt::format("{} live and the {} asked for", size_text(sizes.live), size_text(sizes.tried));
  return {
      {name_of(OomCause::too_big),
       fmt::format(
           "{}, if the {} outside PyTorch are this process's context (with NCCL up to 1.65 GiB was measured)",
           held, size_text(sizes.own_context)),
       "nvidia-smi shows no other process on the card"},
      {name_of(OomCause::other_processes),
       fmt::format("{} were measured as the largest context, and the rest would be enough",
                   size_text(SizeRange::exactly(kLargestMeasuredContext))),
       "nvidia-smi shows another process on the card"}};
}

OomCause sharpened(OomCause cause, const OomSizes& sizes, const OomRefusal& refusal, const OomLog& log) {
  if (!refusal.is_explained()) return OomCause::undetermined;
  // Estimated neighbours of a few GiB may be a larger context than was ever measured, and idle memory would
  // do.
  const bool estimated = cause == OomCause::other_processes && !sizes.others_listed &&
                         sizes.outside.value < 4 * kLargestLikelyContext;
  if (estimated && idle_would_do(sizes, refusal)) return OomCause::undetermined;
  if (cause == OomCause::fragmentation && one_idle_block_suffices(sizes, log)) return OomCause::idle_block;
  const std::int64_t room = sizes.free.value + sizes.all_idle().value + unassigned(sizes).value;
  const bool assumed = cause == OomCause::too_big && unassigned(sizes).value > 0 && room >= sizes.tried.value;
  return assumed && !is_paged(sizes) ? OomCause::undetermined : cause;
}

void read_shortfall(const OomSizes& sizes, const OomRefusal& refusal, OomDiagnosis& diagnosis) {
  if (!refusal.is_explained()) return;
  const SizeRange missing = shortfall(sizes, refusal);
  if (missing.low > 0) {
    diagnosis.short_by = missing.value;
  } else {
    diagnosis.short_by_at_most = missing.high;
  }
}

void reason(const OomMessage& message, const OomSizes& sizes, const OomLog& log, OomDiagnosis& diagnosis) {
  const OomRefusal refusal = refusal_of(sizes, message.layout);
  diagnosis.checks = check_figures(message, sizes, refusal);
  diagnosis.paging = is_paged(sizes);
  if (const FigureCheck* broken = first_broken(diagnosis.checks)) {
    diagnosis.cause = OomCause::inconsistent;
    diagnosis.verdict = broken->what + " does not hold (" + broken->remark + ")";
  } else {
    diagnosis.cause = sharpened(cause_of(sizes, refusal), sizes, refusal, log);
    diagnosis.verdict = verdict_text(diagnosis.cause, sizes, refusal);
    read_shortfall(sizes, refusal, diagnosis);
  }
  if (diagnosis.cause == OomCause::undetermined) {
    diagnosis.possible_causes = refusal.is_explained() ? causes_of_assumed_context(sizes, refusal)
                                                       : possible_causes(message, sizes, log);
  }
  if (message.layout != OomLayout::cuda_malloc_async) {
    diagnosis.idle = sizes.all_idle().bytes();
    if (!sizes.free_is_bound) diagnosis.others = sizes.others.bytes();
  }
  diagnosis.advice = advice_for(diagnosis, message, sizes, refusal, log);
  write_answer(message, sizes, refusal, log, diagnosis);
}

}  // namespace

const char* name_of(OomCause cause) {
  // In the order of the enumeration.
  constexpr std::array kNames{"too big at any setting", "fragmentation",
                              "limit set by fraction",  "other processes",
                              "memory outside PyTorch", "fragmented driver pool",
                              "idle block not used",    "not memory",
                              "inconsistent figures",   "undetermined"};
  return kNames.at(static_cast<std::size_t>(cause));
}

OomDiagnosis diagnose_oom(const OomMessage& message, const std::string& name, const OomLog& log) {
  if (message.layout == OomLayout::none) {
    throw InputError(
        name,
        "holds no out-of-memory message that is known here. Give the text of the error as the "
        "program printed it, a traceback around it may stay, or what torch.cuda.memory_stats() or "
        "torch.cuda.memory_summary() gave.");
  }
  OomDiagnosis diagnosis;
  diagnosis.layout = name_of(message.layout);
  const auto sizes = oom_sizes(message);
  if (sizes && sizes->own_listed_as) diagnosis.own_pid = sizes->own_listed_as->pid;
  list_given_figures(message, diagnosis.own_pid, diagnosis);
  if (sizes) {
    list_computed_figures(message, *sizes, diagnosis);
    reason(message, *sizes, log, diagnosis);
  } else {
    diagnose_other_layout(message, log, diagnosis);
  }
  return diagnosis;
}

}  // namespace vramlab
