// Recordings of either kind as the programs that were run to record them.
#pragma once

#include <vector>

#include "recordings/logs/oracle_log.hpp"
#include "recordings/scripts/client_program.hpp"
#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// A log's operations as a program's actions. A request that failed in the log is an allocation like any
/// other: it may fail again, and then nothing is freed. The free of a pointer that is not live is no action.
struct OracleProgram {
  ClientProgram program;
  std::vector<std::size_t> first_action;  ///< by operation: number of actions before it; at the end, of all
};

/// Throws InputError, with the place in the log, for an operation that contradicts an earlier one.
OracleProgram oracle_program(const OracleLog& log);

// The client program of a snapshot: what its history says that the program did (R11.13).

/// What is known beside the snapshot.
struct SnapshotProgramOptions {
  const TruthFile* truth = nullptr;  ///< gives the limit and the card
  std::vector<StepMark> marks;  ///< in order of time; their labels name stretches of the program. Empty =
                                ///< those that the snapshot itself holds
  std::vector<StepMark> measured{};  ///< those that measured the used memory of the card
};

/// The program of one device. The history is replayed once under its own settings, to tell explicit
/// empty_cache calls from releases that a request needed. Requests that failed become `attempt` actions.
/// Without a truth file, the limit is read off the failures where there are any. Of a device without history,
/// the program is what was in use.
/// Throws InputError if history and segments contradict each other.
ClientProgram program_of(const TorchSnapshot& snapshot, int device, const SnapshotProgramOptions& options);

/// The program of each device of a snapshot that has a history (of each that holds memory, if none has), with
/// what lies beside it: NAME.truth.json or NAME.marks.json.
std::vector<ClientProgram> snapshot_programs(InputFile& file, const ReadOptions& options);

}  // namespace vramlab
