#include "lab/kinds/training/run.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/page/sections.hpp"

namespace vramlab {
namespace {

// The search has the card's processes to itself, and the run begins in fresh ones when it has ended: at what
// it found, or at its smallest batch.
BatchSearchRun search_start(const TrainingScenario& scenario, const StartSearch& search,
                            TrainingSetup& setup) {
  const std::size_t batch = setup.bounds.find("batch").value();
  const BatchSearchSetup probes{.model = setup.model,
                                .parameter = batch,
                                .low = search.low,
                                .high = search.high,
                                .phases = {{.name = "training", .point = setup.start}},
                                .cards = cards_of(setup),
                                .others = setup.others,
                                .seed = scenario.seed,
                                .make_performer = setup.make_performer};
  const auto searcher = scenario.known->searchers.make(search.choice);
  BatchSearchRun run = run_batch_search(probes, *searcher);
  const bool found = run.answer.action == SearcherAnswer::Action::found;
  setup.start[batch] = found ? run.answer.batch : search.low;
  setup.begins = run.duration;
  return run;
}

TrainingRun run_tuner(const TrainingScenario& scenario, const PolicyEntry& entry,
                      const TrainingSetup& setup) {
  try {
    return run_training(
        setup, TunerMaker{[&] { return scenario.known->tuners.make(entry.choice, scenario.setup.bounds); }},
        entry.cards);
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": /workload", error.problems().front().what);
  }
}

// The same run without anything that disturbs it, if anything does.
std::optional<TrainingScenario> undisturbed(const TrainingScenario& scenario) {
  TrainingScenario calm = scenario;
  calm.setup.faults = {.seed = scenario.setup.faults.seed};
  calm.setup.others.clear();
  calm.setup.phases.clear();
  calm.setup.moved_phases.clear();
  const bool differs = calm.setup.faults != scenario.setup.faults || !scenario.setup.others.empty() ||
                       !scenario.setup.phases.empty();
  return differs ? std::optional{std::move(calm)} : std::nullopt;
}

// The runs that no other one dominates: of those without a failed step the ones that are best in something.
void note_front(const TrainingScenario& scenario, const Comparison& comparison, std::vector<Rivals>& rivals) {
  const auto goods = [&](const PolicyResult& result) {
    const double rank = rank_of(scenario.setup.bounds, result.run.final_point);
    const double size = std::floor(rank);
    return std::array{size, rank - size, *find_metric(result.metrics, "samples_per_s"),
                      *find_metric(result.metrics, "min_headroom_bytes")};
  };
  const auto counts = [](const PolicyResult& result) {
    return *find_metric(result.metrics, "ooms") == 0 && result.run.ended_early.empty();
  };
  const auto dominates = [&](const PolicyResult& one, const PolicyResult& other) {
    const auto a = goods(one);
    const auto b = goods(other);
    return a != b && std::ranges::equal(a, b, std::greater_equal<>{});
  };
  const auto& all = comparison.policies;
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    rivals[i].on_front = counts(all[i]) && std::none_of(all.begin(), all.end(), [&](const auto& other) {
                           return counts(other) && dominates(other, all[i]);
                         });
  }
}

constexpr std::size_t kBefore = 2;  // lines shown before and after the one it is about

using Records = std::vector<IterationRecord>;

// The n-th failed step or change; where there are fewer the last one; the run's last step if there is none.
template <class Is>
std::size_t nth(const Records& records, std::int64_t n, const Is& is) {
  std::size_t found = records.size() - 1;
  for (std::size_t i = 0; i < records.size() && n > 0; ++i) {
    if (!is(records[i])) continue;
    found = i;
    --n;
  }
  return found;
}

bool failed(const IterationRecord& record) { return record.result == StepResult::oom; }
bool changed(const IterationRecord& record) { return !record.delta().empty(); }

