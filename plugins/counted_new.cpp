// operator new and delete of a program that loads plugins: malloc and free, noted for HeapCount. All forms
// are here, because a sanitizer's own would not fit the others.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <malloc.h>

#include "plugins/heap_count.hpp"

namespace {

// As the standard has it: the handler is asked for room until there is some, or none is set.
template <class Take>
void* taken(std::size_t size, const Take& take) {
  for (;;) {
    if (void* place = take()) {
      vramlab::HeapCount::note(static_cast<std::int64_t>(size));
      return place;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc{};
    handler();
  }
}

void* take(std::size_t size) {
  return taken(size, [size] { return std::malloc(size != 0 ? size : 1); });
}

void* take(std::size_t size, std::align_val_t alignment) {
  return taken(size, [size, alignment]() -> void* {
    void* place = nullptr;
    const std::size_t least = std::max(static_cast<std::size_t>(alignment), sizeof(void*));  // of the call
    return ::posix_memalign(&place, least, size) == 0 ? place : nullptr;
  });
}

template <class... Alignment>
void* take_or_null(std::size_t size, Alignment... alignment) noexcept {
  try {
    return take(size, alignment...);
  } catch (...) {
    return nullptr;
  }
}

void give_back(void* place, std::size_t size) noexcept {
  if (place == nullptr) return;
  vramlab::HeapCount::note(-static_cast<std::int64_t>(size));
  std::free(place);
}

void give_back(void* place) noexcept { give_back(place, ::malloc_usable_size(place)); }

}  // namespace

using Align = std::align_val_t;
using Nothrow = std::nothrow_t;

void* operator new(std::size_t size) { return take(size); }
void* operator new[](std::size_t size) { return take(size); }
void* operator new(std::size_t size, Align align) { return take(size, align); }
void* operator new[](std::size_t size, Align align) { return take(size, align); }
void* operator new(std::size_t size, const Nothrow&) noexcept { return take_or_null(size); }
void* operator new[](std::size_t size, const Nothrow&) noexcept { return take_or_null(size); }
void* operator new(std::size_t size, Align align, const Nothrow&) noexcept {
  return take_or_null(size, align);
}
void* operator new[](std::size_t size, Align align, const Nothrow&) noexcept {
  return take_or_null(size, align);
}

void operator delete(void* place) noexcept { give_back(place); }
void operator delete[](void* place) noexcept { give_back(place); }
void operator delete(void* place, std::size_t size) noexcept { give_back(place, size); }
void operator delete[](void* place, std::size_t size) noexcept { give_back(place, size); }
void operator delete(void* place, Align) noexcept { give_back(place); }
void operator delete[](void* place, Align) noexcept { give_back(place); }
void operator delete(void* place, std::size_t size, Align) noexcept { give_back(place, size); }
void operator delete[](void* place, std::size_t size, Align) noexcept { give_back(place, size); }
void operator delete(void* place, const Nothrow&) noexcept { give_back(place); }
void operator delete[](void* place, const Nothrow&) noexcept { give_back(place); }
void operator delete(void* place, Align, const Nothrow&) noexcept { give_back(place); }
void operator delete[](void* place, Align, const Nothrow&) noexcept { give_back(place); }
