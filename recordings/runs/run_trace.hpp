// Traces of simulated runs as files: a training run's rows, written and read, and the queue's.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/parameter_space.hpp"
#include "core/run_record.hpp"
#include "recordings/input_file.hpp"
#include "sim/runs/job_queue_loop.hpp"

namespace vramlab {

/// Takes a text piece by piece. Those below come in pieces of some 64 KiB, however long the run.
using TextSink = std::function<void(std::string_view)>;

/// One JSON object a line: iteration, start and duration in seconds, the parameters, whether it ran out of
/// memory or ended in another error, whether its work was kept, all memory figures in bytes, the change made
/// after the step and the reason.
void write_trace_jsonl(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                       const TextSink& sink);

/// The same columns as CSV with a header; changes are in columns named `d_` and the parameter.
void write_trace_csv(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                     const TextSink& sink);

// The same as a trace that ui.perfetto.dev and chrome://tracing open.

/// One slice a step with its parameters; a counter track each for allocated, active and reserved bytes; a
/// mark for each step that ran out of memory and for each change of parameters. While a step lasts the
/// counters show its peaks, from its end on what it left. Active equals allocated: nothing in a simulated
/// step is used by a second stream (R8.7). Times are simulated.
void write_trace_perfetto(const std::string& title, const ParameterSpace& space,
                          const std::vector<IterationRecord>& records, const TextSink& sink);

// Reads the trace of a run back, as `vramlab run --trace` and `compare --trace-dir` wrote it.

/// The iterations of a run, and the names of their parameters.
struct RunTrace {
  std::vector<std::string> parameters;
  std::vector<IterationRecord> iterations;
};

/// A trace in either form, plain or compressed. Throws InputError for a trace of another kind than training,
/// and with file and line for a missing column or a value that is none.
RunTrace read_run_trace(const std::filesystem::path& file);
RunTrace read_run_trace(InputFile& file);

// The time line of a run of the job queue: cards, stays of jobs, and the queue as a whole.

/// One line a change of a card, as JSON or CSV: time_s, card, and in bytes used (by jobs), foreign, promised,
/// then jobs, alert, status (of the card, as the policy has it). `run` must have kept its moments; so for all
/// below.
void write_cards_jsonl(const JobQueueRun& run, const TextSink& sink);
void write_cards_csv(const JobQueueRun& run, const TextSink& sink);

/// One line a stay of a job, as CSV: name, cards (with spaces between), from_s, to_s, need, most_used, oom.
void write_stays_csv(const std::vector<JobSpec>& jobs, const JobQueueRun& run, const TextSink& sink);

/// One line a change of the queue, as CSV, with the published queue's names, in bytes: time_s, total_memory,
/// used_memory (strangers included), free_memory, utilization, active_jobs, pending_jobs, total_allocated
/// (promised), pending_requirements, cards_over_90.
void write_monitor_csv(const JobQueueRun& run, const TextSink& sink);

/// A process a card with counters of used, foreign and promised bytes, and a slice a stay, in as many tracks
/// as jobs overlap; and a process for the queue with counters of active and pending jobs.
void write_queue_perfetto(const std::string& title, const std::vector<JobSpec>& jobs, const JobQueueRun& run,
                          const TextSink& sink);

/// Hands on what is written in pieces of some 64 KiB, the last one by flush().
class PieceWriter {
 public:
  explicit PieceWriter(const TextSink& sink) : sink_(sink) {}

  void put(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPiece) flush();
  }
  void flush() {
    sink_(text_);
    text_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;
  const TextSink& sink_;
  std::string text_;
};

}  // namespace vramlab
