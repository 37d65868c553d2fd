// The client program of a snapshot: what its history says that the program did (R11.13).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trace/client_program.hpp"
#include "trace/torch_snapshot.hpp"
#include "trace/truth_file.hpp"

namespace vramlab {

/// A moment of a recording with a name.
struct ProgramMark {
  std::string text;
  std::int64_t time_us = 0;  ///< Unix time; the history's entries up to it come before the mark
};

/// What is known beside the snapshot.
struct SnapshotProgramOptions {
  const TruthFile* truth = nullptr;  ///< gives the limit and the card
  std::vector<ProgramMark> marks;    ///< in order of time
};

/// The program of one device. The history is replayed once under its own settings, to tell explicit
/// empty_cache calls from releases that a request needed. Requests that failed become `attempt` actions.
/// Without a truth file, the limit is read off the failures where there are any.
/// Throws InputError if the history of the device is not whole.
ClientProgram program_of(const TorchSnapshot& snapshot, int device, const SnapshotProgramOptions& options);

/// Reads the marks of NAME.marks.json: an object with `marks`, a list of {label, t_us}, in order of time.
std::vector<ProgramMark> read_marks(const std::filesystem::path& file);

/// Reads the programs of a file: of each device of a snapshot, with NAME.truth.json[.gz] or
/// NAME.marks.json[.gz] beside it where there is one, or the one of an allocation script.
std::vector<ClientProgram> read_client_programs(const std::filesystem::path& file);

}  // namespace vramlab
