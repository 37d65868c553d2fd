// A history that is being read, of a length that is not known yet.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "trace/torch_snapshot.hpp"

namespace vramlab {

/// Grows without copying what it holds, and becomes a vector without needing the memory twice.
class TraceEntries {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }

  void push_back(const TraceEntry& entry) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) add_chunk();
    chunks_.back().push_back(entry);
    ++size_;
  }

  /// All entries; none are left.
  std::vector<TraceEntry> take() {
    const std::size_t size = std::exchange(size_, 0);
    if (chunks_.size() == 1) return std::move(std::exchange(chunks_, {}).front());
    std::vector<TraceEntry> all;
    all.reserve(size);
    for (std::vector<TraceEntry>& chunk : chunks_) {
      all.insert(all.end(), chunk.begin(), chunk.end());
      std::vector<TraceEntry>().swap(chunk);
    }
    chunks_.clear();
    return all;
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1}
                                        << 20;  // large enough to go back to the system at once

  // The first one grows as it may.
  void add_chunk() {
    const bool is_first = chunks_.empty();
    chunks_.emplace_back();
    if (!is_first) chunks_.back().reserve(kChunk);
  }

  std::vector<std::vector<TraceEntry>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace vramlab
