#include "lab/fixed_choices.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "lab/parallel.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kMostChosenRuns = 500;
constexpr std::int64_t kFirstLook = 100;  // runs of the first one, if it can be
constexpr std::int64_t kStretch = 8;      // places on either side of the best that are tried at last
constexpr std::array<std::int64_t, 4> kValuesAtFirst{17, 9, 5, 3};  // of each group of dials in order

/// Dials that move as one: in the first look those of a group, later each by itself.
using Moved = std::vector<std::size_t>;

class ChoiceSearch {
 public:
  ChoiceSearch(const std::vector<FixedDial>& dials, unsigned threads,
               const std::function<FixedRank(const FixedPlaces&)>& run)
      : dials_(dials), threads_(threads), run_(run) {
    std::map<std::string, std::size_t> named;
    for (std::size_t i = 0; i < dials.size(); ++i) {
      const bool alone = !dials[i].in_order || dials[i].group.empty();
      const auto place =
          alone ? groups_.size() : named.try_emplace(dials[i].group, groups_.size()).first->second;
      if (place == groups_.size()) groups_.emplace_back();
      groups_[place].push_back(i);
    }
  }

  std::optional<FixedChoice> find() {
    const bool few = choices() <= kFewChoices;
    if (few) {
      try_out(every_choice());
    } else {
      search();
    }
    if (!best_) return std::nullopt;
    return FixedChoice{best_->first, best_->second, std::ssize(known_), few};
  }

 private:
  // Only as far as kFewChoices is of interest.
  [[nodiscard]] std::int64_t choices() const {
    std::int64_t count = 1;
    for (const FixedDial& dial : dials_) {
      count = std::min(count, kFewChoices + 1) * std::min(dial.count, kFewChoices + 1);
    }
    return count;
  }

  [[nodiscard]] std::vector<FixedPlaces> every_choice() const {
    std::vector<FixedPlaces> all{FixedPlaces(dials_.size(), 0)};
    for (std::size_t i = 0; i < dials_.size(); ++i) {
      std::vector<FixedPlaces> more;
      for (const FixedPlaces& one : all) {
        for (std::int64_t place = 0; place < dials_[i].count; ++place) {
          more.push_back(one);
          more.back()[i] = place;
        }
      }
      all = std::move(more);
    }
    return all;
  }

  // The dials of a group stand at the same share of their ranges, so that alike jobs begin alike.
  [[nodiscard]] std::vector<FixedPlaces> first_look(std::int64_t values) const {
    std::vector<FixedPlaces> all{FixedPlaces(dials_.size(), 0)};
    for (const Moved& group : groups_) {
      const FixedDial& first = dials_[group.front()];
      const std::int64_t count = first.in_order ? values : first.count;
      std::vector<FixedPlaces> more;
      for (const FixedPlaces& one : all) {
        for (std::int64_t value = 0; value < count; ++value) {
          more.push_back(one);
          for (const std::size_t dial : group) {
            more.back()[dial] = count == 1 ? 0 : (dials_[dial].count - 1) * value / (count - 1);
          }
        }
      }
      all = std::move(more);
    }
    return all;
  }

  [[nodiscard]] std::int64_t values_at_first() const {
    for (const std::int64_t values : kValuesAtFirst) {
      std::int64_t runs = 1;
      for (const Moved& group : groups_) {
        const FixedDial& first = dials_[group.front()];
        runs =
            std::min(runs, kFirstLook + 1) * std::min(first.in_order ? values : first.count, kFirstLook + 1);
      }
      if (runs <= kFirstLook) return values;
    }
    return kValuesAtFirst.back();
  }

  void search() {
    const std::int64_t values = values_at_first();
    try_out(first_look(values));
    std::vector<std::int64_t> strides;
    for (const FixedDial& dial : dials_) {
      strides.push_back(std::max<std::int64_t>(1, (dial.count - 1) / (values - 1) / 2));
    }
    while (best_ && std::ssize(known_) < kMostChosenRuns) {
      const FixedPlaces before = best_->first;
      try_out(around(before, strides));
      if (best_->first == before) try_out(exchanges(before, strides));
      if (best_->first != before) continue;
      if (std::ranges::max(strides) == 1) {
        try_out(near(before));
        if (best_->first == before) return;
      }
      for (std::int64_t& stride : strides) stride = std::max<std::int64_t>(1, stride / 2);
    }
  }

