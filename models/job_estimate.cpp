#include "models/job_estimate.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace vramlab {
namespace {

struct Row {
  std::string_view name;
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

template <class Entry>
const Entry& find(const std::vector<Entry>& entries, std::string_view name, const std::string& where,
                  const std::string& missing) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  throw InputError(where, missing + suggest_name(name, names));
}

}  // namespace

Bytes estimated_bytes(const JobEstimate& estimate, const std::string& where) {
  const Type& type = find(table(), estimate.type, where, "the table has no type \"" + estimate.type + "\".");
  const std::string_view size = estimate.faithful ? std::string_view{"medium"} : estimate.size;
  const Row& row = find(type.rows, size, where,
                        "the table has no size \"" + estimate.size + "\" of " + estimate.type + ".");
  std::int64_t batch = estimate.batch;
  std::int64_t sequence = type.name == "transformer" ? estimate.sequence : kTableSequence;
  if (estimate.faithful) {  // max(1, ·) on both ratios
    batch = std::max(batch, kTableBatch);
    sequence = std::max(sequence, kTableSequence);
  }
  // Halves, so that the factor 2.5 stays a whole number.
  const Bytes factor = estimate.training ? 5 : 2;
  const Bytes above = row.mib * 1_MiB * factor * static_cast<Bytes>(batch);
  constexpr auto below = static_cast<Bytes>(2 * kTableBatch * kTableSequence);
  const auto tokens = static_cast<Bytes>(sequence);
  return above / below * tokens + (above % below * tokens + below - 1) / below;
}

std::vector<std::string> estimate_types() {
  std::vector<std::string> names;
  for (const Type& type : table()) names.emplace_back(type.name);
  return names;
}

}  // namespace vramlab
