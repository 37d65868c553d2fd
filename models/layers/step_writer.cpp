#include "models/layers/step_writer.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "models/layers/pass.hpp"

namespace vramlab::layers {
namespace {

/// Tensors that an optimizer keeps for each trained weight.
std::uint32_t states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::adamw:
    case Optimizer::adam:
      return 2;
    case Optimizer::adamw_fused:
      return 3;
    case Optimizer::adamw_8bit:
      return 4;
    case Optimizer::sgd_momentum:
      return 1;
    case Optimizer::sgd:
      break;
  }
  return 0;
}

/// The weight, or this card's shard of it.
Bytes size_of(const Weight& weight, std::int64_t cards) {
  return static_cast<Bytes>(shard_elements(weight, cards)) * bytes_of(weight.number);
}

class StepWriter {
 public:
  StepWriter(const LayersSpec& spec, const Network& network, const Point& point)
      : spec_(spec),
        network_(network),
        slots_(kept_slots(spec, network)),
        tape_(slots_.all()),
        kernels_(tape_, slots_, spec.card) {
    const auto names = parameter_names(spec.network, spec.run.task);
    const auto value = [&](const char* name) -> std::int64_t {
      const auto at = std::find(names.begin(), names.end(), name);
      return at == names.end() ? 0 : point[static_cast<std::size_t>(at - names.begin())];
    };
    sizes_ = {value("batch"), std::max(value("seq"), value("prompt")), value("target"), value("px")};
    tokens_ = value("new");
    if (sizes_.pixels > 0) {
      const std::int64_t side = sizes_.pixels / spec.network.patch_size;
      sizes_.length = product({side, side}) + 1;
    }
  }

  WrittenStep write() {
    switch (spec_.run.task) {
      case Task::training:
        train();
        break;
      case Task::generation:
        generate();
        break;
      case Task::forward:
        forward();
        break;
    }
    WrittenStep step;
    step.purposes = tape_.purposes();
    step.program = tape_.finish();
    return step;
  }

 private:
  Bytes size_of(const Weight& weight) const { return layers::size_of(weight, spec_.run.shards); }

  /// What the program hands to the network.
  Memory inputs(std::int64_t batch) {
    if (sizes_.pixels == 0) return tape_.tensor(product({batch, sizes_.length}), Number::int64).memory;
    const std::int64_t pixels = product({batch, spec_.network.image_channels, sizes_.pixels, sizes_.pixels});
    return tape_.tensor(pixels, shards_ ? shards_->number() : spec_.run.weights).memory;
  }

  /// What it is to give; of a decoder, and of a masked language model, that is what it is given.
  Memory targets(std::int64_t batch) {
    const Family family = family_of(spec_.network.architecture);
    if (family == Family::decoder || spec_.network.head == Head::masked_language_model) return nullptr;
    return tape_.tensor(product({batch, std::max<std::int64_t>(sizes_.target, 1)}), Number::int64).memory;
  }

  void zero_gradients() {
    for (const Weight& weight : network_.weights.all()) {
      if (weight.trained) tape_.free_kept({slots_.gradient(weight), size_of(weight)});
    }
  }

  void train() {
    const bool early = spec_.run.zero_gradients == ZeroGradients::before_forward;
    if (early) zero_gradients();
    if (spec_.run.shards > 1) share_weights();
    const std::int64_t part = spec_.run.micro_batch > 0 ? spec_.run.micro_batch : sizes_.batch;
    for (std::int64_t done = 0; done < sizes_.batch; done += part) {
      train_part(std::min(part, sizes_.batch - done), !early && done == 0);
    }
    optimize();
  }

  void train_part(std::int64_t batch, bool zero) {
    const Memory in = inputs(batch);
    const Memory out = targets(batch);
    PassSizes sizes = sizes_;
    sizes.batch = batch;
    Pass pass(kernels_, network_, spec_, sizes);
    kernels_.in_backward = false;
    set_autocast();
    const Value loss = pass.loss(in, out);
    kernels_.end_autocast();
    tape_.autocast.reset();
    if (zero) zero_gradients();
    kernels_.in_backward = true;
    const Value ones = tape_.tensor(1, Number::float32);
    make_bias_workspace();
    if (kernels_.shards != nullptr) shards_->begin_backward();
    if (loss.from) tape_.backward(loss.from, {ones.memory, 1, Number::float32, true});
    if (kernels_.shards == nullptr) return;
    shards_->reduce(shards_->groups() - 1);
    shards_->finish();
  }

  // A group for each layer, and one for the rest.
  void share_weights() {
    const RunSpec& run = spec_.run;
    const Number number = run.autocast == MixedPrecision::bfloat16  ? Number::bfloat16
                          : run.autocast == MixedPrecision::float16 ? Number::float16
                                                                    : run.weights;
    shards_.emplace(tape_, slots_, run.shards, number);
    const std::vector<Weight>& all = network_.weights.all();
    std::vector<Weight> rest;
    std::size_t done = 0;
    for (const auto* blocks : {&network_.blocks, &network_.decoder}) {
      for (const Block& block : *blocks) {
        rest.insert(rest.end(), all.begin() + static_cast<std::ptrdiff_t>(done),
                    all.begin() + static_cast<std::ptrdiff_t>(block.first_weight));
        shards_->add_group(std::span(all).subspan(block.first_weight, block.end_weight - block.first_weight));
        done = block.end_weight;
      }
    }
    rest.insert(rest.end(), all.begin() + static_cast<std::ptrdiff_t>(done), all.end());
    shards_->add_group(rest);
    kernels_.shards = &*shards_;
  }

