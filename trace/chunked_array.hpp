// An array that grows without ever moving what it holds.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace vramlab {

/// Like std::vector for very many small values: growing costs no copy and no memory beyond one chunk.
template <class T, std::size_t kChunk = 8192>
class ChunkedArray {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }

  T& operator[](std::size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }

  void push_back(const T& value) {
    if (size_ == chunks_.size() * kChunk) chunks_.push_back(std::make_unique<T[]>(kChunk));
    (*this)[size_++] = value;
  }

 private:
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace vramlab
