#include "models/recorded_batches.hpp"

#include <algorithm>
#include <utility>

#include "models/packing.hpp"
#include "sim/core/error.hpp"

namespace vramlab {

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

RecordedConditions RecordedBatches::conditions(std::span<const Sample> batch) const {
  RecordedConditions conditions{Point(model_->parameters().size(), 0), {}};
  if (parameters_.empty()) {
    std::vector<std::int64_t> lengths;
    for (const Sample& sample : batch) lengths.push_back(sample.tokens);
    conditions.point[longest_] = *std::max_element(lengths.begin(), lengths.end());
    const std::size_t rows = packs_ ? pack(lengths, conditions.point[longest_]).size() : lengths.size();
    conditions.point[rows_] = static_cast<std::int64_t>(rows);
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
