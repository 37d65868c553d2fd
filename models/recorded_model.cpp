#include "models/recorded_model.hpp"

#include <utility>

#include "models/recorded_program.hpp"

namespace vramlab {

RecordedModel::RecordedModel(RecordedSpec spec) : spec_(std::move(spec)) {
  check_recorded_spec(spec_);
  parameters_.parameters = spec_.parameters;
}

StepProgram RecordedModel::build() const {
  const RecordedSlots slots(spec_);
  // What lives on gets the slots 0, 1, … in the order of allocation, everything else slots of the program.
  std::vector<bool> freed(spec_.build.size(), false);
  std::vector<std::size_t> allocations;
  for (std::size_t i = 0; i < spec_.build.size(); ++i) {
    if (spec_.build[i] > 0) {
      allocations.push_back(i);
    } else {
      freed[allocations[static_cast<std::size_t>(-spec_.build[i] - 1)]] = true;
    }
  }
  ProgramWriter writer(slots.all());
  std::vector<Tensor> tensors;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < spec_.build.size(); ++i) {
    const std::int64_t entry = spec_.build[i];
    if (entry < 0) {
      writer.drop(tensors[static_cast<std::size_t>(-entry - 1)]);
    } else if (freed[i]) {
      tensors.push_back(writer.make(static_cast<Bytes>(entry)));
    } else {
      tensors.push_back({next++, static_cast<Bytes>(entry)});
      writer.make_persistent(tensors.back());
    }
  }
  return writer.finish();
}

StepProgram RecordedModel::step(const RecordedConditions& conditions) const {
  return RecordedProgramWriter(spec_, conditions, std::nullopt).write();
}

StepProgram RecordedModel::recorded_step(std::size_t shape, const RecordedConditions& conditions) const {
  return RecordedProgramWriter(spec_, conditions, shape).write();
}

std::vector<std::uint32_t> RecordedModel::step_tensors(const RecordedConditions& conditions) const {
  RecordedProgramWriter writer(spec_, conditions, std::nullopt);
  writer.write();
  return writer.tensors();
}

RecordedConditions RecordedModel::with_items(const Point& point) const {
  RecordedConditions conditions{point, std::vector<std::vector<std::int64_t>>(spec_.fields.size())};
  for (const RecordedItemKind& kind : spec_.item_kinds) {
    for (std::int64_t item = 0; item < point[kind.parameter]; ++item) {
      for (std::size_t field = 0; field < spec_.fields.size(); ++field) {
        const auto& column = kind.columns[field];
        conditions.fields[field].push_back(column[static_cast<std::size_t>(item) % column.size()]);
      }
    }
  }
  return conditions;
}

RecordedConditions RecordedModel::conditions_of(
    const Point& point, const std::map<std::string, std::vector<std::int64_t>>& fields) const {
  RecordedConditions conditions = with_items(point);
  for (std::size_t field = 0; field < spec_.fields.size(); ++field) {
    const auto given = fields.find(spec_.fields[field]);
    if (given != fields.end()) conditions.fields[field] = given->second;
  }
  return conditions;
}

std::int64_t RecordedModel::samples(const Point& point) const {
  const RecordedConditions conditions = with_items(point);
  return RecordedValues(spec_, conditions).monomials()[spec_.samples];
}

std::int64_t RecordedModel::pixels(const Point& point) const {
  const RecordedConditions conditions = with_items(point);
  return RecordedValues(spec_, conditions).monomials()[spec_.main_product];
}

bool RecordedModel::in_recorded_range(const RecordedConditions& conditions) const {
  for (std::size_t p = 0; p < spec_.recorded.size(); ++p) {
    const Parameter& range = spec_.recorded[p];
    if (conditions.point[p] < range.low || conditions.point[p] > range.high) return false;
  }
  const std::int64_t product = RecordedValues(spec_, conditions).monomials()[spec_.main_product];
  bool smaller = false;
  bool larger = false;
  for (const VariableValues& shape : spec_.shapes) {
    const std::int64_t recorded = spec_.monomials[spec_.main_product].value(shape).value_or(0);
    smaller = smaller || recorded <= product;
    larger = larger || recorded >= product;
  }
  return smaller && larger;
}

}  // namespace vramlab
