#include "lab/model/prediction.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/accumulation.hpp"
#include "models/layers/layers_model.hpp"
#include "models/measured.hpp"
#include "models/recorded_model.hpp"
#include "models/step_program.hpp"
#include "sim/runs/step_executor.hpp"

namespace vramlab {
namespace {

constexpr int kSteps = 3;  // the first makes what stays for good, the second settles

// A parameter that the recording held still; null if it did not.
const RecordedVariable* find_fixed(const WorkloadModel& model, const std::string& name) {
  const auto* recorded = dynamic_cast<const RecordedModel*>(&model);
  if (recorded == nullptr) return nullptr;
  for (const RecordedVariable& variable : recorded->spec().variables) {
    if (variable.kind == RecordedVariable::Kind::fixed && variable.name == name) return &variable;
  }
  return nullptr;
}

std::size_t find_parameter(const WorkloadModel& model, const std::string& name, const std::string& where) {
  if (const auto found = model.parameters().find(name)) return *found;
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters().parameters) names.push_back(parameter.name);
  throw InputError(where, '"' + name + "\" is not a parameter of the model." + suggest_name(name, names));
}

const RecordedFailure* find_failure(const RecordedSpec& spec, const PredictionQuestion& question) {
  const auto found = std::find_if(spec.failures.begin(), spec.failures.end(), [&](const auto& failure) {
    return question.usable() < failure.needed &&
           std::equal(failure.point.begin(), failure.point.end(), question.point.begin(),
                      [](std::int64_t failed, std::int64_t asked) { return failed <= asked; });
  });
  return found != spec.failures.end() ? &*found : nullptr;
}

}  // namespace

void require_names_once(const std::vector<std::string>& settings, const std::string& option) {
  std::set<std::string> names;
  for (const std::string& setting : settings) {
    const std::string name = setting.substr(0, setting.find('='));
    if (name.empty() || name.find_first_of(" \t\n\r") != std::string::npos) {
      throw InputError(option, '"' + setting + "\" has no name without blanks. Write batch=8.");
    }
    if (!names.insert(name).second) throw InputError(option, '"' + name + "\" is given twice. Give it once.");
  }
}

PredictionQuestion::PredictionQuestion(const WorkloadModel& asked) : model(&asked) {
  if (const auto* network = dynamic_cast<const layers::LayersModel*>(model)) {
    point = network->spec().usual;
    return;
  }
  const auto* recorded = dynamic_cast<const RecordedModel*>(model);
  const auto& ranges = recorded != nullptr ? recorded->spec().recorded : model->parameters().parameters;
  for (const Parameter& range : ranges) point.push_back(range.low + (range.high - range.low) / 2);
}

void PredictionQuestion::set(const std::string& setting, const std::string& option) {
  const std::size_t equals = setting.find('=');
  const std::string name = setting.substr(0, equals);
  std::int64_t value = 0;
  const char* end = setting.data() + setting.size();
  const char* begin = equals == std::string::npos ? end : setting.data() + equals + 1;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || rest != end) {
    throw InputError(option,
                     '"' + setting + "\" is not a setting. Write a name and a whole number: batch=8.");
  }
  if (const RecordedVariable* fixed = find_fixed(*model, name)) {
    if (fixed->value == value) return;
    throw InputError(option + ' ' + name,
                     fmt::format("{0} was {1} in every recorded step, so nothing is known of {2}. "
                                 "Record steps at two or more values of {0} and fit again.",
                                 name, fixed->value, value));
  }
  const std::size_t place = find_parameter(*model, name, option);
  const Parameter& range = model->parameters().parameters[place];
  if (value < range.low || value > range.high) {
    throw InputError(option + ' ' + name, fmt::format("{} is outside what the model is meant for, {} to {}.",
                                                      value, range.low, range.high));
  }
  point[place] = value;
}

// The context of another card has another size.
bool PredictionQuestion::outside_recorded() const {
  constexpr Bytes kSameCard = 100;  // a hundredth more or less
  const auto* recorded = dynamic_cast<const RecordedModel*>(model);
  if (recorded == nullptr || recorded->spec().outside == 0) return false;
  const Bytes total = recorded->spec().card_total;
  return std::max(total, gpu->total) - std::min(total, gpu->total) < gpu->total / kSameCard &&
         recorded->spec().outside < gpu->total;
}

bool PredictionQuestion::outside_assumed() const {
  const auto* recorded = dynamic_cast<const RecordedModel*>(model);
  return of_ranks && recorded != nullptr && !outside_recorded() && recorded->spec().outside > gpu->context &&
         recorded->spec().outside < gpu->total;
}

Bytes PredictionQuestion::outside() const {
  return outside_recorded() || outside_assumed() ? dynamic_cast<const RecordedModel&>(*model).spec().outside
                                                 : gpu->context;
}

Bytes PredictionQuestion::usable() const {
  const Bytes card = gpu->total - outside();
  return allocator.limit ? std::min(*allocator.limit, card) : card;
}

