// What each measure would have done in this case; every answer rests on the case's own figures.
#include <fmt/format.h>

#include "lab/oom/reasoning.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using Helps = OomAdvice::Helps;

class Advisor {
 public:
  Advisor(const OomMessage& message, const OomSizes& sizes, const OomRefusal& refusal)
      : message_(message), sizes_(sizes), refusal_(refusal) {}

  std::vector<OomAdvice> all(OomCause cause) {
    live_memory();
    if (cause == OomCause::fragmentation) largest_first();
    if (message_.layout != OomLayout::cuda_malloc_async) {
      expandable_segments();
      max_split_size();
      emptying();
    }
    fraction();
    neighbours();
    return std::move(advice_);
  }

 private:
  void add(const char* measure, Helps helps, std::string why) {
    advice_.push_back({measure, helps, std::move(why)});
  }

  // What the request could not get without idle memory.
  [[nodiscard]] std::int64_t lacking() const {
    std::int64_t room = sizes_.free.value;
    if (sizes_.allowed) room = std::min(room, sizes_.allowed->value - sizes_.reserved.value);
    if (refusal_.limit_is_deduced) room = 0;  // unknown, less than the request
    return std::max<std::int64_t>(sizes_.tried.value - std::max<std::int64_t>(room, 0), 0);
  }
  static std::string text(std::int64_t bytes) {
    return oom_size(static_cast<Bytes>(std::max<std::int64_t>(bytes, 0)));
  }

  void live_memory() {
    constexpr const char* kMeasure = "less live memory (smaller batch, checkpointing, dropped references)";
    if (lacking() > sizes_.live.value) {
      return add(kMeasure, Helps::no,
                 fmt::format("{} were missing and only {} were live; the request itself has to shrink",
                             text(lacking()), size_text(sizes_.live)));
    }
    add(kMeasure, Helps::yes,
        fmt::format("{}{} less, in whole segments, and the request fits; {} were live",
                    refusal_.limit_is_deduced ? "up to " : "", text(lacking()), size_text(sizes_.live)));
  }

  void largest_first() {
    add("the largest batch or sample first", Helps::perhaps,
        "its segments then serve the smaller ones, instead of small tensors pinning segments too small for "
        "it");
  }

  void expandable_segments() {
    constexpr const char* kMeasure = "expandable_segments:True";
    const bool old = message_.layout != OomLayout::torch_sentences;
    const std::int64_t idle = sizes_.all_idle().value;
    if (idle <= 0) return add(kMeasure, Helps::no, "nothing is idle, so there are no holes to close");
    if (idle < lacking()) {
      return add(kMeasure, Helps::no,
                 fmt::format("even with all of the {} idle in one piece {} would be missing", text(idle),
                             text(lacking() - idle)));
    }
    add(kMeasure, Helps::perhaps,
        fmt::format(
            "{} of the {} idle would have to be usable; pages of 20 MiB in which a tensor lives stay idle{}",
            text(lacking()), text(idle),
            old ? "; needs PyTorch 2.1 or newer"
                : "; the message says nothing on whether it was on already"));
  }

  void max_split_size() {
    constexpr const char* kMeasure = "max_split_size_mb";
    const std::int64_t idle = sizes_.all_idle().value;
    if (idle <= 0) return add(kMeasure, Helps::no, "nothing is idle");
    if (idle < lacking()) {
      return add(kMeasure, Helps::no,
                 fmt::format("it only changes how the {} idle are cut; {} would still be missing", text(idle),
                             text(lacking() - idle)));
    }
    add(kMeasure, Helps::perhaps,
        "it keeps large blocks whole, so that they can be given back, but may raise reserved memory at "
        "first");
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
    if (sizes_.others.value <= 0) {
      const bool async = message_.layout == OomLayout::cuda_malloc_async;
      return add(kMeasure, async ? Helps::perhaps : Helps::no,
                 async ? "the message does not tell them from the driver's own pool"
                       : fmt::format("none hold memory that counts{}", estimated));
    }
    if (refusal_.limit_binds() && !refusal_.device_binds()) {
      return add(kMeasure, Helps::no, "the limit refused, not the card");
    }
    const bool alone = would_fit(sizes_, refusal_, {.others = true});
    add(kMeasure, alone ? Helps::yes : Helps::no,
        fmt::format("they hold {}{}; {} of it {}", size_text(sizes_.others), estimated, text(lacking()),
                    alone ? "are enough" : "would be needed"));
  }

  const OomMessage& message_;
  const OomSizes& sizes_;
  const OomRefusal& refusal_;
  std::vector<OomAdvice> advice_;
};

}  // namespace

std::vector<OomAdvice> advice_for(OomCause cause, const OomMessage& message, const OomSizes& sizes,
                                  const OomRefusal& refusal) {
  if (cause == OomCause::inconsistent) {
    return {
        {"checking the message", Helps::yes,
         "the figures above that cannot hold together are wrong or come from different moments; any advice "
         "from them would be a guess"}};
  }
  return Advisor{message, sizes, refusal}.all(cause);
}

}  // namespace vramlab
