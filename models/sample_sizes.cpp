#include "models/sample_sizes.hpp"

#include <algorithm>

#include "models/program_writer.hpp"

namespace vramlab {
namespace {

constexpr Bytes kUnit = 2_MiB;
constexpr Bytes kSmallest = 10_MiB;  // smaller requests share segments of 20 MiB

Bytes to_unit(Bytes size) { return std::max(kSmallest, round_up(size, kUnit)); }

}  // namespace

StepProgram SampleSizeModel::build() const {
  ProgramWriter writer(1);
  if (sizes_.resident > 0) writer.make_persistent({0, to_unit(sizes_.resident)});
  return writer.finish();
}

StepProgram SampleSizeModel::step(std::span<const Sample> batch) const {
  std::int64_t longest = 0;
  for (const Sample& sample : batch) longest = std::max(longest, sample.tokens);
  ProgramWriter writer(1);
  std::vector<Tensor> tensors;
  for (const Sample& sample : batch) {
    Bytes size = sizes_.per_token * static_cast<Bytes>(longest);
    if (!sizes_.by_images.empty()) {
      const auto images = static_cast<std::size_t>(sample.images);
      size += sizes_.by_images[std::min(images, sizes_.by_images.size() - 1)];
    }
    if (size > 0) tensors.push_back(writer.make(to_unit(size)));
  }
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) writer.drop(*tensor);
  StepProgram program = writer.finish();
  program.duration = from_seconds(
      std::max(sizes_.floor_seconds, sizes_.seconds_per_sample * static_cast<double>(batch.size())));
  return program;
}

}  // namespace vramlab
