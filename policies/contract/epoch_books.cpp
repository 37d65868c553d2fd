#include "policies/contract/epoch_books.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "policies/contract/saved_state.hpp"

namespace vramlab {

Candidates::Candidates(std::size_t size, std::uint64_t seed, std::int64_t epoch, bool shuffle)
    : seed_(seed), epoch_(epoch), order_(size), states_(size, State::unseen), left_(size) {
  waiting_.reserve(size);  // now, so that it does not grow while a plugin looks, and is held against it
  std::iota(order_.begin(), order_.end(), SampleId{0});
  if (shuffle) {
    Random{seed ^ (static_cast<std::uint64_t>(epoch) * 0x9E3779B97F4A7C15u)}.shuffle(std::span{order_});
  }
}

Candidates::Candidates(std::size_t size, const EpochPosition& from, bool shuffle)
    : Candidates(size, from.seed, from.epoch, shuffle) {
  if (from.position > size || from.waiting.size() > from.position) {
    throw InputError("", "the state to go on from is not of this data set.");
  }
  next_ = from.position;
  for (std::size_t i = 0; i < next_; ++i) states_[order_[i]] = State::taken;
  for (const SampleId id : from.waiting) {
    if (id >= size || states_[id] != State::taken) {
      throw InputError(
          "", "the state to go on from names a sample that cannot wait: " + std::to_string(id) + ".");
    }
    states_[id] = State::waiting;
  }
  waiting_.assign(from.waiting.begin(), from.waiting.end());
  left_ = size - next_ + waiting_.size();
}

std::span<const SampleId> Candidates::look(std::size_t count) {
  drop_taken();
  while (waiting_.size() < count && next_ < order_.size()) {
    states_[order_[next_]] = State::waiting;
    waiting_.push_back(order_[next_++]);
  }
  return {waiting_.data(), std::min(count, waiting_.size())};
}

void Candidates::take(std::span<const SampleId> batch) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i] < states_.size() && states_[batch[i]] == State::waiting) {
      states_[batch[i]] = State::taken;
      continue;
    }
    for (std::size_t done = 0; done < i; ++done) states_[batch[done]] = State::waiting;
    throw InternalError("a composer named a sample that does not wait");
  }
  left_ -= batch.size();
  taken_ += batch.size();
}

// First those that are still listed as waiting but were taken, or they would stand there twice.
void Candidates::put_back(std::span<const SampleId> batch) {
  drop_taken();
  waiting_.insert(waiting_.begin(), batch.begin(), batch.end());
  for (const SampleId id : batch) states_[id] = State::waiting;
  left_ += batch.size();
}

EpochPosition Candidates::position() const {
  EpochPosition position{.seed = seed_, .epoch = epoch_, .position = next_};
  std::copy_if(waiting_.begin(), waiting_.end(), std::back_inserter(position.waiting),
               [&](SampleId id) { return states_[id] == State::waiting; });
  return position;
}

void Candidates::drop_taken() {
  if (std::exchange(taken_, 0) == 0) return;
  std::erase_if(waiting_, [&](SampleId id) { return states_[id] == State::taken; });
}

Accumulation::Accumulation(AccumulationRule rule, std::int64_t target)
    : rule_(rule), target_(target), micro_steps_(std::max<std::int64_t>(1, target / rule.batch_size)) {}

std::int64_t Accumulation::room() const {
  return rule_.kind == AccumulationRule::Kind::exact && target_ > 0
             ? target_ - samples_
             : std::numeric_limits<std::int64_t>::max();
}

// Above 90 % of the memory one step fewer, below 50 % one more, at most 8.
bool Accumulation::add(std::int64_t samples, double usage) {
  samples_ += samples;
  ++done_;
  if (rule_.kind == AccumulationRule::Kind::exact || target_ == 0) {
    if (samples_ < target_) return false;
  } else {
    if (done_ < micro_steps_) return false;
    if (usage > 0.9) micro_steps_ = std::max<std::int64_t>(1, micro_steps_ - 1);
    if (usage < 0.5) micro_steps_ = std::min(kMostMicroSteps, micro_steps_ + 1);
  }
  close();
  return true;
}

void Accumulation::close() {
  samples_ = 0;
  done_ = 0;
}

void Accumulation::restore(std::int64_t samples, std::int64_t done, std::int64_t micro_steps) {
  samples_ = samples;
  done_ = done;
  micro_steps_ = micro_steps;
}

double gradient_scale(double base_samples, double samples) { return base_samples / samples; }
double learning_rate_scale(double base_samples, double samples) { return std::sqrt(samples / base_samples); }

std::vector<double> balanced_weights(std::span<const double> norms, double alpha) {
  const double mean = std::accumulate(norms.begin(), norms.end(), 0.0) /
                      static_cast<double>(std::max<std::size_t>(norms.size(), 1));
  std::vector<double> weights;
  for (const double norm : norms) weights.push_back(norm > 0 ? std::pow(mean / norm, alpha) : 1);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight *= static_cast<double>(norms.size()) / sum;
  return weights;
}

void GradientShares::add(const BatchShape& micro_batch) {
  for (std::size_t task = 0; task < weights_.size(); ++task) {
    const auto samples = static_cast<double>(micro_batch.task_samples[task]);
    samples_[task] += samples;
    means_[task] += samples / static_cast<double>(micro_batch.samples);
  }
  micro_batches_ += 1;
}

void GradientShares::step(bool by_count, double scale) {
  const double samples = std::accumulate(samples_.begin(), samples_.end(), 0.0);
  for (std::size_t task = 0; task < weights_.size() && samples > 0; ++task) {
    const double share = by_count ? samples_[task] / samples : means_[task] / micro_batches_;
    sums_[task] += share * weights_[task] * scale;
  }
  samples_ = {};
  means_ = {};
  micro_batches_ = 0;
}

std::vector<double> GradientShares::shares() const {
  const double sum = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  std::vector<double> shares;
  for (std::size_t task = 0; task < weights_.size(); ++task)
    shares.push_back(sum > 0 ? sums_[task] / sum : 0);
  return shares;
}

std::vector<double> GradientShares::save() const {
  std::vector<double> state{micro_batches_};
  for (const auto* values : {&sums_, &samples_, &means_})
    state.insert(state.end(), values->begin(), values->end());
  return state;
}

void GradientShares::restore(std::span<const double> state) {
  require_state(state, 1 + 3 * kMostTasks);
  auto from = state.begin();
  micro_batches_ = *from++;
  for (auto* values : {&sums_, &samples_, &means_}) {
    for (double& value : *values) value = *from++;
  }
}

}  // namespace vramlab
