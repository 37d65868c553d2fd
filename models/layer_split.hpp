// A recorded model spread over several cards: some of its layers on each.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/recorded_model.hpp"

namespace vramlab {

/// A recorded model without gradients whose layers lie on several cards, as a device map places them.
///
/// Layers are what repeats: stretches of the step and of building in which the same allocations come as
/// often as there are layers. What comes before the first stretch (embedding, inputs) is on the first card,
/// what comes after one (norm, head, sampling) on the last. Each card also holds a copy of what the layer
/// before its first one hands over, and the library's workspaces. A card takes its layers' share of the time;
/// transfers take none.
class LayerSplit : public WorkloadModel {
 public:
  /// `layers`: how many on each card, two cards at least, one layer each. Throws InputError if the step does
  /// not repeat that often in all, or if it keeps gradients.
  LayerSplit(const RecordedModel& whole, std::vector<std::int64_t> layers);

  [[nodiscard]] const ParameterSpace& parameters() const override { return whole_.parameters(); }
  /// Of the whole model, as one card would run it.
  [[nodiscard]] StepProgram build() const override { return whole_.build(); }
  [[nodiscard]] StepProgram step(const Point& point) const override { return whole_.step(point); }
  [[nodiscard]] bool timed() const override { return whole_.timed(); }
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return whole_.samples(point); }
  [[nodiscard]] std::int64_t pixels(const Point& point) const override { return whole_.pixels(point); }

  [[nodiscard]] std::size_t cards() const override { return parts_.size(); }
  [[nodiscard]] const WorkloadModel& on_card(std::size_t card) const override { return *parts_[card]; }

 private:
  RecordedModel whole_;
  std::vector<std::unique_ptr<RecordedModel>> parts_;
};

/// For each place of `sequence` the number of its layer, counted from 0; −1 before the first stretch of
/// `layers` equal blocks, `layers` in every other place outside of one. A block has at least four places.
/// Empty if nothing repeats so often.
std::vector<std::int64_t> layer_numbers(const std::vector<std::int64_t>& sequence, std::int64_t layers);

}  // namespace vramlab
