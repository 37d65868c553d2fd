#include "sim/memory/others/backends.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/error.hpp"
#include "sim/memory/oom_report.hpp"
#include "sim/memory/others/driver_allocators.hpp"
#include "sim/memory/others/fixed_pool.hpp"

namespace vramlab {
namespace {

constexpr std::array kBackendNames{"native", "cudaMallocAsync", "direct", "bfc", "fixed-pool"};

double bfc_share(std::string_view text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error == std::errc{} && end == text.data() + text.size() && share > 0 && share <= 1) return share;
  throw InputError("backend bfc", '"' + std::string(text) +
                                      "\" is not a share of the card. Write bfc, bfc:0.9 (above 0, up to 1), "
                                      "bfc:grow or bfc:0.9:grow.");
}

constexpr Bytes kLimitedPage = 2_MiB;  // R10.1

/// Refuses what would take more than `most` bytes in pages.
class LimitedSource : public SegmentAdaptor {
 public:
  LimitedSource(SegmentSource& inner, Bytes most) : SegmentAdaptor(inner), most_(most) {}

  std::optional<Address> reserve(Bytes size) override {
    const Bytes pages = round_up(size, kLimitedPage);
    if (pages > most_ - taken_) return std::nullopt;
    const std::optional<Address> base = SegmentAdaptor::reserve(size);
    if (!base) return base;
    taken_ += pages;
    sizes_[*base] = pages;
    return base;
  }
  void release(Address base) override {
    const auto held = sizes_.find(base);
    taken_ -= held->second;
    sizes_.erase(held);
    SegmentAdaptor::release(base);
  }

 private:
  Bytes most_;
  Bytes taken_ = 0;
  std::map<Address, Bytes> sizes_;
};

/// An allocator that knows no limit, under one.
template <class Inner>
class Limited : public Allocator {
 public:
  Limited(SegmentSource& source, Bytes most) : source_(source, most), inner_(source_) {}

  AllocationResult allocate(Bytes size, StreamId stream) override { return inner_.allocate(size, stream); }
  void free(BlockId block) override { inner_.free(block); }
  void empty_cache() override { inner_.empty_cache(); }
  void reset_peak_stats() override { inner_.reset_peak_stats(); }
  [[nodiscard]] const MemoryStats& stats() const override { return inner_.stats(); }

 private:
  LimitedSource source_;
  Inner inner_;
};

template <class Inner>
std::unique_ptr<Allocator> under(SegmentSource& source, std::optional<Bytes> limit) {
  if (limit) return std::make_unique<Limited<Inner>>(source, *limit);
  return std::make_unique<Inner>(source);
}

}  // namespace

const char* name_of(BackendKind kind) { return kBackendNames[static_cast<std::size_t>(kind)]; }

std::vector<std::string> backend_names() { return {kBackendNames.begin(), kBackendNames.end()}; }

BackendChoice parse_backend(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto* const found = std::find(kBackendNames.begin(), kBackendNames.end(), name);
  if (found == kBackendNames.end()) {
    throw InputError("backend", '"' + std::string(name) + "\" is not an allocator." +
                                    suggest_name(std::string(name), backend_names()));
  }
  BackendChoice choice{.kind = static_cast<BackendKind>(found - kBackendNames.begin())};
  text.remove_prefix(name.size());
  if (!text.empty() && choice.kind != BackendKind::bfc) {
    throw InputError("backend " + std::string(name), "takes nothing behind its name; only bfc does.");
  }
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view part = text.substr(0, text.find(':'));
    if (part == "grow") {
      choice.preallocate = false;
    } else {
      choice.share = bfc_share(part);
    }
    text.remove_prefix(part.size());
  }
  return choice;
}

std::string to_text(const BackendChoice& choice) {
  std::string text = name_of(choice.kind);
  if (choice.kind != BackendKind::bfc) return text;
  if (choice.share != BackendChoice{}.share) {
    std::array<char, 32> digits{};
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), choice.share);
    text += ':' + std::string(digits.data(), end);
  }
  return choice.preallocate ? text : text + ":grow";
}

std::string backend_note(const BackendChoice& choice) {
  switch (choice.kind) {
    case BackendKind::native:
      return {};
    case BackendKind::cuda_malloc_async:
      return "cudaMallocAsync: reserved memory is approximate, as it is not known where the driver puts its "
             "blocks.";
    case BackendKind::direct:
      return "direct: every request is a cudaMalloc of its own, and every free a cudaFree.";
    case BackendKind::bfc:
      return "bfc: written from a description of TensorFlow's and JAX's allocator; no recording of it was "
             "replayed.";
    case BackendKind::fixed_pool:
      return "fixed-pool: chunks of exactly one size each, which are never cut and never given back.";
  }
  return {};
}

BfcOptions bfc_options(const BackendChoice& choice, Bytes total, std::optional<Bytes> limit) {
  const auto most = static_cast<Bytes>(choice.share * static_cast<double>(total));
  return {.limit = limit ? std::min(*limit, most) : most, .allow_growth = !choice.preallocate};
}

std::unique_ptr<Allocator> make_backend(SegmentSource& source, const BackendChoice& choice,
                                        std::optional<Bytes> limit) {
  switch (choice.kind) {
    case BackendKind::native:
      break;
    case BackendKind::cuda_malloc_async:
      return std::make_unique<AsyncAllocator>(source, limit);
    case BackendKind::direct:
      return under<DirectAllocator>(source, limit);
    case BackendKind::bfc:
      return std::make_unique<BfcAllocator>(source, bfc_options(choice, source.device_total(), limit));
    case BackendKind::fixed_pool:
      return under<FixedPoolAllocator>(source, limit);
  }
  throw InternalError("the caching allocator is no backend beside itself");
}

std::string backend_oom_message(const BackendChoice& choice, const OutOfMemory& oom) {
  if (choice.kind == BackendKind::bfc) return jax_oom_message(oom);
  if (choice.kind == BackendKind::cuda_malloc_async) return async_oom_message(oom);
  return oom_message(oom);
}

}  // namespace vramlab
