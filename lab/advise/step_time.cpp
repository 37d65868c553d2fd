// How long the step with the most memory took.
#include <algorithm>

#include "lab/advise/advise.hpp"
#include "recordings/open.hpp"
#include "recordings/snapshot/marks.hpp"

namespace vramlab {
namespace {

constexpr double kMicroseconds = 1e-6;
constexpr double kMilliseconds = 1e-3;

/// Actions [from, to), and what the mark at their end is called.
struct StepStretch {
  std::size_t from = 0;
  std::size_t to = 0;
  std::string mark;
};

// Between two marks; without marks a pass.
std::optional<StepStretch> step_around(const ClientProgram& program, std::size_t peak) {
  StepStretch step{program.initial_actions, 0, mark_after(program, peak)};
  for (std::size_t i = program.initial_actions; i < program.actions.size(); ++i) {
    if (program.actions[i].kind != ClientAction::Kind::mark) continue;
    if (i < peak) step.from = i + 1;
    if (i >= peak && step.to == 0) step.to = i;
  }
  if (step.to > 0) return step;
  const ModelCalls calls = calls_of(program, lifetimes_of(program), uses_of(program));
  for (const Pass& pass : calls.passes) {
    if (pass.begin <= peak && peak < pass.end) return StepStretch{pass.begin, pass.end, ""};
  }
  return std::nullopt;
}

// Of the step that a mark names, whose parameters the marks file has.
std::optional<double> measured_seconds(const std::string& mark, const std::filesystem::path& file,
                                       const MeasuredGrid& times) {
  const auto marks_file = find_beside(file, ".marks.json");
  if (!marks_file) return std::nullopt;
  for (const StepMark& step : read_marks_file(*marks_file)) {
    if (!step.is_step || step.label.empty() || !mark.starts_with(step.label)) continue;
    for (const GridRow& row : times.rows) {
      const bool same = std::ranges::all_of(step.parameters.scalars, [&](const auto& parameter) {
        const auto value = row.parameters.find(parameter.first);
        return value != row.parameters.end() && *value == parameter.second;
      });
      if (!same || row.step_ms.empty()) continue;
      std::vector<double> sorted = row.step_ms;
      std::ranges::sort(sorted);
      return sorted[sorted.size() / 2] * kMilliseconds;
    }
  }
  return std::nullopt;
}

// By the times of the history's entries, where they have any.
std::optional<double> recorded_seconds(const ClientProgram& program, const StepStretch& step,
                                       const std::filesystem::path& file) {
  InputFile input{file};
  if (kind_of(input) != FileKind::snapshot) return std::nullopt;
  const TorchSnapshot snapshot = read_torch_snapshot(file, {.stacks = false});
  const auto device = static_cast<std::size_t>(program.device);
  if (device >= snapshot.traces.size()) return std::nullopt;
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t i = step.from; i < step.to; ++i) {
    const std::uint32_t entry = program.actions[i].source;
    if (entry >= snapshot.traces[device].size()) continue;
    const std::int64_t time = snapshot.traces[device][entry].time_us;
    if (first == 0) first = time;
    last = std::max(last, time);
  }
  if (first == 0 || last <= first) return std::nullopt;
  return static_cast<double>(last - first) * kMicroseconds;
}

}  // namespace

std::optional<SourcedFigure> step_time(const ClientProgram& program, const std::filesystem::path& file,
                                       const MeasuredGrid* times) {
  const std::size_t peak = replay_program(program, {.settings = program.settings}).highest_allocated_at;
  const std::optional<StepStretch> step = step_around(program, peak);
  if (!step) return std::nullopt;
  if (times != nullptr) {
    if (const auto seconds = measured_seconds(step->mark, file, *times))
      return SourcedFigure{*seconds, "measured"};
  }
  if (const auto seconds = recorded_seconds(program, *step, file))
    return SourcedFigure{*seconds, "while it was recorded, which slows it"};
  return std::nullopt;
}

}  // namespace vramlab
