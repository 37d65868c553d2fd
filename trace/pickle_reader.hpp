// A reader of Python pickles that hold plain data only. Nothing in a file is ever executed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "trace/pickle_bytes.hpp"
#include "trace/pickle_value.hpp"

namespace vramlab {

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

/// Most levels of containers inside containers; a snapshot has about seven.
inline constexpr std::size_t kPickleDepth = 100;

}  // namespace vramlab
