#include "models/layer_split.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kSmallestLayer = 4;  // allocations; fewer repeat by chance

// Length of the longest block that begins at `at` and comes `layers` times in a row; 0 if none does.
std::size_t block_at(const std::vector<std::int64_t>& sequence, std::size_t at, std::size_t layers) {
  for (std::size_t block = (sequence.size() - at) / layers; block >= kSmallestLayer; --block) {
    std::size_t place = at;
    const std::size_t end = at + (layers - 1) * block;
    while (place < end && sequence[place] == sequence[place + block]) ++place;
    const bool uniform = std::all_of(sequence.begin() + static_cast<std::ptrdiff_t>(at),
                                     sequence.begin() + static_cast<std::ptrdiff_t>(at + block),
                                     [&](std::int64_t one) { return one == sequence[at]; });
    if (place == end && !uniform) return block;
  }
  return 0;
}

/// Decides which card each tensor belongs to, and writes each card's part.
class Splitter {
 public:
  Splitter(const RecordedSpec& whole, const std::vector<std::int64_t>& layers)
      : whole_(whole), layers_(layers) {
    for (std::size_t card = 0; card < layers.size(); ++card) {
      first_layer_.push_back(total_);
      total_ += layers[card];
    }
    step_layers_ = layer_numbers(step_sequence(), total_);
    build_layers_ = layer_numbers(build_sequence(), total_);
    if (step_layers_.empty() || build_layers_.empty()) {
      throw InputError("", "nothing in the model " + whole.name + " comes " + std::to_string(total_) +
                               " times in a row, so it has not that many layers.");
    }
  }

  [[nodiscard]] RecordedSpec part(std::size_t card) const {
    RecordedSpec spec = whole_;
    spec.name += ", card " + std::to_string(card);
    spec.program.clear();
    for (const RecordedOp& op : whole_.program) {
      const bool of_tensor = op.kind == RecordedOp::Kind::allocate || op.kind == RecordedOp::Kind::free;
      if (!of_tensor || holds(card, op.what)) spec.program.push_back(op);
    }
    spec.build = build_part(card);
    const double share = static_cast<double>(layers_[card]) / static_cast<double>(total_);
    spec.time.floor_seconds *= share;
    spec.time.base_seconds *= share;
    spec.time.least_at_floor *= share;
    spec.time.most_at_floor *= share;
    for (StepTimeForm::Slope& slope : spec.time.slopes) slope.seconds *= share;
    return spec;
  }

 private:
  // Equal numbers: equal sizes at every shape. A tensor is numbered by its place in the program.
  [[nodiscard]] std::vector<std::int64_t> step_sequence() const {
    std::vector<std::int64_t> sequence;
    for (const RecordedTensor& tensor : whole_.tensors) {
      sequence.push_back((std::int64_t{tensor.size} << 32) + tensor.group);
    }
    return sequence;
  }

  [[nodiscard]] std::vector<std::int64_t> build_sequence() const {
    std::vector<std::int64_t> sequence;
    std::copy_if(whole_.build.begin(), whole_.build.end(), std::back_inserter(sequence),
                 [](std::int64_t entry) { return entry > 0; });
    return sequence;
  }

  [[nodiscard]] std::size_t card_of(std::int64_t layer) const {
    const auto next =
        std::upper_bound(first_layer_.begin(), first_layer_.end(), std::max<std::int64_t>(layer, 0));
    return static_cast<std::size_t>(next - first_layer_.begin()) - 1;
  }

  // The last tensor of a layer is what it hands to the next, which may lie on the next card.
  [[nodiscard]] bool holds(std::size_t card, std::size_t tensor) const {
    if (card_of(step_layers_[tensor]) == card) return true;
    const bool last = tensor + 1 < step_layers_.size() && step_layers_[tensor] >= 0 &&
                      step_layers_[tensor + 1] == step_layers_[tensor] + 1;
    return last && card > 0 && step_layers_[tensor] + 1 == first_layer_[card];
  }

  // What is made just before another tensor goes (a conversion) lies where that one lay.
  [[nodiscard]] std::vector<std::int64_t> build_part(std::size_t card) const {
    std::vector<std::int64_t> part;
    std::vector<std::int64_t> renamed;  // by number of the allocation; 0 = on another card
    std::vector<std::size_t> cards;
    std::int64_t made = 0;
    for (std::size_t i = 0; i < whole_.build.size(); ++i) {
      const std::int64_t entry = whole_.build[i];
      if (entry < 0) {
        const auto name = renamed[static_cast<std::size_t>(-entry - 1)];
        if (name > 0) part.push_back(-name);
        continue;
      }
      const std::int64_t next = i + 1 < whole_.build.size() ? whole_.build[i + 1] : 0;
      const bool converts = next < 0 && static_cast<std::size_t>(-next) <= cards.size();
      cards.push_back(converts ? cards[static_cast<std::size_t>(-next - 1)]
                               : card_of(build_layers_[cards.size()]));
      const bool here = cards.back() == card;
      renamed.push_back(here ? ++made : 0);
      if (here) part.push_back(entry);
    }
    return part;
  }

  const RecordedSpec& whole_;
  const std::vector<std::int64_t>& layers_;
  std::int64_t total_ = 0;
  std::vector<std::int64_t> first_layer_;  // by card
  std::vector<std::int64_t> step_layers_;  // by tensor
  std::vector<std::int64_t> build_layers_;
};

}  // namespace

std::vector<std::int64_t> layer_numbers(const std::vector<std::int64_t>& sequence, std::int64_t layers) {
  const auto count = static_cast<std::size_t>(layers);
  std::vector<std::int64_t> numbers(sequence.size(), -1);
  bool found = false;
  for (std::size_t at = 0; at < sequence.size();) {
    const std::size_t block = block_at(sequence, at, count);
    for (std::size_t place = 0; place < count * block; ++place) {
      numbers[at + place] = static_cast<std::int64_t>(place / block);
    }
    found = found || block > 0;
    if (block == 0 && found) numbers[at] = layers;
    at += std::max<std::size_t>(count * block, 1);
  }
  return found ? numbers : std::vector<std::int64_t>{};
}

LayerSplit::LayerSplit(const RecordedModel& whole, std::vector<std::int64_t> layers) : whole_(whole) {
  if (layers.size() < 2 || *std::min_element(layers.begin(), layers.end()) < 1) {
    throw InputError("", "layers are split over two cards or more, with at least one layer on each.");
  }
  if (whole_.spec().kept > 0) {
    throw InputError("", "the model " + whole_.spec().name +
                             " keeps gradients; only models that do not train can be split by layers.");
  }
  const Splitter splitter(whole_.spec(), layers);
  for (std::size_t card = 0; card < layers.size(); ++card) {
    parts_.push_back(std::make_unique<RecordedModel>(splitter.part(card)));
  }
}

}  // namespace vramlab
