#include "cli/whatif/programs.hpp"

#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/verb.hpp"
#include "core/error.hpp"
#include "fit/fit_model.hpp"
#include "fit/step_record.hpp"
#include "lab/advise/units.hpp"
#include "lab/model/prediction.hpp"
#include "models/recorded_model.hpp"
#include "recordings/open.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {
namespace {

using Texts = std::vector<std::string>;

void need_marks(const Texts& snapshots, const Texts& marks, const Texts& settings) {
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

// Fits each of `snapshots` with its file of `marks` and takes its model at `settings` (batch=16); parameters
// that none names are in the middle of their recorded range. Throws InputError where marks are missing, a
// setting names no parameter, or one that never moved. `part`: in parts of so much of a parameter (batch=2).
AskedPrograms predict_programs(const Texts& snapshots, const Texts& marks, const Texts& settings,
                               const std::string& part, const ReadOptions& options) {
  need_marks(snapshots, marks, settings);
  require_names_once(settings, "--set");
  AskedPrograms predicted;
  std::vector<ClientProgram> programs;
  predicted.parameters = Json::object();
  std::string recorded;
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const RecordedRun run = cut_at_marks(read_torch_snapshot(snapshots[i], {.stacks = false}),
                                         read_marks_file(marks[i]), snapshots[i]);
    FittedModel fitted = fit_model({run}, snapshots[i]);
    const RecordedModel model(std::move(fitted.spec));
    PredictionQuestion question(model);
    for (const std::string& setting : settings) question.set(setting);
    predicted.parameters.update(point_json(question));
    if (!model.in_recorded_range(model.with_items(question.point))) predicted.outside_range = true;
    std::optional<BatchPart> parts;
    if (!part.empty()) parts = read_batch_part(model, question.point, part, "--part");
    ClientProgram program =
        predicted_program(model, question.point, read_client_programs(snapshots[i], options).front(), parts);
    for (const std::string& warning : fitted.warnings) program.notes.push_back("fit: " + warning);
    programs.push_back(std::move(program));
    if (i == 0) recorded = ranges_text(model.spec().recorded);
  }
  predicted.programs = std::make_shared<std::vector<ClientProgram>>(std::move(programs));
  std::string point;
  for (const auto& [name, value] : predicted.parameters.items())
    point += fmt::format(" {}={}", name, value.dump());
  const std::string in_parts = part.empty() ? "" : " in parts of " + part;
  predicted.sentence =
      fmt::format("Three steps at{}{}, predicted from steps recorded at {}.", point, in_parts, recorded);
  if (predicted.outside_range) predicted.sentence += " These parameters lie outside what was recorded.";
  return predicted;
}

AskedPrograms recorded_or_predicted(const Arguments& arguments, const Output& output) {
  const Texts marks = texts_of(arguments, "marks");
  const Texts settings = texts_of(arguments, "set");
  ReadOptions options{.torch = chosen_torch_version(arguments), .device = {}};
  const std::string part = text_of(arguments, "part");
  if (!marks.empty() || !settings.empty())
    return predict_programs(operands(arguments), marks, settings, part, options);
  if (!part.empty()) {
    throw InputError("--part",
                     "needs a step whose size is known for smaller batches. Give --marks and --set as well.");
  }
  KeptPrograms nowhere;
  KeptPrograms& kept =
      output.call() != nullptr && output.call()->kept != nullptr ? *output.call()->kept : nowhere;
  const std::string question = Json{operands(arguments), text_of(arguments, "torch-version")}.dump();
  if (kept.question != question) {
    kept = {};  // there may not be room for both
    if (output.call() != nullptr) options.watch = output.call()->watch;
    const auto read = [&](const std::string& file) { return read_client_programs(file, options); };
    kept = {question, std::make_shared<std::vector<ClientProgram>>(read_each(operands(arguments), read))};
  }
  return {.programs = kept.programs, .sentence = "", .parameters = {}};
}

// With parts of their models computed again, where --recompute names some.
void recompute_parts(const Arguments& arguments, AskedPrograms& asked) {
  const Texts places = texts_of(arguments, "recompute");
  std::optional<std::uint32_t> every;
  if (arguments.contains("every")) every = arguments["every"].as<std::uint32_t>();
  if (places.empty()) {
    if (every) throw InputError("--every", "says which repeats of --recompute, and that is not given.");
    return;
  }
  if (every && *every == 0) throw InputError("--every", "must be 1 or more: 2 is every second repeat.");
  auto programs = std::make_shared<std::vector<ClientProgram>>(*asked.programs);
  for (ClientProgram& program : *programs) {
    const auto peak = [&](const ClientProgram& one) {
      return format_bytes(replay_program(one, {.settings = one.settings}).highest_allocated);
    };
    RecomputedProgram recomputed = recomputed_program(program, places, every);
    asked.recomputed.push_back(
        {{"parts", recomputed.parts}, {"calls", recomputed.calls}, {"written_bytes", recomputed.written}});
    asked.recomputed_sentences.push_back(
        fmt::format("As if {} {} computed again in backward ({} calls): {} allocated at the peak, {} as "
                    "recorded, without any limit.",
                    recomputed.parts, recomputed.calls == 1 ? "was" : "were", recomputed.calls,
                    peak(recomputed.program), peak(program)));
    program = std::move(recomputed.program);
  }
  asked.programs = std::move(programs);
}

}  // namespace

AskedPrograms programs_asked_for(const Arguments& arguments, const Output& output) {
  AskedPrograms asked = recorded_or_predicted(arguments, output);
  recompute_parts(arguments, asked);
  return asked;
}

}  // namespace vramlab
