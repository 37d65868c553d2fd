// A size for every key, and the first or the last key with one that is large enough.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include "core/units.hpp"

namespace vramlab {

/// What the tree of a SizeMap keeps at every node: the largest size at or below it.
template <class ConstNode, class Node, class, class>
struct LargestBelow {
  using metadata_type = Bytes;

  void operator()(Node node, ConstNode end) const {
    Bytes largest = (**node).second;
    for (const Node child : {node.get_l_child(), node.get_r_child()}) {
      if (child != end) largest = std::max(largest, Bytes{child.get_metadata()});
    }
    const_cast<Bytes&>(node.get_metadata()) = largest;
  }
  virtual ~LargestBelow() = default;
};

/// Keys in their order, each with a size. Everything takes O(log n) steps.
template <class Key>
class SizeMap {
 public:
  using Entry = std::pair<const Key, Bytes>;

  // The library's tree is copied where it could be moved.
  SizeMap() = default;
  SizeMap(const SizeMap&) = default;
  SizeMap(SizeMap&& other) noexcept { tree_.swap(other.tree_); }
  SizeMap& operator=(SizeMap other) noexcept {
    tree_.swap(other.tree_);
    return *this;
  }
  ~SizeMap() = default;

  /// Adds a key, or gives it another size.
  void set(const Key& key, Bytes size) {
    tree_.erase(key);
    tree_.insert({key, size});
  }
  /// False if it is not there.
  bool erase(const Key& key) { return tree_.erase(key); }

  [[nodiscard]] bool empty() const { return tree_.empty(); }
  [[nodiscard]] std::size_t size() const { return tree_.size(); }
  [[nodiscard]] auto begin() const { return tree_.begin(); }
  [[nodiscard]] auto end() const { return tree_.end(); }

  /// The largest size, 0 if there is none.
  [[nodiscard]] Bytes largest() const { return empty() ? 0 : Bytes{tree_.node_begin().get_metadata()}; }

  /// The entry with this key, or the next lower or higher one; null if there is none.
  [[nodiscard]] const Entry* find(const Key& key) const {
    const auto found = tree_.find(key);
    return found == tree_.end() ? nullptr : &*found;
  }
  [[nodiscard]] const Entry* below(const Key& key) const {
    auto found = tree_.lower_bound(key);
    return found == tree_.begin() ? nullptr : &*--found;
  }
  [[nodiscard]] const Entry* not_below(const Key& key) const {
    const auto found = tree_.lower_bound(key);
    return found == tree_.end() ? nullptr : &*found;
  }

  /// The lowest key from `from` on whose size is at least `size`; null if there is none.
  [[nodiscard]] const Entry* first_fitting(Bytes size, const Key& from) const {
    auto fallback = tree_.node_end();  // it or something right below it fits, nothing before it that is known
    for (auto node = tree_.node_begin(); node != tree_.node_end();) {
      if ((**node).first < from) {
        node = node.get_r_child();
        continue;
      }
      if ((**node).second >= size || fits_below(node.get_r_child(), size)) fallback = node;
      node = node.get_l_child();
    }
    if (fallback == tree_.node_end()) return nullptr;
    if ((**fallback).second >= size) return &**fallback;
    auto node = fallback.get_r_child();
    for (;;) {
      if (fits_below(node.get_l_child(), size)) {
        node = node.get_l_child();
      } else if ((**node).second >= size) {
        return &**node;
      } else {
        node = node.get_r_child();
      }
    }
  }

  /// The highest key whose size is at least `size`; null if there is none.
  [[nodiscard]] const Entry* last_fitting(Bytes size) const {
    auto node = tree_.node_begin();
    if (!fits_below(node, size)) return nullptr;
    for (;;) {
      if (fits_below(node.get_r_child(), size)) {
        node = node.get_r_child();
      } else if ((**node).second >= size) {
        return &**node;
      } else {
        node = node.get_l_child();
      }
    }
  }

 private:
  // The library's balanced tree, which keeps the largest sizes up to date by itself.
  using Tree = __gnu_pbds::tree<Key, Bytes, std::less<>, __gnu_pbds::rb_tree_tag, LargestBelow>;

  template <class Node>
  bool fits_below(Node node, Bytes size) const {
    return node != tree_.node_end() && node.get_metadata() >= size;
  }

  Tree tree_;
};

}  // namespace vramlab
