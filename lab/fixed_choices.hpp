// The best of fixed choices, found by running them: each where they are few, else a search among them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/json.hpp"

namespace vramlab {

/// So many are all run.
inline constexpr std::int64_t kFewChoices = 128;

/// Something that is fixed for a whole run, and how many values it may have.
struct FixedDial {
  std::int64_t count = 1;  ///< at least 1
  bool in_order = true;    ///< neighbouring values do much the same; false: each is a thing of its own
  std::string group{};  ///< dials in order that stand alike in the first look: one parameter of several jobs
};

/// The number of the value of each dial, from 0.
using FixedPlaces = std::vector<std::int64_t>;

/// What a run came to: less is better, the first weighs most; without NaN. Empty = it is not safe.
using FixedRank = std::optional<std::vector<double>>;

struct FixedChoice {
  FixedPlaces places;
  std::vector<double> rank;
  std::int64_t runs = 0;
  bool tried_all = false;
};

/// The best of all choices if there are few. Of more, values in strides are tried and then, coordinate by
/// coordinate, those between around the best (two at once where one grows as another shrinks), in 500
/// runs at most: it may miss a better one. Among equals the one that was tried first, in the order of the
/// values. `run` is called on up to `threads` threads; the result does not depend on them. Empty if none that
/// was tried is safe.
std::optional<FixedChoice> best_fixed_choice(const std::vector<FixedDial>& dials, unsigned threads,
                                             const std::function<FixedRank(const FixedPlaces&)>& run);

/// How an oracle was found, for people and for JSON.
struct OracleNote {
  std::string choice;  ///< "dense with a budget of 5.2 GiB"
  std::int64_t runs = 0;
  bool tried_all = false;
  Json fixed = Json::object();  ///< what it fixes
};

/// One line of it.
std::string oracle_line(const OracleNote& note);
/// {"runs", "exhaustive"} and what it fixes.
Json oracle_json(const OracleNote& note);

}  // namespace vramlab
