#include "models/measured.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kMostMeasured = 100000;       // of a parameter; squares must not overflow
constexpr double kLargestPeak = 1125899906842624.0;  // 1 PiB, above any card: lines may lead anywhere

/// Collects what is wrong with the points.
class PointProblems {
 public:
  void add(const std::string& pointer, std::string what) { problems_.push_back({pointer, std::move(what)}); }
  void add(std::size_t point, const std::string& key, std::string what) {
    add("/points/" + std::to_string(point) + key, std::move(what));
  }
  void throw_if_any() {
    if (!problems_.empty()) throw InputError(std::move(problems_));
  }

 private:
  std::vector<Problem> problems_;
};

std::string at_text(const MeasuredPoint& point) {
  std::string text = point.batch ? "batch " + std::to_string(*point.batch) : "";
  if (point.length) text += (text.empty() ? "length " : ", length ") + std::to_string(*point.length);
  return text;
}

// Each point for itself, and whether all have the same keys.
void check_keys(const MeasuredSpec& spec, bool pairs, PointProblems& problems) {
  if (spec.points.size() < 2) {
    problems.add("/points", "has " + std::to_string(spec.points.size()) +
                                "; two at least tell how memory grows. Measure another batch.");
  }
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    const MeasuredPoint& point = spec.points[i];
    if (pairs != point.largest_batch.has_value()) {
      problems.add(i, "", "is of another sort than the first: give peaks or largest batches, in two models.");
      continue;
    }
    if (pairs) {
      if (!point.length) problems.add(i, "/length", "is missing: the largest batch is that of a length.");
      if (point.batch) problems.add(i, "/batch", "stands beside \"largest_batch\"; leave it out.");
      if (point.peak_allocated || point.peak_reserved) {
        problems.add(i, "", "has a peak beside \"largest_batch\"; leave it out.");
      }
      continue;
    }
    if (!point.batch) problems.add(i, "/batch", "is missing: the batch that the peak was measured at.");
    if (point.length.has_value() != spec.points.front().length.has_value()) {
      problems.add(i, "/length", "must be in every point or in none.");
    }
    if (!point.peak_allocated && !point.peak_reserved) {
      problems.add(i, "", "has no peak: give \"peak_reserved\", \"peak_allocated\" or both.");
    }
    if (point.peak_allocated && point.peak_reserved && *point.peak_reserved < *point.peak_allocated) {
      problems.add(i, "/peak_reserved", "is below peak_allocated, which is part of it.");
    }
  }
}

bool all_have(const MeasuredSpec& spec, std::optional<Bytes> MeasuredPoint::*peak) {
  return std::ranges::all_of(spec.points,
                             [peak](const MeasuredPoint& point) { return (point.*peak).has_value(); });
}

// No point twice, no peak that falls where the work grows.
void check_growth(const MeasuredSpec& spec, std::optional<Bytes> MeasuredPoint::*peak,
                  PointProblems& problems) {
  const char* key = peak == &MeasuredPoint::peak_reserved ? "/peak_reserved" : "/peak_allocated";
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    const MeasuredPoint& point = spec.points[i];
    for (std::size_t j = 0; j < spec.points.size(); ++j) {
      const MeasuredPoint& other = spec.points[j];
      const bool grows = other.batch <= point.batch && other.length <= point.length;
      if (j != i && other.batch == point.batch && other.length == point.length) {
        if (j < i) problems.add(i, "", at_text(point) + " stands in point " + std::to_string(j) + ", too.");
      } else if (j != i && grows && other.*peak > point.*peak) {
        problems.add(i, key,
                     format_bytes(*(point.*peak)) + " at " + at_text(point) + " is less than " +
                         format_bytes(*(other.*peak)) + " at " + at_text(other) +
                         ". Measure each point in a fresh process, or leave one out.");
        break;
      }
    }
    if (*(point.*peak) <= spec.resident) {
      problems.add(i, key, "is not above \"resident\", which is part of every peak.");
    }
  }
}

Parameter range_of(const char* name, const std::optional<Parameter>& given, std::int64_t low,
                   std::int64_t high) {
  return given ? Parameter{name, given->low, given->high} : Parameter{name, low, high};
}

