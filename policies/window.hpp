// The candidates for one batch, in groups of which only the best member needs to be looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/sample.hpp"

namespace vramlab {

/// Candidates grouped by task and number of images. Within a group a batch's memory depends on the length
/// alone: below the longest one so far all members cost the same, and the longest of them wastes least
/// padding; beyond it the shortest costs least.
class CandidateWindow {
 public:
  struct Candidate {
    SampleId id = 0;
    std::uint32_t age = 0;  ///< 0 = the oldest
  };

  /// Begins with `waiting`, oldest first.
  void reset(std::span<const Sample> samples, std::span<const SampleId> waiting);

  [[nodiscard]] std::size_t groups() const { return groups_.size(); }

  /// The best member of a group for a batch whose longest sample has `longest` tokens, which never falls from
  /// call to call; empty if the group has none left.
  [[nodiscard]] std::optional<Candidate> best(std::size_t group, std::int64_t longest);

  /// Takes what `best` gave out of the group.
  void take(std::size_t group);

  /// Takes the oldest of all, before any other is taken.
  SampleId take_oldest();

 private:
  struct Entry {
    std::uint64_t group_key = 0;
    std::int64_t tokens = 0;
    std::uint32_t age = 0;
    SampleId id = 0;
    bool taken = false;
  };
  struct Group {
    std::vector<std::uint32_t> within;  ///< entries not longer than the longest so far; the last is the best
    std::uint32_t next = 0;             ///< the shortest beyond
    std::uint32_t end = 0;
    std::uint32_t best = 0;
  };

  std::vector<Entry> entries_;
  std::vector<Group> groups_;
  std::uint32_t oldest_ = 0;
};

}  // namespace vramlab
