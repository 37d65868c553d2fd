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
///
/// From batch to batch most candidates stay, so the groups are kept in order and only what left or came is
/// looked for: a batch costs a short pass over the window and no sorting of it.
class CandidateWindow {
 public:
  struct Candidate {
    SampleId id = 0;
    std::uint64_t order = 0;  ///< lower = older
  };

  /// Begins a batch with `waiting`, oldest first. What a sample is may not change from call to call, and
  /// `samples` must last until the next.
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
    std::int64_t tokens = 0;
    std::uint64_t order = 0;
    SampleId id = 0;
    bool taken = false;
  };
  struct Group {
    std::uint64_t key = 0;
    std::vector<Entry> entries;  ///< by rising tokens; of equal ones the oldest last
    std::size_t beyond = 0;      ///< the first entry longer than the longest so far
    std::size_t within = 0;      ///< behind the last entry before it that is left
    std::size_t best = 0;
  };
  struct Arrival {
    std::uint64_t key = 0;
    Entry entry;
  };
  struct Known {
    SampleId id = 0;
    std::uint64_t order = 0;
  };
  void drop_gone(std::span<const SampleId> waiting);
  void add_arrivals(std::span<const SampleId> waiting);
  [[nodiscard]] Entry& entry_of(const Known& known);

  std::span<const Sample> samples_;
  std::vector<Group> groups_;  ///< by key
  std::vector<Known> known_;   ///< the candidates, oldest first
  std::vector<Known> taken_;   ///< those that were taken since the batch began
  std::vector<Arrival> arrivals_;
  std::vector<Entry> merged_;  ///< of a group, its arrivals and what stayed
  std::uint64_t next_order_ = 0;
};

}  // namespace vramlab