std::size_t place_of(const Expectation& expectation, const Records& records) {
  using Subject = Expectation::Subject;
  const std::string_view name = expectation.name;
  constexpr std::int64_t kLast = INT64_MAX;
  switch (expectation.subject) {
    case Subject::oom:
      return nth(records, expectation.number, failed);
    case Subject::adjustment:
      return nth(records, expectation.number, changed);
    case Subject::final_value:
      return nth(records, kLast, changed);
    case Subject::metric:
      break;
  }
  if (name.find("oom") != std::string_view::npos) return nth(records, 1, failed);
  if (name.find("peak") == std::string_view::npos && name.find("headroom") == std::string_view::npos) {
    return nth(records, kLast, changed);
  }
  const auto highest = std::ranges::max_element(records, {}, &IterationRecord::step_peak_allocated);
  return static_cast<std::size_t>(highest - records.begin());
}

std::string line_of(const IterationRecord& record, const ParameterSpace& space) {
  std::string text = fmt::format("iteration {}:", record.iteration);
  for (std::size_t i = 0; i < record.point().size(); ++i) {
    text += fmt::format(" {} {}", space.parameters[i].name, record.point()[i]);
  }
  text += fmt::format(", peak {}, reserved {}", format_bytes(record.step_peak_allocated),
                      format_bytes(record.step_peak_reserved));
  if (failed(record)) text += ", OOM";
  if (changed(record)) text += fmt::format(", then {:+d}", fmt::join(record.delta(), ", "));
  return text + (record.reason().empty() ? "" : " (" + record.reason() + ")");
}

std::int64_t microseconds(SimTime time) { return time.count() / 1000; }

}  // namespace

const PolicyResult* Comparison::find(const std::string& label) const {
  const auto found = std::ranges::find(policies, label, &PolicyResult::label);
  return found == policies.end() ? nullptr : &*found;
}

PolicyResult run_policy(const TrainingScenario& scenario, const PolicyEntry& entry) {
  const PolicyProfile* profile =
      scenario.known->tuners.find(entry.choice.use, {}).find_profile(entry.choice.profile);
  PolicyResult result{named_after(entry)};
  TrainingSetup setup = scenario.setup;
  if (entry.search) result.search = search_start(scenario, *entry.search, setup);
  result.run = run_tuner(scenario, entry, setup);
  result.profile = profile != nullptr ? profile->name : "";
  result.metrics = training_metrics(scenario, result.run, {}, result.search_before());
  return result;
}

std::vector<double> training_rank(bool ended_early, double ooms, double inside_target, double lost_work) {
  return {ended_early ? 1.0 : 0.0, ooms > 0 ? 1.0 : 0.0, 1 - inside_target, lost_work};
}

Standing training_standing(const TrainingScenario& scenario, const PolicyResult& result) {
  const Figures figures{result.metrics};
  const bool early = !result.run.ended_early.empty();
  Standing standing{.label = result.label, .lost = {}, .rank = {}, .remark = {}};
  standing.rank = training_rank(early, figures["ooms"], figures["inside_target"], -figures["objective"]);
  if (has_finished(result.metrics)) return standing;
  const auto& steps = result.run.iterations;
  standing.lost = early ? fmt::format("ended at iteration {} of {}",
                                      steps.empty() ? 0 : steps.back().iteration, scenario.setup.iterations)
                        : "no step trained";
  return standing;
}

Comparison compare_policies(const TrainingScenario& scenario, const std::vector<std::string>& labels) {
  const std::optional<TrainingScenario> calm = undisturbed(scenario);
  std::vector<Rivals> rivals;
  Comparison comparison{run_policies(scenario, labels, [&](const PolicyEntry& entry) {
    PolicyResult result = run_policy(scenario, entry);
    rivals.emplace_back();
    if (calm) rivals.back().undisturbed = find_metric(run_policy(*calm, entry).metrics, "objective");
    return result;
  })};
  if (auto oracle = find_oracle(scenario)) {
    const auto best = find_metric(oracle->metrics, "objective");
    comparison.policies.push_back(std::move(*oracle));
    rivals.emplace_back();
    for (Rivals& one : rivals) one.oracle = best;
  }
  note_front(scenario, comparison, rivals);
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    PolicyResult& result = comparison.policies[i];
    result.metrics = training_metrics(scenario, result.run, rivals[i], result.search_before());
  }
  return comparison;
}