  [[nodiscard]] FixedPlaces moved(FixedPlaces places, std::size_t dial, std::int64_t by) const {
    places[dial] = std::clamp<std::int64_t>(places[dial] + by, 0, dials_[dial].count - 1);
    return places;
  }

  // Each dial moved by itself, and each group as a whole.
  [[nodiscard]] std::vector<FixedPlaces> around(const FixedPlaces& places,
                                                const std::vector<std::int64_t>& strides) const {
    std::vector<FixedPlaces> all;
    for (std::size_t i = 0; i < dials_.size(); ++i) {
      if (dials_[i].in_order) {
        all.push_back(moved(places, i, -strides[i]));
        all.push_back(moved(places, i, strides[i]));
        continue;
      }
      for (std::int64_t place = 0; place < dials_[i].count; ++place)
        all.push_back(moved(places, i, place - places[i]));
    }
    for (const Moved& group : groups_) {
      for (const std::int64_t sign : {-1, 1}) {
        FixedPlaces one = places;
        for (const std::size_t dial : group) one = moved(std::move(one), dial, sign * strides[dial]);
        if (group.size() > 1) all.push_back(std::move(one));
      }
    }
    return all;
  }

  // At the edge of the memory a little more or less may fit or not, in no order: of few dials a whole
  // stretch.
  [[nodiscard]] std::vector<FixedPlaces> near(const FixedPlaces& places) const {
    std::vector<FixedPlaces> all;
    if (std::ranges::count(dials_, true, &FixedDial::in_order) > 2) return all;
    for (std::size_t i = 0; i < dials_.size(); ++i) {
      for (std::int64_t by = 2; dials_[i].in_order && by <= kStretch; ++by) {
        all.push_back(moved(places, i, -by));
        all.push_back(moved(places, i, by));
      }
    }
    return all;
  }

  // What one dial gives another may take: where all moves of one end at the edge of the memory.
  [[nodiscard]] std::vector<FixedPlaces> exchanges(const FixedPlaces& places,
                                                   const std::vector<std::int64_t>& strides) const {
    std::vector<FixedPlaces> all;
    for (std::size_t down = 0; down < dials_.size(); ++down) {
      for (std::size_t up = 0; up < dials_.size(); ++up) {
        if (up == down || !dials_[up].in_order || !dials_[down].in_order) continue;
        if (std::ssize(all) >= kFirstLook) return all;
        for (const auto& [less, more] : {std::pair{1, 1}, {1, 2}, {2, 1}})
          all.push_back(moved(moved(places, down, -less * strides[down]), up, more * strides[up]));
      }
    }
    return all;
  }

  // Those that were not run yet, each once; the best is chosen in their order.
  void try_out(const std::vector<FixedPlaces>& choices) {
    std::vector<FixedPlaces> fresh;
    for (const FixedPlaces& one : choices) {
      if (std::ssize(known_) == kMostChosenRuns) break;
      if (known_.insert(one).second) fresh.push_back(one);
    }
    std::vector<FixedRank> ranks(fresh.size());
    for_each_index(fresh.size(), threads_, [&](std::size_t i) { ranks[i] = run_(fresh[i]); });
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      if (ranks[i] && (!best_ || *ranks[i] < best_->second)) best_ = {fresh[i], *ranks[i]};
    }
  }

  const std::vector<FixedDial>& dials_;
  unsigned threads_;
  const std::function<FixedRank(const FixedPlaces&)>& run_;
  std::vector<Moved> groups_;
  std::set<FixedPlaces> known_;  ///< that were run
  std::optional<std::pair<FixedPlaces, std::vector<double>>> best_;
};

}  // namespace

std::optional<FixedChoice> best_fixed_choice(const std::vector<FixedDial>& dials, unsigned threads,
                                             const std::function<FixedRank(const FixedPlaces&)>& run) {
  return ChoiceSearch{dials, threads, run}.find();
}

std::string oracle_line(const OracleNote& note) {
  return fmt::format("oracle is {}, the best of {}.", note.choice,
                     note.tried_all
                         ? fmt::format("all {} fixed choices", note.runs)
                         : fmt::format("{} fixed choices, tried in strides and then between around "
                                       "the best: a search, not all there are",
                                       note.runs));
}

Json oracle_json(const OracleNote& note) {
  Json json = note.fixed;
  json["runs"] = note.runs;
  json["exhaustive"] = note.tried_all;
  return json;
}

}  // namespace vramlab
