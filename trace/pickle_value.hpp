// What a pickle of plain data contains, in eight bytes a value.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trace/chunked_array.hpp"

namespace vramlab {

/// One value of a pickle: a number by itself, or a handle to something in its PickleDocument. Two handles of
/// one container are equal; containers of equal content need not be one. Equal texts are, save in files made
/// to prevent it.
class PickleValue {
 public:
  enum class Kind : std::uint8_t { none, boolean, integer, huge, real, text, list, tuple, dict };

  constexpr PickleValue() = default;

  [[nodiscard]] constexpr Kind kind() const { return static_cast<Kind>(bits_ & kKindMask); }
  [[nodiscard]] constexpr bool is_container() const { return kind() >= Kind::list; }
  [[nodiscard]] constexpr bool is_truth() const { return payload() != 0; }

  /// Number of a text or a container in its document, counted from 0.
  [[nodiscard]] constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(payload()); }

  friend bool operator==(PickleValue, PickleValue) = default;

 private:
  friend class PickleDocument;
  static constexpr std::uint64_t kKindMask = 0xF;
  static constexpr int kKindBits = 4;

  constexpr PickleValue(Kind kind, std::uint64_t payload)
      : bits_(payload << kKindBits | static_cast<std::uint64_t>(kind)) {}
  [[nodiscard]] constexpr std::uint64_t payload() const { return bits_ >> kKindBits; }

  std::uint64_t bits_ = 0;
};

/// The values of one pickle. Texts are views into the buffer it was read from, which must outlive it, or
/// copies of its own.
class PickleDocument {
 public:
  using Kind = PickleValue::Kind;

  /// `owns_texts`: copies them.
  explicit PickleDocument(bool owns_texts = false) : owns_texts_(owns_texts) {}

  [[nodiscard]] PickleValue root() const { return root_; }

  /// Elements of a list or tuple; keys and values in turn of a dict. Empty for anything else.
  [[nodiscard]] std::span<const PickleValue> items(PickleValue container) const;

  /// Empty for what is no text, no integer of 64 bits, no number.
  [[nodiscard]] std::optional<std::string_view> text(PickleValue value) const;
  [[nodiscard]] std::optional<std::int64_t> integer(PickleValue value) const {
    if (value.kind() != Kind::integer) return std::nullopt;
    const std::uint64_t payload = value.payload();
    if (payload & kWide) return wide_integers_[payload & ~kWide];
    return static_cast<std::int64_t>(payload) - kInlineLimit;
  }
  [[nodiscard]] std::optional<double> real(PickleValue value) const;

  [[nodiscard]] std::size_t container_count() const { return containers_.size(); }
  /// Values in all containers together.
  [[nodiscard]] std::size_t element_count() const { return element_count_; }
  [[nodiscard]] std::size_t text_count() const { return texts_.size(); }
  /// Text number `index`, as in PickleValue::index().
  [[nodiscard]] std::string_view text_at(std::size_t index) const { return texts_[index]; }

  // --- Making values ---

  static constexpr PickleValue none() { return {}; }
  static constexpr PickleValue boolean(bool truth) { return {Kind::boolean, truth ? 1U : 0U}; }
  /// An integer that does not fit 64 bits: there, but without its value.
  static constexpr PickleValue huge() { return {Kind::huge, 0}; }
  /// Stands where there is no value; never in a document, and equal to none in it.
  static constexpr PickleValue absent() { return {Kind::huge, 1}; }
  /// The handle of a text or container of a document.
  static constexpr PickleValue handle(Kind kind, std::uint32_t index) { return {kind, index}; }
  PickleValue new_integer(std::int64_t number) {
    if (number < -kInlineLimit || number >= kInlineLimit) return new_wide_integer(number);
    return {Kind::integer, static_cast<std::uint64_t>(number + kInlineLimit)};
  }
  PickleValue new_real(double number);
  PickleValue new_text(std::string_view text);
  PickleValue new_container(Kind kind);

  /// Appends to a list, or keys and values in turn to a dict, or gives a new tuple its elements.
  void append(PickleValue container, std::span<const PickleValue> values);

  /// Gives up a container that nothing refers to any more; its handle will name another one.
  void recycle(PickleValue container);

  /// A note that a container carries for whoever makes it; 0 at first.
  [[nodiscard]] std::uint32_t& note_of(PickleValue container) { return containers_[container.index()].note; }

  void set_root(PickleValue root) { root_ = root; }

  static constexpr std::size_t kMostHandles = std::numeric_limits<std::uint32_t>::max();

 private:
  struct Container {
    PickleValue* data = nullptr;
    std::uint32_t size = 0;
    std::uint32_t capacity = 0;
    std::uint32_t note = 0;
  };

  // An integer within ±2^58 is kept in the handle itself, as its distance from −2^58.
  static constexpr std::int64_t kInlineLimit = std::int64_t{1} << 58;
  static constexpr std::uint64_t kWide = std::uint64_t{1} << 59;  // set: the payload is a place in a table

  PickleValue new_wide_integer(std::int64_t number);
  PickleValue* place_for(std::size_t values);
  std::string_view kept(std::string_view text);
  void rehash_texts();
  [[nodiscard]] std::uint32_t* slot_of(std::string_view text);

  ChunkedArray<Container> containers_;
  std::vector<std::unique_ptr<PickleValue[]>> chunks_;  ///< the values in containers
  std::size_t element_count_ = 0;
  std::size_t last_chunk_size_ = 0;
  std::size_t chunk_left_ = 0;  ///< free places at the end of the last chunk
  static constexpr std::size_t kSpareSizes = 64;
  std::array<std::vector<PickleValue*>, kSpareSizes> spare_places_;  ///< by capacity
  std::vector<std::uint32_t> spare_containers_;
  bool owns_texts_ = false;
  std::vector<std::unique_ptr<char[]>> text_chunks_;
  std::size_t text_chunk_left_ = 0;
  char* text_place_ = nullptr;
  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> text_slots_;  ///< open addressing: number of a text + 1, 0 = empty
  ChunkedArray<std::int64_t> wide_integers_;
  ChunkedArray<double> reals_;
  PickleValue root_;
};

}  // namespace vramlab
