#include "cli/whatif_model.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "fit/fit_model.hpp"
#include "fit/step_record.hpp"
#include "lab/model/prediction.hpp"
#include "models/recorded_model.hpp"
#include "recordings/open.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {
namespace {

std::string ranges_text(const RecordedSpec& spec) {
  std::string text;
  for (const Parameter& range : spec.recorded) {
    text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", range.name, range.low, range.high);
  }
  return text;
}

void need_marks(const std::vector<std::string>& snapshots, const std::vector<std::string>& marks,
                const std::vector<std::string>& settings) {
  if (marks.empty()) {
    throw InputError("--set",
                     "asks for other parameters, which needs the marks of the recorded steps. Add --marks "
                     "M.json, as python/vramlab_recorder.py writes it.");
  }
  if (settings.empty()) {
    throw InputError("--marks",
                     "is for other parameters than the recorded ones, and none is given. Add --set batch=16, "
                     "or leave --marks out.");
  }
  if (marks.size() != snapshots.size()) {
    throw InputError("--marks", fmt::format("is given {} times for {} snapshots. Give it once for each.",
                                            marks.size(), snapshots.size()));
  }
}

}  // namespace

PredictedPrograms predict_programs(const std::vector<std::string>& snapshots,
                                   const std::vector<std::string>& marks,
                                   const std::vector<std::string>& settings) {
  need_marks(snapshots, marks, settings);
  PredictedPrograms predicted;
  predicted.parameters = Json::object();
  std::string recorded;
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const RecordedRun run = cut_at_marks(read_torch_snapshot(snapshots[i], {.stacks = false}),
                                         read_marks_file(marks[i]), snapshots[i]);
    FittedModel fitted = fit_model({run}, snapshots[i]);
    const RecordedModel model(std::move(fitted.spec));
    PredictionQuestion question(model);
    for (const std::string& setting : settings) question.set(setting);
    for (std::size_t p = 0; p < question.point.size(); ++p) {
      predicted.parameters[model.parameters().parameters[p].name] = question.point[p];
    }
    if (!model.in_recorded_range(model.with_items(question.point))) predicted.outside_range = true;
    ClientProgram program =
        predicted_program(model, question.point, read_client_programs(snapshots[i]).front());
    for (const std::string& warning : fitted.warnings) program.notes.push_back("fit: " + warning);
    predicted.programs.push_back(std::move(program));
    if (i == 0) recorded = ranges_text(model.spec());
  }
  std::string point;
  for (const auto& [name, value] : predicted.parameters.items())
    point += fmt::format(" {}={}", name, value.dump());
  predicted.sentence = fmt::format("Three steps at{}, predicted from steps recorded at {}.", point, recorded);
  if (predicted.outside_range) predicted.sentence += " These parameters lie outside what was recorded.";
  return predicted;
}

}  // namespace vramlab