  // Shards have mixed precision of their own.
  void set_autocast() {
    if (kernels_.shards != nullptr) return;
    if (spec_.run.autocast == MixedPrecision::bfloat16) tape_.autocast = Number::bfloat16;
    if (spec_.run.autocast == MixedPrecision::float16) tape_.autocast = Number::float16;
  }

  void make_bias_workspace() {
    const auto biased = [](const std::vector<Block>& blocks) {
      return !blocks.empty() && blocks.front().feed_forward.down.bias.has_value();
    };
    if (biased(network_.blocks)) tape_.ensure_kept({slots_.workspace(2), spec_.card.bias_workspace});
  }

  void forward() {
    tape_.recording = false;
    kernels_.training = false;
    const Memory in = inputs(sizes_.batch);
    const Memory out = targets(sizes_.batch);
    set_autocast();
    const Value result = Pass(kernels_, network_, spec_, sizes_).loss(in, out);
    kernels_.end_autocast();
  }

  void generate() {
    tape_.recording = false;
    kernels_.training = false;
    const Memory prompt = inputs(sizes_.batch);
    const Memory mask = tape_.tensor(product({sizes_.batch, sizes_.length}), Number::int64).memory;
    set_autocast();
    Pass(kernels_, network_, spec_, sizes_).generate(tokens_, prompt);
    kernels_.end_autocast();
  }

  // ---- the optimizer

  void optimize() {
    tape_.purpose = Purpose::optimizer;
    for (const Weight& weight : network_.weights.all()) {
      if (weight.trained) make_states(weight);
    }
    const Optimizer optimizer = spec_.run.optimizer;
    if (optimizer != Optimizer::adamw && optimizer != Optimizer::adam) return;
    // The denominators of all weights at once (torch.optim with foreach, its default).
    std::vector<Memory> denominators;
    for (const Weight& weight : network_.weights.all()) {
      if (weight.trained) denominators.push_back(tape_.allocate(size_of(weight)));
    }
    while (!denominators.empty()) denominators.pop_back();
  }

  void make_states(const Weight& weight) {
    const auto ensure = [&](std::uint32_t number, Bytes size) {
      tape_.ensure_kept({slots_.state(weight, number), size});
    };
    switch (spec_.run.optimizer) {
      case Optimizer::adamw_8bit:
        return make_small_states(weight);
      case Optimizer::adamw_fused:
        ensure(2, bytes_of(Number::float32));  // the number of the step, which others keep on the host
        [[fallthrough]];
      case Optimizer::adamw:
      case Optimizer::adam:
        ensure(0, size_of(weight));
        ensure(1, size_of(weight));
        return;
      case Optimizer::sgd_momentum:
        ensure(0, size_of(weight));
        return;
      case Optimizer::sgd:
        return;
    }
  }

  // Of bitsandbytes: a byte a number and a scale for each 256; small tensors stay in single precision.
  void make_small_states(const Weight& weight) {
    constexpr std::int64_t kSmall = 4096;
    constexpr std::int64_t kBlock = 256;
    const std::int64_t elements = shard_elements(weight, spec_.run.shards);
    const bool small = elements < kSmall;
    const auto count = static_cast<Bytes>(elements);
    for (std::uint32_t i = 0; i < 2; ++i) {
      tape_.ensure_kept({slots_.state(weight, i), small ? 4 * count : count});
      if (small) continue;
      tape_.ensure_kept(
          {slots_.state(weight, 2 + i), 4 * static_cast<Bytes>((elements + kBlock - 1) / kBlock)});
    }
  }

  const LayersSpec& spec_;
  const Network& network_;
  const KeptSlots slots_;
  Tape tape_;
  std::optional<Shards> shards_;
  Kernels kernels_;
  PassSizes sizes_;
  std::int64_t tokens_ = 0;
};

}  // namespace

KeptSlots kept_slots(const LayersSpec& spec, const Network& network) {
  const bool trains = spec.run.task == Task::training;
  return {network.weights.all().size(), trains ? states_of(spec.run.optimizer) : 0};
}

StepProgram write_build(const LayersSpec& spec, const Network& network) {
  const KeptSlots slots = kept_slots(spec, network);
  ProgramWriter writer(slots.all());
  for (const Weight& weight : network.weights.all()) {
    writer.make_persistent({slots.value(weight), size_of(weight, spec.run.shards)});
  }
  return writer.finish();
}

WrittenStep write_step(const LayersSpec& spec, const Network& network, const Point& point) {
  return StepWriter(spec, network, point).write();
}

}  // namespace vramlab::layers
