// Operations element by element, norms and the loss.
#include <algorithm>
#include <utility>

#include "models/layers/kernels.hpp"

namespace vramlab::layers {
namespace {

Number wider(Number a, Number b) {
  if (a == b) return a;
  return Number::float32;
}

}  // namespace

Value Kernels::add(const Value& left, const Value& right) {
  Value result = tape.tensor(std::max(left.elements, right.elements), wider(left.number, right.number));
  result.from =
      tape.record({left.from, right.from},
                  [this, left_number = left.number, right_number = right.number,
                   left_wanted = left.wants_gradient(), right_wanted = right.wants_gradient(),
                   left_elements = left.elements, right_elements = right.elements](Gradients given) {
                    const auto part = [&](bool wanted, std::int64_t elements, Number number) -> Gradient {
                      if (!wanted) return {};
                      Gradient gradient = given[0];
                      if (elements < gradient.elements)
                        gradient = column_sum_of(gradient, elements, gradient.number);
                      if (gradient.number != number) gradient = new_gradient(elements, number);
                      return gradient;
                    };
                    Gradients gradients(2);
                    gradients[1] = part(right_wanted, right_elements, right_number);
                    gradients[0] = part(left_wanted, left_elements, left_number);
                    return gradients;
                  });
  return result;
}

Value Kernels::multiply(const Value& left, const Value& right) {
  Value result = tape.tensor(std::max(left.elements, right.elements), wider(left.number, right.number));
  const auto backward = [this, elements = result.elements, left_number = left.number,
                         right_number = right.number, left_wanted = left.wants_gradient(),
                         right_wanted = right.wants_gradient(),
                         saved_left = right.wants_gradient() ? left.memory : nullptr,
                         saved_right = left.wants_gradient() ? right.memory : nullptr](Gradients given) {
    const auto part = [&](bool wanted, Number number) -> Gradient {
      if (!wanted) return {};
      Gradient gradient = new_gradient(elements, given[0].number);
      if (gradient.number != number) gradient = new_gradient(elements, number);
      return gradient;
    };
    Gradients gradients(2);
    gradients[1] = part(right_wanted, right_number);
    gradients[0] = part(left_wanted, left_number);
    return gradients;
  };
  result.from = tape.record({left.from, right.from}, backward);
  return result;
}

// One tensor in, one out, one gradient: what most functions do.
Value Kernels::unary(const Value& value, Memory saved, Memory result) {
  Value made{std::move(result), value.elements, value.number, {}};
  made.from = tape.record({value.from},
                          [this, elements = value.elements, number = value.number, saved = std::move(saved)](
                              Gradients) { return Gradients{new_gradient(elements, number)}; });
  return made;
}

Value Kernels::scaled(const Value& value, const Memory& by) {
  return unary(value, by, tape.tensor(value.elements, value.number).memory);
}

Value Kernels::copy(const Value& value) {
  return unary(value, nullptr, tape.tensor(value.elements, value.number).memory);
}

std::array<Value, 3> Kernels::split(const Value& value) {
  const std::int64_t third = value.elements / 3;
  const Edge parts = tape.record(
      {value.from},
      [this, elements = value.elements, number = value.number](Gradients) {
        return Gradients{new_gradient(elements, number)};
      },
      3);
  std::array<Value, 3> made;
  for (std::uint32_t i = 0; i < 3; ++i) {
    made[i] = {value.memory, third, value.number, {}};
    if (parts) made[i].from = {parts.node, i};
  }
  return made;
}

Value Kernels::slice(const Value& value, std::int64_t elements) {
  Value part{value.memory, elements, value.number, {}};
  part.from = tape.record({value.from}, [this, all = value.elements, number = value.number](Gradients) {
    return Gradients{new_gradient(all, number)};
  });
  return part;
}

Value Kernels::join(const Value& first, const Value& second, std::int64_t elements) {
  Value result = tape.tensor(elements, wider(first.number, second.number));
  result.from = tape.record({first.from, second.from},
                            [this, small = first.elements, large = second.elements, number = first.number,
                             second_number = second.number](Gradients given) {
                              Gradients gradients(2);
                              gradients[0] = new_gradient(small, number);
                              gradients[1] = {given[0].memory, large, given[0].number, true};
                              if (second_number != given[0].number)
                                gradients[1] = new_gradient(large, second_number);
                              return gradients;
                            });
  return result;
}

Value Kernels::repeat(const Value& value, std::int64_t elements) {
  Value result = tape.tensor(elements, value.number);
  result.from = tape.record({value.from}, [this, small = value.elements, number = value.number](Gradients) {
    return Gradients{new_gradient(small, number)};
  });
  return result;
}

Value Kernels::activate(Activation kind, const Value& value) {
  if (kind == Activation::gelu_new) return gelu_new(value);
  if (kind == Activation::quick_gelu) {
    const Value inner = scaled(value);
    Memory gate = tape.tensor(value.elements, value.number).memory;
    const Value sigmoid = unary(inner, gate, gate);
    return multiply(value, sigmoid);
  }
  Memory result = tape.tensor(value.elements, value.number).memory;
  const bool saves_result = kind == Activation::relu || kind == Activation::tanh;
  return unary(value, saves_result ? result : value.memory, result);
}

// 0.5 · x · (1 + tanh(√(2/π) · (x + 0.044715 · x³))), each operation by itself. Powers are taken in single
// precision where mixed precision is on.
Value Kernels::gelu_new(const Value& value) {
  const Value halved = scaled(value);
  Value inner;
  {
    const Value base = single_of(value);
    Value power = tape.tensor(base.elements, base.number);
    power.from = tape.record(
        {base.from}, [this, elements = base.elements, number = base.number, saved = base.memory](Gradients) {
          const Gradient square = new_gradient(elements, number);
          Memory tripled = tape.tensor(elements, number).memory;
          Gradient gradient = new_gradient(elements, number);
          tripled.reset();
          return Gradients{gradient};
        });
    Value cubic = scaled(power);
    power = {};
    inner = add(value, cubic);
  }
  inner = scaled(inner);
  Memory result = tape.tensor(inner.elements, inner.number).memory;
  Value bent = unary(inner, result, result);
  inner = {};
  result.reset();
  const Value raised = [&] {
    Value sum = tape.tensor(bent.elements, bent.number);
    sum.from = tape.record({bent.from}, [](Gradients given) { return given; });
    return sum;
  }();
  return multiply(halved, raised);
}

Value Kernels::dropout(const Value& value, bool drops) {
  if (!drops || !training) return value;
  Memory mask = tape.allocate(static_cast<Bytes>(value.elements));
  Memory result = tape.tensor(value.elements, value.number).memory;
  return unary(value, std::move(mask), std::move(result));
}

Value Kernels::norm(const Norm& norm, const Value& value) {
  return norm.bias ? layer_norm(norm, value) : root_mean_square(norm, value);
}

Value Kernels::layer_norm(const Norm& norm, const Value& value) {
  const Value in = single_of(value);
  const Value weight = this->weight(norm.weight);
  const Value bias = this->weight(*norm.bias);
  Value result = tape.tensor(in.elements, in.number);
  const std::int64_t rows = in.elements / norm.width;
  const Memory mean = tape.tensor(rows, Number::float32).memory;
  const Memory spread = tape.tensor(rows, Number::float32).memory;
  const auto backward = [this, elements = in.elements, number = in.number, width = norm.width,
                         weight_number = weight.number, in_wanted = in.wants_gradient(),
                         weight_wanted = weight.wants_gradient(), saved = in.memory, mean,
                         spread](Gradients) {
    Gradients gradients(3);
    if (in_wanted) gradients[0] = new_gradient(elements, number);
    if (weight_wanted) gradients[1] = new_gradient(width, weight_number);
    if (weight_wanted) gradients[2] = new_gradient(width, weight_number);
    return gradients;
  };
  result.from = tape.record({in.from, weight.from, bias.from}, backward);
  return result;
}

// x · rsqrt(mean(x²) + ε) in single precision, then back, then times the weight.
Value Kernels::root_mean_square(const Norm& norm, const Value& value) {
  Value wide = cast(value, Number::float32);
  const std::int64_t elements = wide.elements;
  const std::int64_t rows = elements / norm.width;
  Value squares = tape.tensor(elements, Number::float32);
  squares.from = tape.record({wide.from}, [this, elements, saved = wide.memory](Gradients) {
    const Memory power = tape.tensor(elements, Number::float32).memory;
    const Memory doubled = tape.tensor(elements, Number::float32).memory;
    return Gradients{new_gradient(elements, Number::float32)};
  });
  Value variance = tape.tensor(rows, Number::float32);
  variance.from = tape.record({squares.from}, [this, elements](Gradients) {
    return Gradients{new_gradient(elements, Number::float32)};
  });
  squares = {};
  Value raised = tape.tensor(rows, Number::float32);
  raised.from = tape.record({variance.from}, [](Gradients given) { return given; });
  Value spread = tape.tensor(rows, Number::float32);
  spread.from = tape.record({raised.from}, [this, rows, saved = spread.memory](Gradients) {
    const Memory cube = tape.tensor(rows, Number::float32).memory;
    const Memory halved = tape.tensor(rows, Number::float32).memory;
    return Gradients{new_gradient(rows, Number::float32)};
  });
  raised = {};
  Value normal = tape.tensor(elements, Number::float32);
  normal.from = tape.record({wide.from, spread.from},
                            [this, elements, rows, wide = wide.memory, spread = spread.memory](Gradients) {
                              const Gradient of_spread = new_gradient(elements, Number::float32);
                              Gradients gradients(2);
                              gradients[0] = new_gradient(elements, Number::float32);
                              gradients[1] = new_gradient(rows, Number::float32);
                              return gradients;
                            });
  wide = {};
  spread = {};
  const Value narrow = cast(normal, value.number);
  const Value weight = this->weight(norm.weight);
  Value result = tape.tensor(elements, wider(narrow.number, weight.number));
  result.from =
      tape.record({narrow.from, weight.from},
                  [this, elements, number = narrow.number, weight_number = weight.number, width = norm.width,
                   narrow_wanted = narrow.wants_gradient(), weight_wanted = weight.wants_gradient(),
                   saved = weight.wants_gradient() ? narrow.memory : nullptr](Gradients given) {
                    Gradients gradients(2);
                    if (narrow_wanted) gradients[0] = new_gradient(elements, number);
                    if (!weight_wanted) return gradients;
                    const Gradient of_weight = new_gradient(elements, given[0].number);
                    gradients[1] = column_sum_of(of_weight, width, weight_number);
                    return gradients;
                  });
  return result;
}

// x · cos + (−x₂, x₁) · sin
Value Kernels::rotate(const Value& value, const Memory& cosines, const Memory& sines) {
  const Value straight = scaled(value, cosines);
  Value turned;
  {
    const std::int64_t half = value.elements / 2;
    const Value negated = tape.tensor(half, value.number);
    turned = tape.tensor(value.elements, value.number);
    turned.from =
        tape.record({value.from}, [this, half, elements = value.elements, number = value.number](Gradients) {
          Memory negated_gradient = tape.tensor(half, number).memory;
          const Gradient first = new_gradient(elements, number);
          negated_gradient.reset();
          const Memory second = tape.tensor(elements, number).memory;
          return Gradients{first};
        });
  }
  const Value crossed = scaled(turned, sines);
  turned = {};
  return add(straight, crossed);
}

// The shares of all classes in the number of the logits. What follows is computed in single precision where
// mixed precision is on.
Value Kernels::cross_entropy(const Value& logits, Memory labels) {
  Value shares = tape.tensor(logits.elements, logits.number);
  const auto gradient_like = [this](const Value& value) {
    return [this, elements = value.elements, number = value.number] {
      return Gradients{new_gradient(elements, number)};
    };
  };
  shares.from = tape.record(
      {logits.from}, [make = gradient_like(shares), result = shares.memory](Gradients) { return make(); });
  const Value wide = single_of(shares);
  Value loss = tape.tensor(1, wide.number);
  const Memory total = tape.tensor(1, wide.number).memory;
  loss.from = tape.record({wide.from}, [make = gradient_like(wide), saved = wide.memory,
                                        labels = std::move(labels), total](Gradients) { return make(); });
  return loss;
}

}  // namespace vramlab::layers