std::vector<std::string> iterations_around(const Expectation& expectation, const TrainingScenario& scenario,
                                           const TrainingRun& run) {
  if (run.iterations.empty()) return {};
  const std::size_t at = place_of(expectation, run.iterations);
  std::vector<std::string> lines;
  for (std::size_t i = at - std::min(at, kBefore); i < std::min(at + kBefore + 1, run.iterations.size());
       ++i) {
    lines.push_back((i == at ? "> " : "  ") + line_of(run.iterations[i], scenario.setup.bounds));
  }
  if (!run.ended_early.empty()) lines.push_back("  ended early: " + run.ended_early);
  return lines;
}

void RunSurvey::on_event(const AllocatorEvent& event) { segments_.add(trace_entry_of(event)); }

void RunSurvey::run_ends(const CachingAllocator& allocator) {
  settings_ = allocator.settings();
  end_ = snapshot_of(allocator);
}

const TorchSnapshot& RunSurvey::end() const {
  if (!end_) throw InternalError("the history of a run that has not ended");
  return *end_;
}

RunHistory::RunHistory(const RunSurvey& survey, ParameterSpace space, const std::string& file, bool maps,
                       std::uint64_t max_entries)
    : survey_(survey), space_(std::move(space)) {
  const std::uint64_t entries = survey.segments().entries();
  if (max_entries > 0 && entries > max_entries) lost_ = entries - max_entries;
  if (maps && lost_ == 0) maker_ = std::make_unique<SegmentMapMaker>(survey.segments());
  if (file.empty()) return;
  constexpr std::uint64_t kLeastBytes = 50;  // of an entry without a stack; most have some 70
  require_room(file, (entries - lost_) * kLeastBytes, "--max-entries N writes the newest N entries alone.");
  output_ = std::make_unique<OutputFile>(file);
  writer_ = std::make_unique<SnapshotWriter>([this](std::string_view bytes) { output_->write(bytes); },
                                             survey.end());
  writer_->begin_device();
}

RunHistory::~RunHistory() = default;

void RunHistory::on_event(const AllocatorEvent& event) {
  if (time_us_ != last_time_us_) {
    last_time_us_ = time_us_;
    first_at_time_ = entries_;
  }
  const TraceEntry entry = trace_entry_of(event, time_us_);
  if (maker_) maker_->add(entry);
  if (writer_ && entries_ >= lost_) writer_->add(entry);
  ++entries_;
}

// A mark stands at the first entry of its time. Of more than a page can show, every second, third … stays.
void RunHistory::step_begins(std::int64_t iteration, const Point& point, SimTime now) {
  time_us_ = microseconds(now);
  const std::uint64_t stride = (survey_.steps() + kMostMarks - 1) / kMostMarks;
  if (maker_ && steps_ % stride == 0) {
    marks_.push_back({last_time_us_ == time_us_ ? first_at_time_ : entries_, name_of(iteration, point)});
  }
  ++steps_;
}

void RunHistory::step_ends(StepResult /*result*/, SimTime now) {
  time_us_ = microseconds(now);  // for what comes between steps: empty_cache(), phases
}

std::string RunHistory::name_of(std::int64_t iteration, const Point& point) const {
  std::string name = "iteration " + std::to_string(iteration);
  for (std::size_t i = 0; i < point.size(); ++i) {
    name += ", " + space_.parameters[i].name + ' ' + std::to_string(point[i]);
  }
  return name;
}

void RunHistory::finish(const std::vector<IterationRecord>& steps) {
  if (!writer_) return;
  writer_->finish(survey_.settings(), 2 * steps.size(), [&](std::size_t i) {
    const IterationRecord& step = steps[i / 2];
    const bool begins = i % 2 == 0;
    const SimTime time = begins ? step.start : step.start + step.duration;
    return SnapshotAnnotation{name_of(step.iteration, step.point()), begins, 0, microseconds(time)};
  });
  output_->commit();
}

std::optional<SegmentMap> RunHistory::map() {
  if (!maker_) return std::nullopt;
  SegmentMap map = maker_->finish();
  map.marks = std::move(marks_);
  return map;
}

void RunRecorder::replay(RunWatcher& watcher) const {
  for (const Happened& one : happened_) {
    if (one.what == What::event) watcher.on_event(one.event);
    if (one.what == What::begins) watcher.step_begins(one.iteration, one.point, one.now);
    if (one.what == What::ends) watcher.step_ends(one.result, one.now);
  }
}

}  // namespace vramlab
