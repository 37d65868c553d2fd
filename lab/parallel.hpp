// Doing independent pieces of work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace vramlab {

/// Calls `work(0)` … `work(count − 1)`, each once, on up to `threads` threads. What a call throws is thrown
/// again when all are done; of several, that of the lowest number.
template <class Work>
void for_each_index(std::size_t count, unsigned threads, const Work& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min<std::size_t>(std::max(threads, 1U), count); ++i)
    others.emplace_back(take);
  take();
  others.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace vramlab
