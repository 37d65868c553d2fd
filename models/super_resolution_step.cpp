// The training step of a super-resolution network: its convolutions, and the program of allocations and
// frees.
#include <algorithm>
#include <utility>
#include <vector>

#include "models/step_program.hpp"
#include "models/super_resolution.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kFloatSize = 4;  // bytes
constexpr std::int64_t kKernel = 3 * 3;

/// One 3 × 3 convolution with bias.
struct Convolution {
  ConvolutionSides sides;
  const ConvolutionWorkspaces* workspaces = nullptr;
  std::size_t weight = 0;  ///< number among the trained tensors; the bias follows it
};

/// What is kept for a trained tensor; each group has one slot per tensor.
enum class Kept : std::uint32_t { value, gradient, first_moment, second_moment };

/// All convolutions in the order the network registers them, which is the order of weights, of zeroing
/// gradients and of the optimizer. Refers to the specification it was made from.
class Layers {
 public:
  explicit Layers(const SuperResolutionSpec& spec) : spec_(spec) {
    add({spec.image_channels, spec.channels, 1}, spec.first);
    for (std::int64_t block = 0; block < spec.residual_blocks * spec.dense_blocks; ++block) {
      for (std::int64_t c = 0; c < spec.dense_convolutions; ++c) {
        const bool closes_block = c + 1 == spec.dense_convolutions;
        add({spec.channels + c * spec.growth, closes_block ? spec.channels : spec.growth, 1},
            spec.dense[static_cast<std::size_t>(c)]);
      }
    }
    add({spec.channels, spec.channels, 1}, spec.trunk);
    add({spec.channels, spec.channels, spec.scale}, spec.upsample);
    add({spec.channels, spec.image_channels, spec.scale}, spec.last);
  }

  [[nodiscard]] const Convolution& first() const { return convolutions_.front(); }
  [[nodiscard]] const Convolution& dense(std::int64_t residual, std::int64_t block,
                                         std::int64_t number) const {
    const std::int64_t blocks_before = residual * spec_.dense_blocks + block;
    return convolutions_[static_cast<std::size_t>(1 + blocks_before * spec_.dense_convolutions + number)];
  }
  [[nodiscard]] const Convolution& trunk() const { return convolutions_[convolutions_.size() - 3]; }
  [[nodiscard]] const Convolution& upsample() const { return convolutions_[convolutions_.size() - 2]; }
  [[nodiscard]] const Convolution& last() const { return convolutions_.back(); }

  [[nodiscard]] std::size_t tensors() const { return sizes_.size(); }
  [[nodiscard]] Tensor tensor(std::size_t number, Kept kept) const {
    const std::size_t slot = static_cast<std::size_t>(kept) * sizes_.size() + number;
    return {static_cast<std::uint32_t>(slot), sizes_[number]};
  }
  [[nodiscard]] std::uint32_t persistent_slots() const {
    return static_cast<std::uint32_t>(4 * sizes_.size());
  }

 private:
  void add(const ConvolutionSides& sides, const ConvolutionWorkspaces& workspaces) {
    convolutions_.push_back({sides, &workspaces, sizes_.size()});
    sizes_.push_back(static_cast<Bytes>(kFloatSize * kKernel * sides.input_channels * sides.output_channels));
    sizes_.push_back(static_cast<Bytes>(kFloatSize * sides.output_channels));
  }

  const SuperResolutionSpec& spec_;
  std::vector<Convolution> convolutions_;
  std::vector<Bytes> sizes_;  // of the trained tensors
};

/// What the forward pass of a dense block leaves for its backward pass.
struct DenseActivations {
  std::vector<Tensor> inputs;   // of every convolution: the concatenation of what came before it
  std::vector<Tensor> outputs;  // of every convolution but the last, before its activation function
};

/// What the network around the outer blocks leaves for the backward pass.
struct HeadActivations {
  Tensor trunk_input;      // of the convolution behind the outer blocks
  Tensor upsampled;        // input of the upsampling convolution
  Tensor upsample_output;  // before its activation function
  Tensor last_input;       // after it
  Tensor difference;       // prediction − target
  Tensor loss;
};

/// Writes a step in the order PyTorch runs it: forward pass, loss, gradients of the step before set to none,
/// backward pass, Adam. The first step of a process and all later ones are the same program, because absent
/// gradients need no free and the moments of Adam are only made when absent. Duration is left at 0.
class StepBuilder {
 public:
  StepBuilder(const SuperResolutionSpec& spec, const WorkspaceShape& shape)
      : spec_(spec), shape_(shape), layers_(spec), writer_(layers_.persistent_slots()) {}

  StepProgram build() {
    const Tensor input = feature(spec_.image_channels);
    const Tensor target = output_image();
    const HeadActivations head = forward_head(forward_trunk());
    zero_gradients();
    backward(head);
    optimize();
    writer_.drop(input);
    writer_.drop(target);
    writer_.drop(head.loss);
    return writer_.finish();
  }

