// Whether buffers fit into a given capacity: a search that can also say no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/buffers.hpp"

namespace vramlab {

/// Searches among the plans in which no buffer can be moved down, from below, as Skyline packs them; if any
/// plan fits, one of these does. Ideas: the canonical solutions, the inference of sections and the dominance
/// of MiniMalloc (Moffitt, ASPLOS 2023); here a piece of time that cannot afford to be filled up must be
/// covered by a buffer that fits into its valley, and the piece with the fewest such buffers is decided
/// first.
class CapacitySearch {
 public:
  enum class Answer : std::uint8_t { fits, does_not_fit, open };

  /// Both must outlive it.
  CapacitySearch(const std::vector<Buffer>& buffers, const Timeline& timeline);

  /// One run from the start. `scores` (by buffer) say what is tried first; after `most_nodes` decisions the
  /// answer is open. Time and depth grow with `most_nodes`; a node costs about the number of pieces.
  Answer run(Bytes capacity, const std::vector<std::int64_t>& scores, std::size_t most_nodes);

  /// Of the last run, if it found that they fit.
  [[nodiscard]] const std::vector<Bytes>& offsets() const { return offsets_; }
  /// Of the last run.
  [[nodiscard]] std::size_t nodes() const { return nodes_; }
  /// Of the last run: the piece of time of each dead end, in their order.
  [[nodiscard]] const std::vector<std::size_t>& dead_ends() const { return dead_ends_; }

 private:
  /// A stretch of time lower than what is beside it.
  struct Valley {
    std::size_t begin, end;
    Bytes height;
    Bytes depth;  ///< up to the lower wall, or the capacity
  };
  /// What is to be tried next: one of these must be placed, or (`may_refuse`) the only one may stay away.
  struct Choice {
    std::vector<std::uint32_t> buffers;
    bool may_refuse = true;
  };
  /// A change to be taken back: of the heights of a stretch, or of one buffer's least offset.
  struct Change {
    enum class Kind : std::uint8_t { place, fill, refuse } kind;
    std::uint32_t buffer;
    std::size_t begin, end;
    Bytes before;
    Bytes filled;
  };
  enum class Step : std::uint8_t { dead_end, done, choose, changed };

  /// Pieces of time that no buffer still to be placed leaves.
  struct Part {
    std::size_t begin, end;
  };

  Answer search(const Part& part);
  Answer try_all(const Choice& choice, const Part& part);
  [[nodiscard]] std::vector<Part> parts_of(const Part& part);
  Step next_choice(const Part& part, Choice& choice);
  Step look_at(const Valley& valley, Choice& choice, std::size_t& fewest);
  Step fill(const Valley& valley, bool would_fit);
  Step dead_end(std::size_t piece);
  [[nodiscard]] bool lives_within(std::uint32_t buffer, const Valley& valley) const;
  void place(std::uint32_t buffer);
  void refuse(std::uint32_t buffer);
  void take_back(std::size_t to);

  const std::vector<Buffer>& buffers_;
  const Timeline& timeline_;
  std::vector<std::vector<std::uint32_t>> begin_at_;  ///< by piece
  Bytes capacity_ = 0;
  const std::vector<std::int64_t>* scores_ = nullptr;
  std::size_t most_nodes_ = 0;
  std::size_t nodes_ = 0;
  std::vector<Bytes> height_;        ///< by piece
  std::vector<Bytes> slack_;         ///< by piece: what may still be wasted
  std::vector<Bytes> offsets_;       ///< by buffer
  std::vector<Bytes> least_offset_;  ///< by buffer; where lower places were refused
  std::vector<bool> placed_;
  std::vector<std::int32_t> covers_;  ///< by piece, within look_at
  std::vector<Change> changes_;
  std::vector<std::size_t> dead_ends_;
};

}  // namespace vramlab
