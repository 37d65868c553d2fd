// What each measure would have done in this case; every answer rests on the case's own figures.
#include <algorithm>

#include <fmt/format.h>

#include "lab/oom/reasoning.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using Helps = OomAdvice::Helps;

class Advisor {
 public:
  Advisor(const OomMessage& message, const OomSizes& sizes, const OomRefusal& refusal, const OomLog& log)
      : message_(message), sizes_(sizes), refusal_(refusal), log_(log) {}

  std::vector<OomAdvice> all(OomCause cause) {
    live_memory();
    if (cause == OomCause::fragmentation) largest_first();
    if (sizes_.driver_pool) {
      native_backend();
    } else {
      expandable_segments();
      max_split_size();
      emptying();
    }
    fraction();
    neighbours();
    outside();
    return std::move(advice_);
  }

 private:
  void add(const char* measure, Helps helps, std::string why) {
    advice_.push_back({measure, helps, std::move(why)});
  }

  // What the request could not get without idle memory.
  [[nodiscard]] SizeRange lacking() const { return shortfall(sizes_, refusal_).at_least_zero(); }
  [[nodiscard]] std::string lacking_text() const { return shortfall_text(shortfall(sizes_, refusal_)); }
  [[nodiscard]] bool was_set(std::string_view setting) const {
    return std::any_of(log_.settings.begin(), log_.settings.end(),
                       [&](const std::string& one) { return one.starts_with(setting); });
  }
  [[nodiscard]] bool idle_is_too_little() const { return sizes_.all_idle().value < lacking().value; }
  [[nodiscard]] std::string still_missing() const { return size_text(lacking() - sizes_.all_idle()); }

  void live_memory() {
    constexpr const char* kMeasure = "less live memory (smaller batch, checkpointing, dropped references)";
    if (lacking().value > sizes_.live.value) {
      return add(kMeasure, Helps::no,
                 fmt::format("{} were missing and only {} were live; the request itself has to shrink",
                             lacking_text(), size_text(sizes_.live)));
    }
    add(kMeasure, Helps::yes,
        fmt::format("{} fewer, in whole segments, and the request fits; {} were live", lacking_text(),
                    size_text(sizes_.live)));
  }

  void largest_first() {
    add("the largest batch or sample first", Helps::perhaps,
        "its segments then serve the smaller ones, instead of small tensors pinning segments too small for "
        "it");
  }

  void expandable_segments() {
    constexpr const char* kMeasure = "expandable_segments:True";
    if (was_set(kMeasure)) return add(kMeasure, Helps::no, "it was on already");
    if (sizes_.all_idle().value <= 0) {
      return add(kMeasure, Helps::no, "nothing is idle, so there are no holes to close");
    }
    if (log_.platform == "Windows") return add(kMeasure, Helps::no, "PyTorch has it on Linux only");
    if (idle_is_too_little()) {
      return add(kMeasure, Helps::no,
                 fmt::format("even with all of the {} idle in one piece {} would be missing",
                             size_text(sizes_.all_idle()), still_missing()));
    }
    add(kMeasure, Helps::perhaps,
        fmt::format(
            "{} of the {} idle would have to be usable; pages of 20 MiB in which a tensor lives stay idle{}",
            lacking_text(), size_text(sizes_.all_idle()),
            message_.layout != OomLayout::torch_sentences
                ? "; needs PyTorch 2.1 or newer"
                : "; the message says nothing on whether it was on already"));
  }

  void max_split_size() {
    constexpr const char* kMeasure = "max_split_size_mb";
    if (was_set("max_split_size_mb"))
      return add(kMeasure, Helps::perhaps, "it was set already; a smaller one splits less");
    if (sizes_.all_idle().value <= 0) return add(kMeasure, Helps::no, "nothing is idle");
    if (was_set("expandable_segments:True")) {
      return add(kMeasure, Helps::no,
                 "with expandable segments it only keeps large ranges from smaller requests");
    }
    if (idle_is_too_little()) {
      return add(kMeasure, Helps::no,
                 fmt::format("it only changes how the {} idle are cut; {} would still be missing",
                             size_text(sizes_.all_idle()), still_missing()));
    }
    add(kMeasure, Helps::perhaps,
        "it keeps large blocks whole, so that they can be given back, but may raise reserved memory at "
        "first");
  }