// The index of the second of the two neighbours that `value` lies between, or that are nearest to it.
template <class Sorted, class Key>
std::size_t upper_neighbour(const Sorted& sorted, Key key, std::int64_t value) {
  std::size_t upper = 1;
  while (upper + 1 < sorted.size() && sorted[upper].*key < value) ++upper;
  return upper;
}

double line(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

std::string range_text(const char* name, std::int64_t low, std::int64_t high) {
  return ", " + std::string{name} + " " + std::to_string(low) + " to " + std::to_string(high);
}

}  // namespace

MeasuredModel::MeasuredModel(MeasuredSpec spec) : count_(spec.points.size()), resident_(spec.resident) {
  PointProblems problems;
  check_keys(spec, /*pairs=*/false, problems);
  problems.throw_if_any();
  is_reserved_ = all_have(spec, &MeasuredPoint::peak_reserved);
  const auto peak = is_reserved_ ? &MeasuredPoint::peak_reserved : &MeasuredPoint::peak_allocated;
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    if (spec.points[i].*peak) continue;
    problems.add(i, "/peak_allocated",
                 "is missing, and not all points have \"peak_reserved\": give one in all.");
  }
  problems.throw_if_any();
  check_growth(spec, peak, problems);
  problems.throw_if_any();
  has_lengths_ = spec.points.front().length.has_value();
  std::ranges::sort(spec.points, {}, [](const MeasuredPoint& p) { return std::pair(p.length, p.batch); });
  for (const MeasuredPoint& point : spec.points) {
    const std::int64_t length = point.length.value_or(0);
    if (series_.empty() || series_.back().length != length) series_.push_back({length, {}});
    series_.back().points.push_back({*point.batch, *(point.*peak)});
  }
  for (const auto& [length, points] : series_) {
    const std::string where = has_lengths_ ? "length " + std::to_string(length) + " has " : "there is ";
    if (points.size() < 2) problems.add("/points", where + "one batch only; two tell how memory grows.");
    if (points.size() >= 2 && points.back().peak == points[points.size() - 2].peak) {
      problems.add("/points", "the peak is the same at the two largest batches, " +
                                  std::to_string(points[points.size() - 2].batch) + " and " +
                                  std::to_string(points.back().batch) +
                                  ": nothing tells what a larger one takes. Measure one, or leave one out.");
    }
  }
  if (has_lengths_ && series_.size() < 2) {
    problems.add("/points", "the length is the same in all points; leave it out, or measure another one.");
  }
  problems.throw_if_any();
  parameters_.parameters = {range_of("batch", spec.batch, 1, kMostMeasured)};
  if (has_lengths_) {
    parameters_.parameters.push_back(
        range_of("length", spec.length, series_.front().length, series_.back().length));
  }
}

StepProgram MeasuredModel::build() const {
  ProgramWriter writer(1);
  if (resident_ > 0) writer.make_persistent({0, resident_});
  return writer.finish();
}

StepProgram MeasuredModel::step(const Point& point) const {
  ProgramWriter writer(1);
  if (const Bytes block = peak(point) - resident_; block > 0) writer.drop(writer.make(block));
  return writer.finish();
}

std::int64_t MeasuredModel::pixels(const Point& point) const {
  return has_lengths_ ? point[0] * point[1] : point[0];
}

double MeasuredModel::on_line(const Series& series, std::int64_t batch) const {
  const std::size_t upper = upper_neighbour(series.points, &Measured::batch, batch);
  const Measured& a = series.points[upper - 1];
  const Measured& b = series.points[upper];
  return line(static_cast<double>(batch), static_cast<double>(a.batch), static_cast<double>(a.peak),
              static_cast<double>(b.batch), static_cast<double>(b.peak));
}

Bytes MeasuredModel::peak(const Point& point) const {
  double bytes = on_line(series_.front(), point[0]);
  if (has_lengths_) {
    const std::size_t upper = upper_neighbour(series_, &Series::length, point[1]);
    const Series& a = series_[upper - 1];
    const Series& b = series_[upper];
    bytes = line(static_cast<double>(point[1]), static_cast<double>(a.length), on_line(a, point[0]),
                 static_cast<double>(b.length), on_line(b, point[0]));
  }
  return static_cast<Bytes>(std::ceil(std::clamp(bytes, static_cast<double>(resident_), kLargestPeak)));
}

