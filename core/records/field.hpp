// One key of a section as people, checks and documents see it: what a row of a table says, without its type.
#pragma once

#include <any>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace vramlab {

/// What the value of a key looks like.
enum class FieldKind : std::uint8_t {
  boolean,
  integer,
  number,
  text,    ///< of one line
  choice,  ///< one of some words
  size,    ///< "12GiB", "512MiB" or a number of bytes
  object,  ///< with fields of its own
  list,    ///< of objects with those fields
  values,  ///< an object of integers, one a parameter of the workload
  bounds,  ///< an object of [low, high], one a parameter of the workload
  bound,   ///< a number, true or false, or a size in quotes
  integers,
  texts,       ///< a list of texts, each of one line
  batch_size,  ///< a whole number, or "auto_batch_size"
  model,       ///< a file's name, or a model written in place; checked where models are read
  any_list     ///< a list of any values
};

/// Integers by name, in the order of the file: a value of kind `values`.
using NamedIntegers = std::vector<std::pair<std::string, std::int64_t>>;

/// An inclusive range of one name. A list of them, in the order of the file, is a value of kind `bounds`.
struct NamedRange {
  std::string name;
  std::int64_t low = 0;
  std::int64_t high = 0;
};
using NamedRanges = std::vector<NamedRange>;

/// A checked value on its way into a section, or a section's default on its way out. Sizes are integers of
/// bytes, choices their words; `std::any` holds what a reader passes on as it stands.
using FieldValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                                std::vector<std::string>, NamedIntegers, NamedRanges, std::any>;

/// Everything there is to say about one key.
struct Field {
  std::string key;
  FieldKind kind = FieldKind::text;
  std::string help{};  ///< one sentence, without the default
  bool required = false;
  double low = 0;                      ///< integer, number, size: smallest value allowed
  double high = 0;                     ///< … and largest; both 0: no bounds
  std::vector<std::string> choices{};  ///< choice: the words allowed; bounds: the names, if not any
  std::vector<Field> fields{};         ///< of an object, or of a list's members
  bool open = false;                   ///< of these: further keys are allowed; they are checked elsewhere
  std::optional<FieldValue> default_value{};  ///< of an optional key; empty: leaving it out is not a value
  std::string unit{};                         ///< e.g. "iterations", "ratio of the total"; may be empty

  [[nodiscard]] bool is_bounded() const { return low != 0 || high != 0; }
};

/// The names of `fields`, in their order.
std::vector<std::string> keys_of(const std::vector<Field>& fields);

/// The default for people, as a file would have it: "true", "0.85", "32GiB", "peak". Empty if there is none,
/// or if it is an empty text or a list.
std::string default_text(const Field& field);

/// The shortest text of `number` that reads back equal.
std::string shortest_text(double number);

/// `size` in the largest unit of which it is a whole number: "32GiB", "1536MiB", "100".
std::string exact_size_text(std::uint64_t size);

}  // namespace vramlab