 private:
  struct Trunk {
    Tensor shortcut;  // the first convolution's output, added again behind the trunk
    Tensor output;    // of the outer blocks
  };

  /// A tensor of `channels` floats a pixel; its images are `enlargement` times as wide as the input.
  Tensor feature(std::int64_t channels, std::int64_t enlargement = 1) {
    const std::int64_t pixels = enlargement * enlargement * shape_.pixels();
    return writer_.make(static_cast<Bytes>(kFloatSize * channels * pixels));
  }
  Tensor output_image() { return feature(spec_.image_channels, spec_.scale); }
  Tensor output_feature() { return feature(spec_.channels, spec_.scale); }

  void workspace(const Convolution& layer, const std::vector<WorkspaceRule>& rules) {
    writer_.use_workspace(workspace_size(rules, layer.sides, shape_));
  }

  /// The scratch of a sum of `elements` into each of `outputs` numbers.
  void reduction(std::int64_t outputs, std::int64_t elements) {
    const ReductionLaw& law = spec_.reduction;
    if (elements < law.two_stages_from) return;
    const auto divide_up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    const std::int64_t parts =
        std::min(divide_up(elements, law.elements_per_part), divide_up(law.most_parts, outputs));
    const Tensor partial_sums = writer_.make(static_cast<Bytes>(kFloatSize * outputs * parts));
    const Tensor counters = writer_.make(static_cast<Bytes>(kFloatSize * outputs));
    writer_.drop(counters);
    writer_.drop(partial_sums);
  }

  Tensor convolve(const Convolution& layer) {
    const Tensor output = feature(layer.sides.output_channels, layer.sides.enlargement);
    workspace(layer, layer.workspaces->forward);
    return output;
  }

  Tensor input_gradient(const Convolution& layer) {
    const Tensor gradient = feature(layer.sides.input_channels, layer.sides.enlargement);
    workspace(layer, layer.workspaces->input_gradient);
    return gradient;
  }

  void weight_gradients(const Convolution& layer) {
    writer_.make_persistent(layers_.tensor(layer.weight, Kept::gradient));
    workspace(layer, layer.workspaces->weight_gradient);
    writer_.make_persistent(layers_.tensor(layer.weight + 1, Kept::gradient));
    const std::int64_t pixels = layer.sides.enlargement * layer.sides.enlargement * shape_.pixels();
    reduction(layer.sides.output_channels, pixels);
  }

  Trunk forward_trunk() {
    const Tensor shortcut = convolve(layers_.first());
    Tensor current = shortcut;
    for (std::int64_t residual = 0; residual < spec_.residual_blocks; ++residual) {
      const Tensor residual_input = current;
      for (std::int64_t block = 0; block < spec_.dense_blocks; ++block) {
        current = forward_dense_block(residual, block, block > 0 ? &current : nullptr);
      }
      const Tensor scaled = feature(spec_.channels);
      writer_.drop(current);
      current = feature(spec_.channels);
      writer_.drop(scaled);
      if (residual > 0) writer_.drop(residual_input);  // the first one is the shortcut, which is still needed
    }
    return {shortcut, current};
  }

  Tensor forward_dense_block(std::int64_t residual, std::int64_t block, const Tensor* input_to_drop) {
    DenseActivations& kept = dense_.emplace_back();
    std::vector<Tensor> activated;
    Tensor last;
    for (std::int64_t c = 0; c < spec_.dense_convolutions; ++c) {
      const Convolution& layer = layers_.dense(residual, block, c);
      kept.inputs.push_back(feature(layer.sides.input_channels));
      last = convolve(layer);
      if (c + 1 == spec_.dense_convolutions) break;
      kept.outputs.push_back(last);
      activated.push_back(feature(layer.sides.output_channels));
    }
    const Tensor scaled = feature(spec_.channels);
    const Tensor output = feature(spec_.channels);
    writer_.drop(scaled);
    std::for_each(activated.rbegin(), activated.rend(), [&](const Tensor& t) { writer_.drop(t); });
    writer_.drop(last);
    if (input_to_drop != nullptr) writer_.drop(*input_to_drop);
    return output;
  }

  HeadActivations forward_head(const Trunk& trunk) {
    HeadActivations head;
    head.trunk_input = trunk.output;
    const Tensor trunk_output = convolve(layers_.trunk());
    const Tensor sum = feature(spec_.channels);
    writer_.drop(trunk_output);
    writer_.drop(trunk.shortcut);
    head.upsampled = output_feature();
    head.upsample_output = convolve(layers_.upsample());
    head.last_input = output_feature();
    writer_.drop(sum);
    const Tensor prediction = convolve(layers_.last());
    head.difference = output_image();
    const Tensor absolute = output_image();
    head.loss = writer_.make(kFloatSize);
    reduction(1, spec_.image_channels * spec_.scale * spec_.scale * shape_.pixels());
    writer_.drop(absolute);
    writer_.drop(prediction);
    return head;
  }

