#include "models/job_estimate.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {
namespace {

struct Row {
  std::string_view size;
  Bytes mib;  // at batch 8 (and 512 tokens), without the training factor
};
struct Type {
  std::string_view name;
  std::vector<Row> rows;
};

// The published queue's table.
const std::vector<Type>& table() {
  static const std::vector<Type> types{
      {"transformer", {{"small", 2000}, {"medium", 4000}, {"large", 8000}, {"xlarge", 16000}}},
      {"cnn", {{"small", 1000}, {"medium", 2000}, {"large", 4000}}},
      {"rnn", {{"small", 1500}, {"medium", 3000}, {"large", 6000}}},
  };
  return types;
}

constexpr std::int64_t kTableBatch = 8;
constexpr std::int64_t kTableSequence = 512;

const Type* find_type(std::string_view name) {
  for (const Type& type : table()) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

}  // namespace

Bytes estimated_bytes(const JobEstimate& estimate, const std::string& where) {
  const Type* type = find_type(estimate.type);
  if (type == nullptr) {
    throw InputError(where, "the table has no type \"" + estimate.type + "\"." +
                                suggest_name(estimate.type, estimate_types()));
  }
  const std::string_view size = estimate.faithful ? std::string_view{"medium"} : estimate.size;
  const auto row = std::find_if(type->rows.begin(), type->rows.end(),
                                [&](const Row& candidate) { return candidate.size == size; });
  if (row == type->rows.end()) {
    throw InputError(where, "the table has no size \"" + estimate.size + "\" of " + estimate.type + "." +
                                suggest_name(estimate.size, estimate_sizes(estimate.type)));
  }
  std::int64_t batch = estimate.batch;
  std::int64_t sequence = type->name == "transformer" ? estimate.sequence : kTableSequence;
  if (estimate.faithful) {  // max(1, ·) on both ratios
    batch = std::max(batch, kTableBatch);
    sequence = std::max(sequence, kTableSequence);
  }
  // Halves, so that the factor 2.5 stays a whole number.
  const Bytes factor = estimate.training ? 5 : 2;
  const Bytes above = row->mib * 1_MiB * factor * static_cast<Bytes>(batch);
  constexpr auto below = static_cast<Bytes>(2 * kTableBatch * kTableSequence);
  const auto tokens = static_cast<Bytes>(sequence);
  return above / below * tokens + (above % below * tokens + below - 1) / below;
}

std::vector<std::string> estimate_types() {
  std::vector<std::string> names;
  for (const Type& type : table()) names.emplace_back(type.name);
  return names;
}

std::vector<std::string> estimate_sizes(std::string_view name) {
  std::vector<std::string> names;
  if (const Type* type = find_type(name)) {
    for (const Row& row : type->rows) names.emplace_back(row.size);
  }
  return names;
}

}  // namespace vramlab
