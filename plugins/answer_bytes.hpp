// Answers of policies as bytes, between two processes of one program.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/units.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// `Either` is `Type`, or const of it: one list of fields serves writer and reader.
template <class Either, class Type>
concept IsA = std::same_as<std::remove_const_t<Either>, Type>;

/// What a call gives that gives nothing.
struct Nothing {};

// The fields of each type, in their order.
template <class Bytes_, IsA<Nothing> T>
void each_field(Bytes_& /*bytes*/, T& /*nothing*/) {}
template <class Bytes_, IsA<Problem> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.where, one.what);
}
template <class Bytes_, IsA<Statistic> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.name, one.value);
}
template <class Bytes_, IsA<TunerAnswer> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.delta, one.reset_peak, one.empty_cache, one.retry, one.end_run, one.reason, one.log);
}
template <class Bytes_, IsA<PredictedMemory> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.likely, one.at_most);
}
template <class Bytes_, IsA<ComposerAnswer> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.action, one.batch, one.predicted, one.oversize, one.checkpointing, one.reason);
}
template <class Bytes_, IsA<AccumulationRule> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.kind, one.batch_size);
}
template <class Bytes_, IsA<SearcherAnswer> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.action, one.batch, one.extrapolated, one.largest_good, one.by_option, one.reason);
}
template <class Bytes_, IsA<ProbeDepth> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.steps, one.all_phases, one.varied_steps, one.varied_starts, one.share);
}
template <class Bytes_, IsA<BatchSplit> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.batch, one.accumulation, one.variant);
}
template <class Bytes_, IsA<DemandVariant> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.name, one.fixed, one.per_sample, one.least_batch);
}
template <class Bytes_, IsA<JobDemand> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.fixed, one.per_sample, one.least_batch, one.share_milli, one.batch, one.effective, one.cards,
        one.priority, one.account, one.pools, one.overdue, one.variants);
}
template <class Bytes_, IsA<AdmitterAnswer> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.action, one.job, one.cards, one.need, one.split, one.demand, one.reason);
}
template <class Bytes_, IsA<QueueRules> T>
void each_field(Bytes_& bytes, T& one) {
  bytes(one.wait_timeout, one.poll, one.job_timeout, one.lease, one.per_phase, one.placement,
        one.enforces_promise);
}

/// Puts values behind each other.
class AnswerWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      const std::size_t at = bytes_.size();
      bytes_.resize(at + sizeof value);
      std::memcpy(bytes_.data() + at, &value, sizeof value);
    } else {
      each_field(*this, value);
    }
  }
  void put(const SimTime& value) { put(value.count()); }
  void put(const std::string& text) {
    put(text.size());
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(values.size());
    for (const T& value : values) put(value);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }

  std::string bytes_;
};

/// Takes them out again. Throws std::out_of_range where there are too few bytes.
class AnswerReader {
 public:
  explicit AnswerReader(std::string_view bytes) : bytes_(bytes) {}
  template <class... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) throw std::out_of_range("too few bytes");
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = take(1).front() != 0;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      std::memcpy(&value, take(sizeof value).data(), sizeof value);
    } else {
      each_field(*this, value);
    }
  }
  void get(SimTime& value) {
    SimTime::rep count = 0;
    get(count);
    value = SimTime{count};
  }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    text = take(size);
  }
  template <class T>
  void get(std::vector<T>& values) {
    std::size_t size = 0;
    get(size);
    if (size > bytes_.size()) throw std::out_of_range("too few bytes");
    values.clear();
    for (std::size_t i = 0; i < size; ++i) get(values.emplace_back());
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool is_there = false;
    get(is_there);
    value.reset();
    if (is_there) get(value.emplace());
  }

  std::string_view bytes_;
};

}  // namespace vramlab