  void zero_gradients() {
    for (std::size_t i = 0; i < layers_.tensors(); ++i) {
      writer_.drop(layers_.tensor(i, Kept::gradient));
    }
  }

  void backward(const HeadActivations& head) {
    const Tensor loss_gradient = writer_.make(kFloatSize);
    // Gradients of the same tensor are summed in place, so the shortcut's gradient lives to the very end and
    // that of the outer blocks until the first of them has been entered.
    const Tensor shortcut = backward_head(head);
    const Tensor blocks = input_gradient(layers_.trunk());
    weight_gradients(layers_.trunk());
    writer_.drop(head.trunk_input);
    for (std::int64_t residual = spec_.residual_blocks - 1; residual >= 0; --residual) {
      const Tensor outer = feature(spec_.channels);
      if (residual == 0) writer_.drop(blocks);
      for (std::int64_t block = spec_.dense_blocks - 1; block >= 0; --block) {
        backward_dense_block(residual, block, block == 0 ? &outer : nullptr);
      }
    }
    weight_gradients(layers_.first());
    writer_.drop(shortcut);
    writer_.drop(loss_gradient);
  }

  Tensor backward_head(const HeadActivations& head) {
    const Tensor sign = output_image();
    const Tensor spread = output_image();
    const Tensor prediction = output_image();
    writer_.drop(spread);
    writer_.drop(sign);
    writer_.drop(head.difference);
    const Tensor last_input = input_gradient(layers_.last());
    weight_gradients(layers_.last());
    writer_.drop(prediction);
    writer_.drop(head.last_input);
    const Tensor upsample_output = output_feature();
    writer_.drop(last_input);
    writer_.drop(head.upsample_output);
    const Tensor upsampled = input_gradient(layers_.upsample());
    weight_gradients(layers_.upsample());
    writer_.drop(upsample_output);
    writer_.drop(head.upsampled);
    const Tensor sum = feature(spec_.channels);
    writer_.drop(upsampled);
    return sum;
  }

  void backward_dense_block(std::int64_t residual, std::int64_t block, const Tensor* outer_to_drop) {
    const DenseActivations kept = std::move(dense_.back());
    dense_.pop_back();
    const auto last = static_cast<std::size_t>(spec_.dense_convolutions - 1);
    const auto layer = [&](std::size_t c) -> const Convolution& {
      return layers_.dense(residual, block, static_cast<std::int64_t>(c));
    };
    const auto differentiate = [&](std::size_t c, const Tensor& output_gradient) {
      const Tensor gradient = input_gradient(layer(c));
      weight_gradients(layer(c));
      writer_.drop(output_gradient);
      writer_.drop(kept.inputs[c]);
      return gradient;
    };
    const Tensor scaled = feature(spec_.channels);
    if (outer_to_drop != nullptr) writer_.drop(*outer_to_drop);
    const Tensor whole = differentiate(last, scaled);
    const Tensor before_last = feature(spec_.growth);
    writer_.drop(kept.outputs[last - 1]);
    const Tensor but_one = differentiate(last - 1, before_last);
    // Both gradients cover all earlier outputs of the block: their slices are added up, one tensor each, and
    // what later convolutions contribute is added in place.
    std::vector<Tensor> sums;
    for (std::size_t c = 0; c + 1 < last; ++c) sums.push_back(feature(spec_.growth));
    writer_.drop(whole);
    writer_.drop(but_one);
    for (std::size_t c = last - 1; c-- > 0;) {
      const Tensor gradient = feature(spec_.growth);
      writer_.drop(sums[c]);
      writer_.drop(kept.outputs[c]);
      writer_.drop(differentiate(c, gradient));
    }
  }

  void optimize() {
    for (std::size_t i = 0; i < layers_.tensors(); ++i) {
      writer_.ensure(layers_.tensor(i, Kept::first_moment));
      writer_.ensure(layers_.tensor(i, Kept::second_moment));
    }
    std::vector<Tensor> denominators;
    for (std::size_t i = 0; i < layers_.tensors(); ++i) {
      denominators.push_back(writer_.make(layers_.tensor(i, Kept::value).size));
    }
    std::for_each(denominators.rbegin(), denominators.rend(), [&](const Tensor& t) { writer_.drop(t); });
  }

  const SuperResolutionSpec& spec_;
  const WorkspaceShape shape_;
  const Layers layers_;
  ProgramWriter writer_;
  std::vector<DenseActivations> dense_;  // of every dense block, in forward order
};

}  // namespace

StepProgram SuperResolution::build() const {
  const Layers layers(spec_);
  ProgramWriter writer(layers.persistent_slots());
  for (std::size_t i = 0; i < layers.tensors(); ++i) {
    writer.make_persistent(layers.tensor(i, Kept::value));
  }
  return writer.finish();
}

StepProgram SuperResolution::step(const Point& point) const {
  StepProgram program = StepBuilder(spec_, {point[0], point[1]}).build();
  program.duration = spec_.time.duration(pixels(point));
  program.workspace_refusals = spec_.workspace_refusals;
  return program;
}

}  // namespace vramlab
