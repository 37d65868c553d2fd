// A short list without heap: the newest entries stay.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace vramlab {

/// Up to `N` items in the order in which they were added.
template <class Item, std::size_t N>
class FixedList {
 public:
  /// Adds `item`; where there is no room, the oldest one goes.
  void push(const Item& item) {
    if (size_ == N) std::rotate(items_.begin(), items_.begin() + 1, items_.end());
    if (size_ < N) ++size_;
    items_[size_ - 1] = item;
  }

  /// Removes every item that `is_bad`.
  template <class Test>
  void remove_if(const Test& is_bad) {
    size_ = static_cast<std::size_t>(std::remove_if(begin(), end(), is_bad) - begin());
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.begin() + static_cast<std::ptrdiff_t>(size_); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.begin() + static_cast<std::ptrdiff_t>(size_); }

  template <class State>
  void visit(State& state) {
    state.count(size_, N);
    for (Item& item : *this) item.visit(state);
  }

 private:
  std::array<Item, N> items_{};
  std::size_t size_ = 0;
};

}  // namespace vramlab
