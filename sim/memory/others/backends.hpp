// Makes the allocator that a program runs on, where it is not PyTorch's caching one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/units.hpp"
#include "sim/memory/allocator.hpp"
#include "sim/memory/others/backend_choice.hpp"
#include "sim/memory/others/bfc_allocator.hpp"
#include "sim/memory/segments/segment_source.hpp"

namespace vramlab {

/// What a `bfc` allocator starts with on a card of `total` bytes: its share of it, or `limit` if that is
/// less.
BfcOptions bfc_options(const BackendChoice& choice, Bytes total, std::optional<Bytes> limit);

/// An allocator of any kind but `native`, over `source`, which must outlive it. `limit`: the most that it may
/// hold. Of `direct` and `fixed-pool`, which know none, it holds the pages, so that all can be compared.
/// Throws InternalError for `native`.
std::unique_ptr<Allocator> make_backend(SegmentSource& source, const BackendChoice& choice,
                                        std::optional<Bytes> limit);

/// What a program on this allocator, `native` among them, prints where it runs out of memory.
std::string backend_oom_message(const BackendChoice& choice, const OutOfMemory& oom);

}  // namespace vramlab
