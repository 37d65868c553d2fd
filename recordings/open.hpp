// The one place that says what a file is, whatever its name and however it is compressed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "recordings/input_file.hpp"
#include "recordings/replay/verification.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// What a file may be. The table in open.cpp says by what each kind is known, and what reads it.
enum class FileKind : std::uint8_t {
  unknown,
  snapshot,           ///< of torch.cuda.memory._dump_snapshot(): a pickle
  oracle_log,         ///< operations of a real allocator with its counters after each
  allocation_script,  ///< a program's allocations written by hand
  buffer_list,        ///< buffers with their lifetimes: CSV
  truth,              ///< what PyTorch counted while a snapshot was recorded
  marks,              ///< when each step of a recording ended
  oom_message,
  memory_stats,  ///< the result of torch.cuda.memory_stats()
  run_trace,     ///< of a training run, one JSON object a line
  run_table,     ///< the same as CSV
  job_list,      ///< jobs with all their fields: JSON
  job_table,     ///< jobs by need and duration: CSV
  gavel_trace,
  openb_pods,
  openb_nodes,
  result,  ///< of vramlab compare --json or vramlab run --json
  scenario,
  grid,  ///< measured steps over a grid of parameters
  model,
};

/// What the content says: the keys of the outermost JSON object, the columns of a CSV header, the first bytes
/// of a pickle. A file that is damaged further back is still of its kind; `unknown` if nothing fits.
FileKind kind_of(InputFile& file);

/// Which of the `wanted` kinds a file is. Where the content does not say, the name does (.pickle, .csv), then
/// the form (any JSON), so that the reader of that kind can say what is wrong.
/// Throws InputError, naming what the file is and what is wanted, if it is none of them.
FileKind require_kind(InputFile& file, const std::vector<FileKind>& wanted);

/// The programs of a file, whatever records one: of each device of a snapshot, with NAME.truth.json or
/// NAME.marks.json beside it where there is one (or .gz, .zst), or the one of an allocation script, for which
/// `options` mean nothing.
std::vector<ClientProgram> read_client_programs(const std::filesystem::path& file,
                                                const ReadOptions& options = {});

/// Replays what a file recorded of a real allocator and compares: an oracle log, or each device of a
/// snapshot, with NAME.truth.json beside it where there is one (or .gz, .zst). Throws InputError for a file
/// that is neither, or contradicts itself.
std::vector<VerifiedRecording> verify_recording(const std::filesystem::path& file,
                                                const ReadOptions& options = {});

/// Reads an oracle log, a snapshot (one entry a device) or an allocation script to be replayed on a card.
/// Empty for a log of backend:cudaMallocAsync, which is another allocator. Throws InputError for others.
std::vector<ReplayableRecording> read_replayable(const std::filesystem::path& file);

}  // namespace vramlab
