#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "recordings/pickle/pickle.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kFirstSlots = 1024;  // a power of two
constexpr int kMostProbes = 256;
constexpr std::size_t kChunk = 8192;         // values
constexpr std::size_t kTextChunk = 1 << 16;  // bytes

// Texts of snapshots are short and few; FNV-1a is enough.
std::size_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : text) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001B3;
  return static_cast<std::size_t>(hash ^ hash >> 32);
}

}  // namespace

std::span<const PickleValue> PickleDocument::items(PickleValue container) const {
  if (!container.is_container()) return {};
  const Container& place = containers_[container.index()];
  return {place.data, place.size};
}

std::optional<std::string_view> PickleDocument::text(PickleValue value) const {
  if (value.kind() != Kind::text) return std::nullopt;
  return texts_[value.index()];
}

std::optional<double> PickleDocument::real(PickleValue value) const {
  if (value.kind() == Kind::real) return reals_[value.index()];
  if (const auto whole = integer(value)) return static_cast<double>(*whole);
  return std::nullopt;
}

PickleValue PickleDocument::new_wide_integer(std::int64_t number) {
  wide_integers_.push_back(number);
  return {Kind::integer, kWide | (wide_integers_.size() - 1)};
}

PickleValue PickleDocument::new_real(double number) {
  reals_.push_back(number);
  return {Kind::real, reals_.size() - 1};
}

PickleValue PickleDocument::new_text(std::string_view text) {
  if (2 * texts_.size() >= text_slots_.size()) rehash_texts();
  std::uint32_t* const slot = slot_of(text);
  if (slot != nullptr && *slot != 0) return {Kind::text, *slot - 1};
  texts_.push_back(owns_texts_ ? kept(text) : text);
  if (slot != nullptr) *slot = static_cast<std::uint32_t>(texts_.size());
  return {Kind::text, texts_.size() - 1};
}

std::string_view PickleDocument::kept(std::string_view text) {
  if (text.size() > text_chunk_left_) {
    const std::size_t size = std::max(kTextChunk, text.size());
    text_chunks_.push_back(std::make_unique_for_overwrite<char[]>(size));
    text_place_ = text_chunks_.back().get();
    text_chunk_left_ = size;
  }
  const std::string_view copy(text_place_, text.copy(text_place_, text.size()));
  text_place_ += text.size();
  text_chunk_left_ -= text.size();
  return copy;
}

void PickleDocument::rehash_texts() {
  text_slots_.assign(std::max(kFirstSlots, 2 * text_slots_.size()), 0);
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    std::uint32_t* const slot = slot_of(texts_[i]);
    if (slot != nullptr && *slot == 0) *slot = static_cast<std::uint32_t>(i + 1);
  }
}

// The slot that holds the text, or the empty one that it would get. None where a file was made to have many
// texts of one hash: those are kept apart rather than searched for.
std::uint32_t* PickleDocument::slot_of(std::string_view text) {
  const std::size_t mask = text_slots_.size() - 1;
  std::size_t slot = hash_of(text) & mask;
  for (int probe = 0; probe < kMostProbes; ++probe) {
    std::uint32_t& number = text_slots_[slot];
    if (number == 0 || texts_[number - 1] == text) return &number;
    slot = (slot + 1) & mask;
  }
  return nullptr;
}

PickleValue PickleDocument::new_container(Kind kind) {
  if (!spare_containers_.empty()) {
    const std::uint32_t index = spare_containers_.back();
    spare_containers_.pop_back();
    return {kind, index};
  }
  containers_.push_back(Container{});
  return {kind, containers_.size() - 1};
}

void PickleDocument::recycle(PickleValue container) {
  Container& place = containers_[container.index()];
  if (place.data != nullptr && place.capacity < kSpareSizes) {
    spare_places_[place.capacity].push_back(place.data);
  }
  place = {};
  spare_containers_.push_back(container.index());
}

// A container that is large for a chunk gets one of its own.
PickleValue* PickleDocument::place_for(std::size_t values) {
  if (values < kSpareSizes && !spare_places_[values].empty()) {
    PickleValue* const place = spare_places_[values].back();
    spare_places_[values].pop_back();
    return place;
  }
  if (values > chunk_left_) {
    const std::size_t size = std::max(kChunk, values);
    chunks_.push_back(std::make_unique<PickleValue[]>(size));
    chunk_left_ = size;
    last_chunk_size_ = size;
  }
  PickleValue* const place = chunks_.back().get() + (last_chunk_size_ - chunk_left_);
  chunk_left_ -= values;
  return place;
}

void PickleDocument::append(PickleValue container, std::span<const PickleValue> values) {
  if (!container.is_container()) throw InternalError("something is appended to what is not a container");
  Container& place = containers_[container.index()];
  const std::size_t size = place.size + values.size();
  if (size > kMostHandles) throw InternalError("a container of more than 2^32 values");
  if (size > place.capacity) {
    // The first batch is usually the only one; from the second on, twice the room each time.
    const std::size_t capacity =
        place.size == 0 ? size : std::min(kMostHandles, std::max(size, 2 * std::size_t{place.capacity}));
    PickleValue* const data = place_for(capacity);
    std::copy_n(place.data, place.size, data);
    place.data = data;
    place.capacity = static_cast<std::uint32_t>(capacity);
  }
  std::copy(values.begin(), values.end(), place.data + place.size);
  element_count_ += values.size();
  place.size = static_cast<std::uint32_t>(size);
}

namespace {

/// Measures all containers once, to be sure that none contains itself and none lies too deep.
class ShapeCheck {
 public:
  ShapeCheck(const PickleDocument& document, const std::string& name)
      : document_(document), name_(name), heights_(document.container_count(), kUnseen) {}

  /// Levels of containers from `value` down; `above` of them lie over it.
  std::size_t height_of(PickleValue value, std::size_t above) {
    if (!value.is_container()) return 0;
    std::uint8_t& height = heights_[value.index()];
    if (height == kOpen) throw InputError(name_, "is cyclic: a container contains itself.");
    if (height == kUnseen && above < kPickleDepth) {
      height = kOpen;
      std::size_t below = 0;
      for (const PickleValue item : document_.items(value))
        below = std::max(below, height_of(item, above + 1));
      height = static_cast<std::uint8_t>(below + 1);
    }
    if (height == kUnseen || above + height > kPickleDepth) {
      throw InputError(name_, "has containers more than " + std::to_string(kPickleDepth) + " levels deep.");
    }
    return height;
  }

 private:
  static constexpr std::uint8_t kUnseen = 0;
  static constexpr std::uint8_t kOpen = 0xFF;
  static_assert(kPickleDepth < kOpen);

  const PickleDocument& document_;
  const std::string& name_;
  std::vector<std::uint8_t> heights_;  ///< of each container: levels from it down to its deepest value
};

}  // namespace

void check_pickle_shape(const PickleDocument& document, const std::string& name) {
  ShapeCheck(document, name).height_of(document.root(), 0);
}

}  // namespace vramlab
