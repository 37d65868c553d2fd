// The one rule by which a policy is called best, for comparisons, matrices, sweeps and pages of every kind.
//
// Only those that finished what they were given can be best; each kind says what that is by its metric
// `finished`. Among them a kind's rank decides, or the figure that is asked for. If none finished, there is
// no best one: the least bad is named with what it lost.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/metric.hpp"

namespace vramlab {

/// How one of those compared stands.
struct Standing {
  std::string label;
  std::string lost;          ///< what it did not finish, to be read behind its name; empty = it finished
  std::vector<double> rank;  ///< less is better, the first weighs most, NaN is worst; as long for all
  std::string remark;        ///< what else the verdict says of it, with its comma
};

/// The sentences of a verdict that differ from kind to kind.
struct BestRule {
  std::string head;  ///< what a policy must finish and what ranks those that did, for the head of a table
  std::string none;  ///< said where none finished, without a full stop
};

/// Whether the metric `finished` says so. Over several seeds it must have, with each.
bool has_finished(const std::vector<Metric>& metrics);

/// The best by rank; if none finished, the least bad. Among equals the first. Null without standings.
const Standing* leader(const std::vector<Standing>& standings);

/// "Best: …", or that none finished and which was the least bad.
std::string verdict_of(const std::vector<Standing>& standings, const BestRule& rule);

/// Whether any of them lost something: tables have a column for it then.
bool loses_any(const std::vector<Standing>& standings);

/// What that one lost; kNoFigure if nothing, or if it has no standing.
std::string lost_by(const std::vector<Standing>& standings, const std::string& label);

/// The places of those with the best figure of `metric`, of all that finished. None where the metric ranks
/// nothing. The oracle is what the others are measured by, and no choice.
std::vector<std::size_t> best_in(const std::vector<LabelledFigures>& results,
                                 const MetricDescription& metric);

/// Puts "best" and "rule" into `json`, and "finished" and "lost" into each of the rows json[rows], which are
/// labelled; the oracle has no standing and gets neither.
void put_standings(Json& json, const std::string& rows, const std::vector<Standing>& standings,
                   const BestRule& rule);

/// Puts "best_in" into each of json[rows], which are those of `results`: the metrics that a star marks, where
/// there is anything to choose between.
void put_stars(Json& json, const std::string& rows, const std::vector<LabelledFigures>& results,
               const MetricTable& metrics);

}  // namespace vramlab
