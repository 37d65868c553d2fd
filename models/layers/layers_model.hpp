// A network as a workload: its step program at any batch and length, from figures alone.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/layers/network.hpp"
#include "models/layers/spec.hpp"
#include "models/workload_model.hpp"

namespace vramlab::layers {

/// Bytes by what they are for, at the moment of the highest sum.
struct Breakdown {
  Bytes weights = 0;
  Bytes gradients = 0;  ///< of the weights; those of activations count as activations
  Bytes optimizer = 0;  ///< what it keeps between steps
  Bytes optimizer_temporary = 0;
  Bytes activations = 0;
  Bytes logits = 0;  ///< of the head, and the loss
  Bytes cache = 0;   ///< of keys and values
  Bytes gathered = 0;
  Bytes workspaces = 0;

  [[nodiscard]] Bytes sum() const {
    return weights + gradients + optimizer + optimizer_temporary + activations + logits + cache + gathered +
           workspaces;
  }
};

/// The workload of one specification. Its steps have no times: nothing was measured.
class LayersModel : public WorkloadModel {
 public:
  /// Throws InputError if the figures contradict each other.
  explicit LayersModel(LayersSpec spec);

  [[nodiscard]] const ParameterSpace& parameters() const override { return parameters_; }
  [[nodiscard]] StepProgram build() const override;
  [[nodiscard]] StepProgram step(const Point& point) const override;
  [[nodiscard]] std::int64_t samples(const Point& point) const override { return point[0]; }
  /// Positions of a step, or pixels of its images.
  [[nodiscard]] std::int64_t pixels(const Point& point) const override;
  [[nodiscard]] bool timed() const override { return false; }

  [[nodiscard]] const LayersSpec& spec() const { return spec_; }
  /// Numbers that the network has, and those that are trained.
  [[nodiscard]] std::int64_t network_parameters() const { return network_.weights.parameters(); }
  [[nodiscard]] std::int64_t trained_parameters() const { return network_.weights.trained(); }

  /// What fills the memory at the peak of the second step, requests rounded to 512 bytes as the allocator
  /// does.
  [[nodiscard]] Breakdown breakdown(const Point& point) const;

 private:
  LayersSpec spec_;
  Network network_;
  ParameterSpace parameters_;
};

}  // namespace vramlab::layers
