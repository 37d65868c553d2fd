// Single differences between two aligned programs, before anything is known of their causes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "recordings/alignment/alignment.hpp"
#include "recordings/alignment/blend.hpp"

namespace vramlab {

/// One difference: an action without a partner, or a pair with another size or another place of its free.
struct Atom {
  enum class Type : std::uint8_t { only_a, only_b, size, life };

  Type type{};
  bool alloc = true;            ///< false: another call that has no partner
  std::uint32_t a = kUnpaired;  ///< actions
  std::uint32_t b = kUnpaired;
  SiteId site = 0;
  Category category_a = Category::other;  ///< of blocks
  Category category_b = Category::other;
  bool by_optimizer = false;  ///< its stack, or its use, says so
  Bytes bytes_a = 0;          ///< requested; 0 where it has no block there
  Bytes bytes_b = 0;
  std::size_t stretch = 0;  ///< of the new program, else of the golden one
  std::int64_t shift = 0;   ///< of a free: by how many pairs it comes later
  bool never_a = false;     ///< of a free: there is none
  bool never_b = false;
  std::uint32_t gap = 0;  ///< number of pairs before it
  CauseId cause = 0;
  bool open = true;  ///< no cause yet

  [[nodiscard]] bool is_only() const { return type == Type::only_a || type == Type::only_b; }
  [[nodiscard]] Category category() const { return type == Type::only_a ? category_a : category_b; }
  /// Bytes in the new program less in the golden one; of a free what is held longer, or less long.
  [[nodiscard]] std::int64_t change() const;
};

/// Frees that are off by no more pairs than this mean nothing: garbage collection, threads of backward.
inline constexpr std::int64_t kSameMoment = 4;

/// All differences in stretches from `first` on. Moved frees within kSameMoment are counted, not listed.
struct Atoms {
  std::vector<Atom> all;
  std::uint64_t moved_frees = 0;
};
Atoms atoms_of(const ReadProgram& a, const ReadProgram& b, const Alignment& alignment, std::size_t first);

/// Bytes by the ratio that a size changed by.
class Ratios {
 public:
  void add(Bytes a, Bytes b);
  /// The ratio of most bytes, where it is one of `share` of them; 1 otherwise.
  [[nodiscard]] double of_most(double share) const;

 private:
  std::map<double, Bytes> bytes_;
  Bytes all_ = 0;
};

/// Sum of the sizes, as requested, of all blocks of one category.
Bytes bytes_of(const ReadProgram& read, Category category);

/// Does action `at` come after the first gradient of its step? Always where the step makes none.
bool in_backward(const ReadProgram& read, std::size_t at);

/// Places that have a mark in common, and those that have one with them, and so on.
template <class Mark>
std::vector<std::set<std::string>> joined_places(std::map<std::string, std::set<Mark>> marks) {
  std::vector<std::set<std::string>> groups;
  while (!marks.empty()) {
    auto& places = groups.emplace_back();
    std::set<Mark> all = marks.begin()->second;
    for (auto other = marks.begin(); other != marks.end();) {
      if (std::ranges::none_of(other->second, [&](const Mark& one) { return all.contains(one); })) {
        ++other;
        continue;
      }
      places.insert(other->first);
      all.insert(other->second.begin(), other->second.end());
      marks.erase(other);
      other = marks.begin();  // one that was passed over may have a new one in common
    }
  }
  return groups;
}

/// How the weights of two programs differ.
struct WeightChange {
  Bytes a = 0;
  Bytes b = 0;
  std::size_t count_a = 0;
  std::size_t count_b = 0;
  double ratio = 1;       ///< of nearly all of them
  bool resized = false;   ///< as many, of other sizes
  bool repeated = false;  ///< more or fewer, of sizes that are there
  [[nodiscard]] bool changed() const { return resized || repeated || ratio != 1 || count_a != count_b; }
};
WeightChange weight_change(const ReadProgram& a, const ReadProgram& b);

}  // namespace vramlab
