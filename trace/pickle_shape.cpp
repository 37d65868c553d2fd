#include "trace/pickle_shape.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/error.hpp"

namespace vramlab {
namespace {

/// Walks all containers once, to be sure that none contains itself and none lies too deep.
class ShapeCheck {
 public:
  ShapeCheck(const PickleDocument& document, const std::string& name, std::size_t depth)
      : document_(document), name_(name), depth_(depth), heights_(document.container_count(), kUnseen) {}

  void run() {
    enter(document_.root());
    while (!path_.empty()) {
      Level& level = path_.back();
      if (level.next < level.items.size()) {
        enter(level.items[level.next++]);
      } else {
        leave();
      }
    }
  }

 private:
  static constexpr std::uint8_t kUnseen = 0;
  static constexpr std::uint8_t kOpen = 0xFF;

  struct Level {
    std::uint32_t container = 0;
    std::uint8_t height = 1;
    std::size_t next = 0;
    std::span<const PickleValue> items;
  };

  void enter(PickleValue value) {
    if (!value.is_container()) return;
    std::uint8_t& height = heights_[value.index()];
    if (height == kOpen) throw InputError(name_, "is cyclic: a container contains itself.");
    if (height != kUnseen) return rise_to(height);
    if (path_.size() == depth_) fail_too_deep();
    height = kOpen;
    path_.push_back({value.index(), 1, 0, document_.items(value)});
  }

  void leave() {
    const Level done = path_.back();
    path_.pop_back();
    heights_[done.container] = done.height;
    rise_to(done.height);
  }

  void rise_to(std::uint8_t child) {
    if (path_.empty()) return;
    if (path_.size() + child > depth_) fail_too_deep();
    path_.back().height = std::max(path_.back().height, static_cast<std::uint8_t>(child + 1));
  }

  [[noreturn]] void fail_too_deep() const {
    throw InputError(name_, "has containers more than " + std::to_string(depth_) + " levels deep.");
  }

  const PickleDocument& document_;
  const std::string& name_;
  std::size_t depth_;
  std::vector<std::uint8_t> heights_;  ///< of each container: levels from it down to its deepest value
  std::vector<Level> path_;
};

}  // namespace

void check_pickle_shape(const PickleDocument& document, const std::string& name, std::size_t depth) {
  ShapeCheck(document, name, depth).run();
}

}  // namespace vramlab