Prediction predict_step(const PredictionQuestion& question) {
  SimulatedCard card{question.gpu->total, question.outside()};
  SimulatedProcess process{card, question.allocator};
  Prediction prediction;
  const auto perform = [&](const StepProgram& program) {
    const ExecutedStep step = process.executor().run(program);
    if (step.oom) prediction.failed = step.oom->requested;
    return step.result == StepResult::ok;
  };
  const StepProgram step = question.model->step(question.point);
  prediction.fits = perform(question.model->build());
  for (int i = 0; i < kSteps && prediction.fits; ++i) prediction.fits = perform(step);
  const MemoryStats& stats = process.memory().stats();
  prediction.peak_allocated = static_cast<Bytes>(stats.allocated_bytes.all().peak);
  prediction.peak_reserved = static_cast<Bytes>(stats.reserved_bytes.all().peak);
  prediction.allocator_ooms = static_cast<std::uint64_t>(stats.num_ooms);
  prediction.step_seconds = to_seconds(step.duration);
  if (const auto* recorded = dynamic_cast<const RecordedModel*>(question.model)) {
    prediction.outside_range = !recorded->in_recorded_range(recorded->with_items(question.point));
    const auto range = recorded->host_range(recorded->with_items(question.point));
    prediction.bound_by_host = range.has_value();
    if (range) std::tie(prediction.least_seconds, prediction.most_seconds) = *range;
    prediction.disproved_by = find_failure(recorded->spec(), question);
    prediction.fits = prediction.fits && prediction.disproved_by == nullptr;
  } else if (const auto* measured = dynamic_cast<const MeasuredModel*>(question.model)) {
    prediction.outside_range = measured->extrapolates(question.point);
  }
  return prediction;
}

LargestValue find_largest(PredictionQuestion question, const std::string& parameter) {
  const std::size_t place = find_parameter(*question.model, parameter, "--largest");
  const Parameter& range = question.model->parameters().parameters[place];
  const auto fits = [&](std::int64_t value) {
    question.point[place] = value;
    return predict_step(question).fits;
  };
  if (!fits(range.low)) return {0, range.low, false};
  if (fits(range.high)) return {range.high, range.low, true};
  std::int64_t good = range.low;
  std::int64_t bad = range.high;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return {good, range.low, false};
}

namespace {

class ProgramAuthor {
 public:
  explicit ProgramAuthor(ClientProgram& program) : program_(program) {}

  void perform(const StepProgram& step, const std::string& mark) {
    if (slots_.size() < step.slots) slots_.resize(step.slots);
    for (const MemoryOp& op : step.ops) {
      if (op.kind == MemoryOpKind::free) {
        free(op.slot);
      } else if (op.kind != MemoryOpKind::ensure || !slots_[op.slot]) {
        allocate(op);
      }
    }
    program_.texts.push_back(mark);
    add({.detail = static_cast<std::uint32_t>(program_.texts.size() - 1), .kind = ClientAction::Kind::mark});
  }

 private:
  void add(ClientAction action) {
    action.source = static_cast<std::uint32_t>(program_.actions.size());
    program_.actions.push_back(action);
  }

  void allocate(const MemoryOp& op) {
    if (op.size == 0) return;
    slots_[op.slot] = program_.blocks++;
    add({.bytes = op.size, .block = *slots_[op.slot], .kind = ClientAction::Kind::alloc});
  }

  void free(std::uint32_t slot) {
    if (!slots_[slot]) return;
    add({.block = *slots_[slot], .kind = ClientAction::Kind::free});
    slots_[slot].reset();
  }

  ClientProgram& program_;
  std::vector<std::optional<ProgramBlock>> slots_;
};

}  // namespace

BatchPart read_batch_part(const WorkloadModel& model, const Point& point, const std::string& text,
                          const std::string& option) {
  PredictionQuestion asked(model);
  const std::string name = text.substr(0, text.find('='));
  if (const RecordedVariable* fixed = find_fixed(model, name)) {
    throw InputError(option, fmt::format("{0} was {1} in every recorded step, so nothing is known of smaller "
                                         "ones. Record steps at two or more values of {0} and fit again.",
                                         name, fixed->value));
  }
  asked.set(text, option);
  const std::size_t place = find_parameter(model, name, option);
  if (asked.point[place] >= point[place]) {
    throw InputError(option, fmt::format("parts of {} are not smaller than the step's {}, {}.",
                                         asked.point[place], name, point[place]));
  }
  return {place, std::max<std::int64_t>(1, asked.point[place])};
}

ClientProgram predicted_program(const WorkloadModel& model, const Point& point,
                                const ClientProgram& recording, const std::optional<BatchPart>& part) {
  ClientProgram program;
  program.file = recording.file;
  program.device = recording.device;
  program.settings = recording.settings;
  program.limit = recording.limit;
  program.room = recording.room;
  program.limit_inferred = recording.limit_inferred;
  program.device_total = recording.device_total;
  program.outside = recording.outside;
  program.warnings = recording.warnings;
  program.made = recording.made;
  if (recording.made) program.notes = sentences_of(*recording.made);
  program.torch_from = recording.torch_from;
  ProgramAuthor author(program);
  author.perform(model.build(), "built");
  const StepProgram step =
      part ? step_in_parts(model, point, part->parameter, part->size) : model.step(point);
  for (int number = 1; number <= kSteps; ++number) author.perform(step, fmt::format("step {}", number));
  return program;
}

}  // namespace vramlab