bool MeasuredModel::extrapolates(const Point& point) const {
  const auto beyond = [&](const Series& series) {
    return point[0] < series.points.front().batch || point[0] > series.points.back().batch;
  };
  if (!has_lengths_) return beyond(series_.front());
  if (point[1] < series_.front().length || point[1] > series_.back().length) return true;
  const std::size_t upper = upper_neighbour(series_, &Series::length, point[1]);
  return (point[1] < series_[upper].length && beyond(series_[upper - 1])) ||
         (point[1] > series_[upper - 1].length && beyond(series_[upper]));
}

std::string MeasuredModel::basis() const {
  std::int64_t low = series_.front().points.front().batch;
  std::int64_t high = low;
  for (const Series& series : series_) {
    low = std::min(low, series.points.front().batch);
    high = std::max(high, series.points.back().batch);
  }
  return std::to_string(count_) + " measured points" + range_text("batch", low, high) +
         (has_lengths_ ? range_text("length", series_.front().length, series_.back().length) : "") +
         (is_reserved_ ? ", reserved memory" : ", allocated memory without fragments");
}

LargestBatches::LargestBatches(MeasuredSpec spec) {
  PointProblems problems;
  check_keys(spec, /*pairs=*/true, problems);
  problems.throw_if_any();
  for (std::size_t i = 0; i < spec.points.size(); ++i) {
    const MeasuredPoint& point = spec.points[i];
    for (std::size_t j = 0; j < spec.points.size(); ++j) {
      const MeasuredPoint& other = spec.points[j];
      if (j < i && other.length == point.length) {
        problems.add(i, "/length",
                     std::to_string(*point.length) + " stands in point " + std::to_string(j) + ", too.");
      } else if (other.length < point.length && other.largest_batch < point.largest_batch) {
        problems.add(i, "/largest_batch",
                     "is larger than that of length " + std::to_string(*other.length) +
                         ": longer samples cannot need less.");
        break;
      }
    }
    given_.push_back({*point.length, *point.largest_batch});
  }
  problems.throw_if_any();
  std::ranges::sort(given_, {}, &Given::length);
  parameters_.parameters = {range_of("batch", spec.batch, 1, kMostMeasured),
                            range_of("length", spec.length, given_.front().length, given_.back().length)};
}

StepProgram LargestBatches::build() const {
  throw InputError("", "largest batches were given in place of a model; only a search can answer from them.");
}

StepProgram LargestBatches::step(const Point& /*point*/) const { return build(); }

LargestBatches::Answer LargestBatches::at(std::int64_t length) const {
  const std::size_t upper = upper_neighbour(given_, &Given::length, length);
  const Given& a = given_[upper - 1];
  const Given& b = given_[upper];
  for (const Given& one : {a, b}) {
    if (one.length == length)
      return {one.batch, true, false, "as given for length " + std::to_string(length)};
  }
  const auto tokens = [](const Given& one) { return static_cast<double>(one.length * one.batch); };
  const double most = line(static_cast<double>(length), static_cast<double>(a.length), tokens(a),
                           static_cast<double>(b.length), tokens(b));
  Answer answer{.extrapolated = length < given_.front().length || length > given_.back().length};
  answer.batch = std::max<std::int64_t>(
      0, std::min(kMostMeasured, static_cast<std::int64_t>(std::floor(most / static_cast<double>(length)))));
  answer.reason = std::string{answer.extrapolated ? "extrapolated from" : "between"} +
                  " the batches given for lengths " + std::to_string(a.length) + " and " +
                  std::to_string(b.length) + ": " +
                  std::to_string(std::max<std::int64_t>(0, std::llround(std::floor(most)))) + " tokens";
  return answer;
}

std::unique_ptr<WorkloadModel> make_measured(MeasuredSpec spec) {
  const bool pairs = !spec.points.empty() && spec.points.front().largest_batch.has_value();
  if (pairs) return std::make_unique<LargestBatches>(std::move(spec));
  return std::make_unique<MeasuredModel>(std::move(spec));
}

}  // namespace vramlab