  void native_backend() {
    constexpr const char* kMeasure = "PyTorch's own allocator (backend:native)";
    const SizeRange pool = excess_outside(sizes_);
    if (pool.value <= 0)
      return add(kMeasure, Helps::no, "the driver's pool withholds no more than a context");
    add(kMeasure, Helps::perhaps,
        fmt::format(
            "{} are neither live nor free; what of it lies in the driver's pool is then not lost to it",
            size_text(pool)));
  }

  void outside() {
    const SizeRange excess = excess_outside(sizes_);
    if (sizes_.driver_pool || excess.value <= 0) return;
    add("less memory of this process outside PyTorch",
        would_fit(sizes_, refusal_, {.outside = true}) ? Helps::yes : Helps::no,
        fmt::format("{} more than a context (NCCL buffers, other frameworks, library workspaces)",
                    size_text(excess)));
  }

  void emptying() {
    constexpr const char* kMeasure = "torch.cuda.empty_cache(), garbage_collection_threshold";
    if (sizes_.all_idle().value <= 0) return add(kMeasure, Helps::no, "nothing is idle");
    const char* const why =
        "PyTorch itself gives back every segment without a live tensor before it raises this error; what is "
        "still idle shares segments with live tensors";
    if (!message_.private_pools) return add(kMeasure, Helps::no, why);
    add("torch.cuda.empty_cache()", Helps::no,
        fmt::format("{}, and {} belong to private pools (graphs, MemPools), which keep them", why,
                    size_text(sizes_.pool_idle)));
  }

  void fraction() {
    constexpr const char* kMeasure = "a larger memory fraction";
    if (!sizes_.allowed && !refusal_.limit_is_deduced) {
      return add(kMeasure, Helps::no, "no limit took part: the card itself had too little free");
    }
    if (would_fit(sizes_, refusal_, {.limit = true})) {
      return add(kMeasure, Helps::yes,
                 fmt::format("{} of the card are free, {} were asked for", size_text(sizes_.free),
                             size_text(sizes_.tried)));
    }
    add(kMeasure, Helps::no, fmt::format("the card has only {} free", size_text(sizes_.free)));
  }

  void neighbours() {
    constexpr const char* kMeasure = "ending other processes on the card";
    const char* const estimated = sizes_.others_listed ? "" : " (estimated: the message lists none)";
    if (refusal_.limit_binds() && !refusal_.device_binds()) {
      return add(kMeasure, Helps::no, "the limit refused, not the card");
    }
    if (sizes_.others.value <= 0) {
      if (sizes_.driver_pool) {
        return add(kMeasure, Helps::perhaps, "the message does not tell them from the driver's own pool");
      }
      if (sizes_.others_listed || sizes_.own_listed_as) return add(kMeasure, Helps::no, "none are listed");
      const bool enough = unassigned(sizes_).value >= lacking().value;
      return add(kMeasure, enough ? Helps::perhaps : Helps::no,
                 fmt::format("the message lists none; the {} outside PyTorch may be this process's context",
                             size_text(sizes_.own_context)));
    }
    const bool alone = would_fit(sizes_, refusal_, {.others = true});
    const Helps helps = !alone ? Helps::no : sizes_.others_listed ? Helps::yes : Helps::perhaps;
    add(kMeasure, helps,
        fmt::format("they hold {}{}; {} {}", size_text(sizes_.others), estimated, lacking_text(),
                    alone ? "are enough" : "would be needed"));
  }

  const OomMessage& message_;
  const OomSizes& sizes_;
  const OomRefusal& refusal_;
  const OomLog& log_;
  std::vector<OomAdvice> advice_;
};

}  // namespace

std::vector<OomAdvice> advice_for(const OomDiagnosis& diagnosis, const OomMessage& message,
                                  const OomSizes& sizes, const OomRefusal& refusal, const OomLog& log) {
  if (diagnosis.cause == OomCause::inconsistent) {
    return {
        {"checking the message", Helps::yes,
         "the figures above that cannot hold together are wrong or come from different moments; any advice "
         "from them would be a guess"}};
  }
  if (!refusal.is_explained()) {
    return {{"finding what refused", Helps::yes, "see the possible causes"},
            {"settings of PyTorch's allocator", Helps::no, "the card had more free than was asked"},
            {"a smaller batch", Helps::perhaps, "only if smaller requests pass"}};
  }
  return Advisor{message, sizes, refusal, log}.all(diagnosis.cause);
}

}  // namespace vramlab
