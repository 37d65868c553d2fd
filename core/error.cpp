#include "core/error.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace vramlab {
namespace {

std::string join(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += problem.where.empty() ? problem.what : problem.where + ": " + problem.what;
  }
  return text;
}

// Letters added, left out, replaced, or two neighbours swapped: one slip each.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> slips(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  std::iota(slips[0].begin(), slips[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    slips[i][0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = slips[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      slips[i][j] = std::min({slips[i - 1][j] + 1, slips[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) slips[i][j] = std::min(slips[i][j], slips[i - 2][j - 2] + 1);
    }
  }
  return slips[a.size()][b.size()];
}

}  // namespace

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(join(problems)), problems_(std::move(problems)) {}

InputError::InputError(std::string where, std::string what)
    : InputError(std::vector<Problem>{{std::move(where), std::move(what)}}) {}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = (name.size() + 2) / 3 + 1;  // one slip in three letters is still a slip
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({name.size(), candidate.size()});
    if (longer - shorter >= best_distance)
      continue;  // as many letters are left out at least: long names cost nothing
    const std::size_t distance = edit_distance(name, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

std::string suggest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (const std::string near = nearest_name(name, candidates); !near.empty()) {
    return " Did you mean \"" + near + "\"?";
  }
  std::string text = " Known:";
  for (const std::string& candidate : candidates) {
    text += (text.back() == ':' ? " " : ", ") + candidate;
  }
  return text + ".";
}

}  // namespace vramlab
