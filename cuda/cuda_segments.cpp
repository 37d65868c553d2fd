#include "cuda/cuda_segments.hpp"

#include <chrono>
#include <iterator>

#include "cuda/card.hpp"

namespace vramlab {
namespace {

constexpr Bytes kSegmentPage = 2_MiB;  // R10.1

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

}  // namespace

CUmemAllocationProp allocation_of_device() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  VRAMLAB_CUDA(cudaGetDevice(&properties.location.id));
  return properties;
}

CUmemAccessDesc access_of_device() {
  return {.location = allocation_of_device().location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

CudaSegments::~CudaSegments() {
  if (segments_.empty() && ranges_.empty()) return;  // where no card was opened none is needed
  VRAMLAB_CUDA_NOTHROW(cudaDeviceSynchronize());
  for (const auto& [base, size] : segments_) VRAMLAB_CUDA_NOTHROW(cudaFree(pointer(base)));
  if (ranges_.empty()) return;
  const Driver& driver = cuda_driver();
  for (const auto& [base, range] : ranges_) {
    for (const auto& [page, size] : range.mapped) VRAMLAB_CUDA_NOTHROW(driver.unmap(page, size));
    VRAMLAB_CUDA_NOTHROW(driver.address_free(base, range.size));
  }
}

std::optional<Address> CudaSegments::reserve(Bytes size) {
  void* base = nullptr;
  const cudaError_t error = cudaMalloc(&base, size);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // or the next call would be blamed for it
    return std::nullopt;
  }
  VRAMLAB_CUDA_RESULT(error, "cudaMalloc(&base, size)");
  const auto address = reinterpret_cast<Address>(base);
  segments_.emplace(address, size);
  return address;
}

void CudaSegments::release(Address base) {
  if (segments_.erase(base) == 0) throw InternalError("a segment is released that was not reserved");
  VRAMLAB_CUDA(cudaFree(pointer(base)));
}

Address CudaSegments::reserve_range(Bytes size, Bytes page) {
  const Bytes whole = round_up(size, cuda_granularity());
  CUdeviceptr base = 0;
  VRAMLAB_CUDA(cuda_driver().address_reserve(&base, whole, 0, 0, 0));
  ranges_.emplace(base, Range{whole, page, {}});
  return base;
}

void CudaSegments::release_range(Address base) {
  const auto range = ranges_.find(base);
  if (range == ranges_.end() || !range->second.mapped.empty()) {
    throw InternalError("an address range is released that is unknown or still mapped");
  }
  VRAMLAB_CUDA(cuda_driver().address_free(base, range->second.size));
  ranges_.erase(range);
}

// R5.4: all pages or none.
bool CudaSegments::map(Address address, Bytes size) {
  Range& range = range_of(address);
  const CUmemAllocationProp properties = allocation_of_device();
  for (Address page = address; page < address + size; page += range.page) {
    CUmemGenericAllocationHandle memory{};
    const CUresult error = cuda_driver().create(&memory, range.page, &properties, 0);
    if (error == CUDA_ERROR_OUT_OF_MEMORY) {
      unmap_pages(range, address, page);
      return false;
    }
    VRAMLAB_CUDA_RESULT(error, "cuMemCreate(&memory, page, &properties, 0)");
    map_page(page, range.page, memory);
    range.mapped.emplace(page, range.page);
  }
  const CUmemAccessDesc access = access_of_device();
  VRAMLAB_CUDA(cuda_driver().set_access(address, size, &access, 1));
  return true;
}

// The mapping keeps the memory alive; with the handle gone, unmapping gives it back.
void CudaSegments::map_page(Address address, Bytes size, unsigned long long memory) {
  const CUresult mapped = cuda_driver().map(address, size, 0, memory, 0);
  VRAMLAB_CUDA(cuda_driver().release(memory));
  VRAMLAB_CUDA_RESULT(mapped, "cuMemMap(address, size, 0, memory, 0)");
}

void CudaSegments::unmap(Address address, Bytes size) {
  VRAMLAB_CUDA(cudaDeviceSynchronize());
  unmap_pages(range_of(address), address, address + size);
}

void CudaSegments::unmap_pages(Range& range, Address from, Address to) {
  for (Address page = from; page < to; page += range.page) {
    if (range.mapped.erase(page) == 0) throw InternalError("a page is unmapped that was not mapped");
    VRAMLAB_CUDA(cuda_driver().unmap(page, range.page));
  }
}

CudaSegments::Range& CudaSegments::range_of(Address address) {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) throw InternalError("an address lies in no reserved range");
  return std::prev(after)->second;
}

template <class Call>
auto TimedSegments::timed(const Call& call) {
  struct Watch {
    explicit Watch(SimTime& sum) : sum_(sum) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { sum_ += std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now() - begin_); }

   private:
    SimTime& sum_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };
  VRAMLAB_CUDA(cudaDeviceSynchronize());
  const Watch watch{driver_time_};
  return call();
}

std::optional<Address> TimedSegments::reserve(Bytes size) {
  return timed([&] { return SegmentAdaptor::reserve(size); });
}
void TimedSegments::release(Address base) {
  timed([&] { SegmentAdaptor::release(base); });
}
bool TimedSegments::map(Address address, Bytes size) {
  return timed([&] { return SegmentAdaptor::map(address, size); });
}
void TimedSegments::unmap(Address address, Bytes size) {
  timed([&] { SegmentAdaptor::unmap(address, size); });
}

std::optional<Address> ModelledSegments::reserve(Bytes size) {
  const auto base = SegmentAdaptor::reserve(size);
  if (!base) return base;
  segments_.emplace(*base, round_up(size, kSegmentPage));
  driver_time_ += times_.malloc_time(size);
  return base;
}

void ModelledSegments::release(Address base) {
  SegmentAdaptor::release(base);
  const auto segment = segments_.find(base);
  driver_time_ += times_.free_time(segment->second);
  segments_.erase(segment);
}

Address ModelledSegments::reserve_range(Bytes size, Bytes page) {
  const Address base = SegmentAdaptor::reserve_range(size, page);
  pages_.emplace(base, page);
  return base;
}

void ModelledSegments::release_range(Address base) {
  SegmentAdaptor::release_range(base);
  pages_.erase(base);
}

bool ModelledSegments::map(Address address, Bytes size) {
  if (!SegmentAdaptor::map(address, size)) return false;
  driver_time_ += times_.map_time(size, size / std::prev(pages_.upper_bound(address))->second);
  return true;
}

void ModelledSegments::unmap(Address address, Bytes size) {
  SegmentAdaptor::unmap(address, size);
  driver_time_ += times_.unmap_time(size);
}

Bytes cuda_granularity() {
  const CUmemAllocationProp properties = allocation_of_device();
  std::size_t bytes = 0;
  VRAMLAB_CUDA(cuda_driver().granularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

}  // namespace vramlab
