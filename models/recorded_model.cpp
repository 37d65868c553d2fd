#include "models/recorded_model.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "models/recorded_program.hpp"
#include "models/sample.hpp"

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
  return write_recorded_step(spec_, conditions).program;
}

StepProgram RecordedModel::recorded_step(std::size_t shape, const RecordedConditions& conditions) const {
  return write_recorded_step(spec_, conditions, shape).program;
}

std::vector<std::uint32_t> RecordedModel::step_tensors(const RecordedConditions& conditions) const {
  return write_recorded_step(spec_, conditions).tensors;
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

std::optional<std::pair<double, double>> RecordedModel::host_range(
    const RecordedConditions& conditions) const {
  const StepTimeForm& time = spec_.time;
  const RecordedValues values(spec_, conditions);
  if (time.most_at_floor <= 0 || !time.at_floor(values.monomials())) return std::nullopt;
  const double times = time.times(values.monomials());
  return std::pair{times * time.least_at_floor, times * time.most_at_floor};
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

RecordedBatches::RecordedBatches(std::shared_ptr<const RecordedModel> model,
                                 const std::vector<std::string>& tasks, bool packs)
    : model_(std::move(model)), packs_(packs) {
  if (!model_->spec().fields.empty() && packs) {
    throw InputError("", "the recorded steps of " + model_->spec().name +
                             " have one sample a row; what packed rows would need is not known.");
  }
  if (!model_->spec().fields.empty()) {
    use_items(tasks);
    return;
  }
  const auto rows = model_->parameters().find("batch");
  const auto longest = model_->parameters().find("seq");
  if (!rows || !longest || model_->parameters().size() != 2) {
    throw InputError("", "the model " + model_->spec().name +
                             " cannot be asked for a batch: it needs a parameter for each task, or the two "
                             "parameters batch and seq.");
  }
  rows_ = *rows;
  longest_ = *longest;
}

void RecordedBatches::use_items(const std::vector<std::string>& tasks) {
  const RecordedSpec& spec = model_->spec();
  const auto field = [&](const char* name) {
    const auto found = std::find(spec.fields.begin(), spec.fields.end(), name);
    if (found == spec.fields.end() || spec.fields.size() != 2) {
      throw InputError("", "the items of the model " + spec.name +
                               " are not samples: they need the fields text_lengths and units.");
    }
    return static_cast<std::size_t>(found - spec.fields.begin());
  };
  length_field_ = field("text_lengths");
  image_field_ = field("units");
  std::vector<std::string> names;
  for (const RecordedItemKind& kind : spec.item_kinds) names.push_back(spec.parameters[kind.parameter].name);
  for (const std::string& task : tasks) {
    const auto found = std::find(names.begin(), names.end(), task);
    if (found == names.end()) {
      throw InputError(
          "", "the model " + spec.name + " knows no task \"" + task + "\"." + suggest_name(task, names));
    }
    parameters_.push_back(spec.item_kinds[static_cast<std::size_t>(found - names.begin())].parameter);
  }
  for (const RecordedVariable& variable : spec.variables) {
    if (variable.kind == RecordedVariable::Kind::most) tokens_per_image_ = variable.weights[image_field_];
  }
}

std::int64_t RecordedBatches::rows_of(std::span<const Sample> batch) const {
  if (!packs_) return static_cast<std::int64_t>(batch.size());
  std::vector<std::int64_t> lengths;
  for (const Sample& sample : batch) lengths.push_back(sample.tokens);
  return static_cast<std::int64_t>(pack(lengths, longest_of(batch)).size());
}

std::int64_t RecordedBatches::positions(std::span<const Sample> batch) const {
  return rows_of(batch) * longest_of(batch);
}

RecordedConditions RecordedBatches::conditions(std::span<const Sample> batch) const {
  RecordedConditions conditions{Point(model_->parameters().size(), 0), {}};
  if (parameters_.empty()) {
    conditions.point[longest_] = longest_of(batch);
    conditions.point[rows_] = rows_of(batch);
    return conditions;
  }
  conditions.fields.resize(2);
  for (const Sample& sample : batch) {
    ++conditions.point[parameters_[sample.task]];
    conditions.fields[length_field_].push_back(sample.length);
    conditions.fields[image_field_].push_back(sample.images);
  }
  return conditions;
}

StepProgram RecordedBatches::step(std::span<const Sample> batch) const {
  return model_->step(conditions(batch));
}

}  // namespace vramlab
