#include "policies/tuners/work_pairs.hpp"

#include <algorithm>

#include "policies/tuners/one_parameter.hpp"

namespace vramlab {
namespace {

constexpr const char* kShare = "ratio of the total";

void check(const PredictiveOptions& o, const OptionMap& map, std::vector<Problem>& problems) {
  if (o.target_vram_usage + o.safety_margin > 1) {
    problems.push_back(
        {place_of(map, {"safety_margin", "target_vram_usage"}),
         "target_vram_usage plus safety_margin is above 1: the band would end beyond the card."});
  }
}

}  // namespace

const OptionTable<PredictiveOptions>& predictive_table() {
  using O = PredictiveOptions;
  static const OptionTable<O> table{
      .owner = "predictive",
      .options =
          {
              {"target_vram_usage", &O::target_vram_usage, kShare, 0.01, 1, "middle of the band"},
              {"safety_margin", &O::safety_margin, kShare, 0, 0.5, "half the width of the band"},
              {"bound_at", one_of<&O::bound_at>({"band", "target"}), "", 0, 0,
               "what a predicted peak's upper bound may reach: the upper end of the band, or the target"},
              {"adjustment_frequency", &O::adjustment_frequency, "steps", 1, 1e6,
               "steps between two looks at unchanged parameters; after a change the first look comes as soon "
               "as readings are steady"},
              {"objective",
               one_of<&O::objective>(
                   {"pixels", "pixels_per_s", "samples_per_s", "lq-first", "lq-then-batch"}),
               "", 0, 0,
               "what is made as large as possible: pixels, batch times size squared a step (lq-then-batch is "
               "its "
               "former name); a rate; or the size first and then the batch"},
              {"batch_parameter", &O::batch_parameter, "", 0, 0,
               "the parameter that counts samples; empty = batch, or the workload's first"},
              {"size_parameter", &O::size_parameter, "", 0, 0,
               "the parameter that says how large a sample is; empty = lq, or the next one, if there is one"},
              {"lq_granularity", &O::lq_granularity, "", 1, 4096, "the size is always a multiple of this"},
              {"confidence", &O::confidence, "standard deviations", 0, 10,
               "how far above what is expected the upper bound lies"},
              {"least_gain", &O::least_gain, "share of the objective", 0, 1, "a gain that is worth a change"},
              {"least_gain_to_turn", &O::least_gain_to_turn, "share of the objective", 0, 10,
               "the same for a change that turns a parameter round"},
              {"most_turns", &O::most_turns, "", 0, 1e6,
               "times that parameters may turn round; to use less memory they always may"},
              {"assumed_fragmentation", &O::assumed_fragmentation, "factor", 1, 3,
               "reserved over allocated at the peak, until readings tell"},
              {"max_adjustments", &O::max_adjustments, "", 0, 1e6,
               "changes in all; when they are used up, only an OOM changes anything"},
              {"oom_floor_limit", &O::oom_floor_limit, "steps", 1, 1e6,
               "failed steps in a row with nothing left to shrink after which the run ends"},
          },
      .check = check};
  return table;
}

namespace {

constexpr double kTimeNoise = 0.02;  // steps at equal parameters differ by driver calls

// Least share of a step that is taken to be no work: with none of it all pairs would be worth the same.
constexpr double kLeastBase = 0.001;

std::optional<std::size_t> size_index(const PredictiveOptions& options, const ParameterSpace& space,
                                      std::size_t batch) {
  if (!options.size_parameter.empty()) {
    return require_parameter(space, options.size_parameter, "predictive");
  }
  if (const auto lq = space.find("lq"); lq && *lq != batch) return lq;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (i != batch) return i;
  }
  return std::nullopt;
}

}  // namespace

WorkPairs::WorkPairs(const PredictiveOptions& options, const ParameterSpace& space)
    : batch_(require_parameter(space, options.batch_parameter, "predictive")),
      size_(size_index(options, space, batch_)) {
  const Parameter& batch = space.parameters[batch_];
  box_.low.batch = std::max<std::int64_t>(1, batch.low);
  box_.high.batch = std::max(box_.low.batch, batch.high);
  if (!size_) return;
  if (*size_ == batch_) {
    throw InputError("size_parameter",
                     "\"" + batch.name + "\" is the batch already; name another parameter.");
  }
  const Parameter& size = space.parameters[*size_];
  is_area_ = size.name == "lq";
  box_.unit = options.lq_granularity;
  box_.low.size = (std::max<std::int64_t>(1, size.low) + box_.unit - 1) / box_.unit * box_.unit;
  box_.high.size = size.high / box_.unit * box_.unit;
  if (box_.low.size > box_.high.size) {
    throw InputError("lq_granularity", "no multiple of " + std::to_string(box_.unit) + " lies within " +
                                           size.name + " " + std::to_string(size.low) + " to " +
                                           std::to_string(size.high) + ".");
  }
}

WorkPair WorkPairs::of(const Point& point) const {
  return {std::max<std::int64_t>(1, point[batch_]),
          size_ ? std::max<std::int64_t>(1, point[*size_]) : std::int64_t{1}};
}

Point WorkPairs::delta(const Point& point, const WorkPair& target) const {
  Point change(point.size(), 0);
  change[batch_] = target.batch - point[batch_];
  if (size_) change[*size_] = target.size - point[*size_];
  return change;
}

WorkPair WorkPairs::snapped(const WorkPair& pair) const {
  return {std::clamp(pair.batch, box_.low.batch, box_.high.batch),
          std::clamp(pair.size / box_.unit * box_.unit, box_.low.size, box_.high.size)};
}

double WorkPairs::work(const WorkPair& pair) const {
  const auto batch = static_cast<double>(pair.batch);
  const auto size = static_cast<double>(pair.size);
  return batch * size * (is_area_ ? size : 1);
}

// Until told otherwise half of a step's time is work: then more work pays, and smaller samples are faster.
void WorkScore::learn(double work, double seconds) {
  if (reference_ <= 0) {
    reference_ = work;
    const LeastSquares<2>::Vector half = LeastSquares<2>::Vector::Constant(seconds / 2);
    law_ = {half, half.cwiseAbs2()};
  }
  law_.add({1, work / reference_}, seconds, kTimeNoise * seconds);
}

double WorkScore::of(const WorkPair& pair, double work) const {
  if (goal_ == WorkGoal::lq_first) {  // a batch of any length counts less than one more in size
    const auto batch = static_cast<double>(pair.batch);
    return static_cast<double>(pair.size) + batch / (batch + 1);
  }
  if (goal_ == WorkGoal::pixels || reference_ <= 0) return work;
  const double slope = std::max(0.0, law_.weights()[1]);
  const double base = std::max(kLeastBase * slope, law_.weights()[0]);
  const double seconds = std::max(1e-9, base + slope * work / reference_);
  return (goal_ == WorkGoal::pixels_per_s ? work : static_cast<double>(pair.batch)) / seconds;
}

double WorkScore::gain(const WorkPair& pair, double work, const WorkPair& other, double other_work) const {
  if (goal_ != WorkGoal::lq_first) return of(pair, work) / of(other, other_work) - 1;
  const auto share = [](std::int64_t a, std::int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b) - 1;
  };
  return pair.size == other.size ? share(pair.batch, other.batch) : share(pair.size, other.size);
}

}  // namespace vramlab
