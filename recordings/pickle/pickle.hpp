// Pickles of plain data: the values they hold, reading them without running anything, and writing them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// What a pickle of plain data contains, in eight bytes a value.

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

  /// Empty for what is not text, no integer of 64 bits, no number.
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

// What a pickle remembers, in four bytes a value.

/// The memo of a pickle: numbered values, most of them texts and containers. At most 2^32 of them.
class PickleMemo {
 public:
  [[nodiscard]] std::size_t size() const { return codes_.size(); }

  /// Whether another value can be set.
  [[nodiscard]] bool has_room() const { return odd_.size() < kMostIndices - 1; }

  /// Makes it hold `size` values; new ones are absent.
  void grow(std::size_t size) {
    while (codes_.size() < size) codes_.push_back(kAbsent);
  }

  [[nodiscard]] PickleValue at(std::size_t number) const {
    const std::uint32_t code = codes_[number];
    if (code == kAbsent) return PickleDocument::absent();
    if ((code & kKindMask) == kOdd) return odd_[code >> kKindBits];
    return PickleDocument::handle(static_cast<PickleValue::Kind>(code & kKindMask), code >> kKindBits);
  }

  void set(std::size_t number, PickleValue value) {
    if (value == PickleDocument::absent()) {
      codes_[number] = kAbsent;
    } else if (value.kind() >= PickleValue::Kind::text && value.index() < kMostIndices) {
      codes_[number] = value.index() << kKindBits | static_cast<std::uint32_t>(value.kind());
    } else {
      codes_[number] = static_cast<std::uint32_t>(odd_.size()) << kKindBits | kOdd;
      odd_.push_back(value);
    }
  }

 private:
  static constexpr int kKindBits = 4;
  static constexpr std::uint32_t kKindMask = 0xF;
  static constexpr std::uint32_t kOdd = 0xE;  ///< the value stands in `odd_`
  static constexpr std::uint32_t kAbsent = 0xFFFF'FFFF;
  static constexpr std::uint32_t kMostIndices = std::uint32_t{1} << 28;

  ChunkedArray<std::uint32_t, std::size_t{1} << 18> codes_;
  std::vector<PickleValue> odd_;
};

// A check that the containers of a pickle form no cycle and are not nested too deeply.

/// Most levels of containers inside containers; a snapshot has about seven.
inline constexpr std::size_t kPickleDepth = 100;

/// Throws InputError if a container that can be reached from the root contains itself, at any distance, or if
/// there are more than kPickleDepth levels of containers. Looks at each container once, however often it is
/// shared. `name` stands for the file in errors.
void check_pickle_shape(const PickleDocument& document, const std::string& name);

// A reader of Python pickles that hold plain data only. Nothing in a file is ever executed.

/// Whether `data` begins like a pickle of protocol 2 or later.
bool looks_like_pickle(std::string_view data);

/// Puts up to `size` bytes at a place and returns how many; fewer only at the end.
using ReadBytes = std::function<std::size_t(char* place, std::size_t size)>;

/// Takes the elements of long lists out of a pickle while it is read, so that they need not all be kept:
/// those of the lists in the list at one key of the root.
class PickleListTaker {
 public:
  virtual ~PickleListTaker() = default;

  /// The key of the root.
  [[nodiscard]] virtual std::string_view key() const = 0;

  /// The next elements of `list`, which is or will be number `place` of its list. Afterwards they are gone,
  /// unless the pickle refers to them once more.
  virtual void take(PickleValue list, std::size_t place, std::span<const PickleValue> elements) = 0;
};

/// Reads a pickle of protocol 2 to 5 made of dicts, lists, tuples, texts, numbers, booleans and None
/// (R11.9, R11.10). `data` must outlive the result; `name` stands for the file in errors.
///
/// Throws InputError with the byte offset for everything else: an opcode that could name or build an object,
/// data that ends too early or contradicts itself, containers that contain themselves or lie more than
/// kPickleDepth deep. The memory needed is at most a small multiple of the size of `data`.
PickleDocument read_pickle(std::string_view data, const std::string& name);

/// The same into an empty `document`, while `taker` takes what it wants.
void read_pickle(std::string_view data, const std::string& name, PickleDocument& document,
                 PickleListTaker& taker);

/// The same from bytes as they come; `document` must own its texts. Memory does not grow with what is taken,
/// but for 8 bytes for each value that the pickle remembers.
void read_pickle(const ReadBytes& read, const std::string& name, PickleDocument& document,
                 PickleListTaker& taker);

// Writes Python pickles of protocol 4, opcode by opcode as Python's own pickler does.

/// Takes the bytes of a file piece by piece, in order. May throw to stop the writing.
using ByteSink = std::function<void(std::string_view)>;

/// The place of an object in a pickle's memo, by which it can be named again.
enum class MemoPlace : std::uint32_t {};

/// Containers are opened, filled and closed by the caller: begin_list(), then append batches as Python does.
/// Nothing but the current frame of 64 KiB is kept in memory.
class PickleWriter {
 public:
  explicit PickleWriter(ByteSink sink) : sink_(std::move(sink)) {}

  /// The head of the file. First of all calls.
  void begin();
  /// The end of the file. Last of all calls.
  void end();

  // --- Values. Before each a frame may end, as in Python. ---
  void integer(std::int64_t value);
  void real(double value);
  void boolean(bool value);
  /// A string, put in the memo. At most 2^32 - 1 bytes.
  MemoPlace text(std::string_view value);
  /// An object that was written before.
  void again(MemoPlace object);
  MemoPlace empty_list() { return empty(']'); }
  MemoPlace empty_dict() { return empty('}'); }

  // --- Container parts ---
  void mark() { put('('); }
  void append() { put('a'); }
  void appends() { put('e'); }
  void set_item() { put('s'); }
  void set_items() { put('u'); }
  /// A tuple of two: tuple_begins(), both values, tuple2().
  void tuple_begins() { value_begins(); }
  void tuple2();

  /// Items that one APPENDS or SETITEMS takes.
  static constexpr std::size_t kBatch = 1000;

 private:
  void value_begins();
  void put(char opcode) { frame_ += opcode; }
  void put(char opcode, std::uint64_t number, int bytes);
  MemoPlace empty(char opcode);
  MemoPlace memoize();
  void flush_frame();

  ByteSink sink_;
  std::string frame_;
  std::uint32_t memo_ = 0;
};

}  // namespace vramlab
