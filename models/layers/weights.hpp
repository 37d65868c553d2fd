// The tensors of a network that outlive its steps: weights, their gradients, what the optimizer keeps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/layers/tape.hpp"

namespace vramlab::layers {

/// A tensor of the network.
struct Weight {
  std::uint32_t index = 0;
  std::int64_t elements = 0;
  Number number = Number::float32;
  bool trained = true;
  bool is_buffer = false;  ///< no parameter: never trained, nor shared
};

/// Of a low-rank adapter beside a layer: two matrices.
struct Adapter {
  Weight down;
  Weight up;
  std::int64_t rank = 0;
};

/// A matrix product with what belongs to it.
struct Linear {
  Weight weight;
  std::optional<Weight> bias;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool transposed = false;  ///< GPT-2's Conv1D, whose arguments PyTorch evaluates the other way round
  std::optional<Adapter> adapter;
};

/// A norm; without bias it is the root mean square alone.
struct Norm {
  Weight weight;
  std::optional<Weight> bias;
  std::int64_t width = 0;
};

/// All tensors, in the order in which the network registers them.
class Weights {
 public:
  Weight add(std::int64_t elements, Number number, bool trained) {
    all_.push_back({static_cast<std::uint32_t>(all_.size()), elements, number, trained, false});
    return all_.back();
  }

  [[nodiscard]] const std::vector<Weight>& all() const { return all_; }

  /// Numbers of them all, buffers apart, and of those that are trained.
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] std::int64_t trained() const;

  /// A buffer of the network, which is no parameter.
  void add_buffer(std::int64_t elements, Number number) {
    add(elements, number, false);
    all_.back().is_buffer = true;
  }

 private:
  std::vector<Weight> all_;
};

/// Where they lie among the kept slots of a step: values, then gradients, then what the optimizer keeps, then
/// the workspaces of libraries.
class KeptSlots {
 public:
  KeptSlots(std::size_t weights, std::uint32_t states)
      : weights_(static_cast<std::uint32_t>(weights)), states_(states) {}

  [[nodiscard]] std::uint32_t value(const Weight& weight) const { return weight.index; }
  [[nodiscard]] std::uint32_t gradient(const Weight& weight) const { return weights_ + weight.index; }
  [[nodiscard]] std::uint32_t state(const Weight& weight, std::uint32_t number) const {
    return (2 + number) * weights_ + weight.index;
  }
  /// Of the thread that runs the forward pass and of the one that runs the backward pass; then the one for
  /// products with a bias.
  [[nodiscard]] std::uint32_t workspace(std::uint32_t number) const {
    return (2 + states_) * weights_ + number;
  }
  [[nodiscard]] std::uint32_t all() const { return workspace(3); }

 private:
  std::uint32_t weights_;
  std::uint32_t states_;
};

}  // namespace vramlab::layers
