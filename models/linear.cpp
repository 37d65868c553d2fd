#include "models/linear.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "models/step_program.hpp"

namespace vramlab {
namespace {

constexpr Bytes kUnit = 2_MiB;
constexpr Bytes kSmallestOwnSegment = 10_MiB;  // smaller requests share segments of 20 MiB

Bytes to_unit(Bytes size) { return (size + kUnit / 2) / kUnit * kUnit; }

bool disturbs(Bytes size) { return size != 0 && size < kSmallestOwnSegment; }

void check(const LinearSpec& spec) {
  std::vector<Problem> problems;
  const auto refuse = [&](std::string what) { problems.push_back({spec.name, std::move(what)}); };
  if (spec.per_sample < kSmallestOwnSegment + kUnit) {
    refuse("per_sample is " + format_bytes(spec.per_sample) + "; it must be at least 12 MiB");
  }
  if (spec.resident > spec.fixed) {
    refuse("resident (" + format_bytes(spec.resident) + ") is part of fixed (" + format_bytes(spec.fixed) +
           ") and cannot exceed it");
  } else if (disturbs(to_unit(spec.resident)) || disturbs(to_unit(spec.fixed) - to_unit(spec.resident))) {
    refuse("resident and fixed − resident must each be 0 or at least 10 MiB");
  }
  if (disturbs(to_unit(spec.state)) || (spec.state > 0 && to_unit(spec.state) == 0)) {
    refuse("state must be 0 or at least 10 MiB");
  }
  if (spec.batch.low < 0 || spec.batch.high < spec.batch.low) refuse("batch: the range is empty or negative");
  for (const double share : spec.first_steps) {
    if (!(share > 0 && share <= 100)) refuse("first_steps: a share must be above 0 and at most 100");
  }
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace

LinearWorkload::LinearWorkload(LinearSpec spec) : spec_(std::move(spec)) {
  check(spec_);
  parameters_.parameters = {spec_.batch};
}

Bytes LinearWorkload::peak(std::int64_t batch) const {
  return to_unit(spec_.fixed + spec_.per_sample * static_cast<Bytes>(batch));
}

StepProgram LinearWorkload::build() const {
  ProgramWriter writer(persistent_slots());
  if (const Bytes resident = to_unit(spec_.resident); resident > 0) writer.make_persistent({0, resident});
  return writer.finish();
}

std::vector<Bytes> LinearWorkload::sizes(std::int64_t batch) const {
  std::vector<Bytes> sizes;
  for (std::int64_t sample = 1; sample <= batch; ++sample) sizes.push_back(peak(sample) - peak(sample - 1));
  const Bytes rest = peak(0) - to_unit(spec_.resident);
  // A state takes the block of the rest where it fits; the rest must then not take one of a sample.
  if (rest > 0) sizes.insert(spec_.state > 0 ? sizes.end() : sizes.begin(), rest);
  return sizes;
}

StepProgram LinearWorkload::program(const std::vector<Bytes>& sizes, std::int64_t batch) const {
  ProgramWriter writer(persistent_slots());
  std::vector<Tensor> tensors;
  for (const Bytes size : sizes) tensors.push_back(writer.make(size));
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) writer.drop(*tensor);
  if (spec_.state > 0) writer.ensure({1, to_unit(spec_.state)});
  StepProgram program = writer.finish();
  program.duration = spec_.time.duration(batch);
  return program;
}

StepProgram LinearWorkload::step(const Point& point) const { return program(sizes(point[0]), point[0]); }

// The tensors of a settled step as far as the share goes, and one more for what is left of it.
StepProgram LinearWorkload::first_step(const Point& point, std::size_t visits) const {
  const double share = spec_.first_steps.at(visits);
  const Bytes wanted = to_unit(static_cast<Bytes>(share * static_cast<double>(peak(point[0]))));
  Bytes left = wanted - std::min(wanted, to_unit(spec_.resident));
  std::vector<Bytes> made;
  for (const Bytes size : sizes(point[0])) {
    if (left < size + kSmallestOwnSegment) break;
    made.push_back(size);
    left -= size;
  }
  made.push_back(std::max(left, kSmallestOwnSegment));
  return program(made, point[0]);
}

namespace {

Bytes own_segment(Bytes size) { return std::max(kSmallestOwnSegment, round_up(size, kUnit)); }

}  // namespace

StepProgram SampleSizeModel::build() const {
  ProgramWriter writer(1);
  if (sizes_.resident > 0) writer.make_persistent({0, own_segment(sizes_.resident)});
  return writer.finish();
}

std::int64_t SampleSizeModel::positions(std::span<const Sample> batch) const {
  std::int64_t tokens = 0;
  for (const Sample& sample : batch) tokens += sample.tokens;
  return packs_ ? tokens : longest_of(batch) * static_cast<std::int64_t>(batch.size());
}

StepProgram SampleSizeModel::step(std::span<const Sample> batch) const {
  const std::int64_t longest = longest_of(batch);
  ProgramWriter writer(1);
  std::vector<Tensor> tensors;
  for (const Sample& sample : batch) {
    Bytes size = sizes_.per_token * static_cast<Bytes>(packs_ ? sample.tokens : longest);
    if (!sizes_.by_images.empty()) {
      const auto images = static_cast<std::size_t>(sample.images);
      size += sizes_.by_images[std::min(images, sizes_.by_images.size() - 1)];
    }
    if (size > 0) tensors.push_back(writer.make(own_segment(size)));
  }
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) writer.drop(*tensor);
  StepProgram program = writer.finish();
  const double seconds = sizes_.seconds_per_sample * static_cast<double>(batch.size()) +
                         sizes_.seconds_per_position * static_cast<double>(positions(batch));
  program.duration = from_seconds(std::min(1000.0, std::max(sizes_.floor_seconds, seconds)));
  return program;
}

}  // namespace vramlab
