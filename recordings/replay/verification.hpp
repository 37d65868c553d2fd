// Replays recordings of real allocators, and says how exactly the simulator or a card reproduces them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "recordings/input_file.hpp"
#include "recordings/replay/oracle_replay.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// One recording, or one device of it.
struct VerifiedRecording {
  std::string file;
  std::string kind;  ///< "oracle" or "snapshot"
  int device = 0;
  std::string initial_state = "empty";  ///< or "rebuilt", by undoing the history
  std::uint64_t initial_blocks = 0;     ///< in use at the start
  std::uint64_t inferred_blocks = 0;    ///< those of them whose size had to be inferred
  Bytes inferred_bytes = 0;             ///< in these
  bool made_without_card = false;       ///< no card took part: nothing of it can be checked
  bool checked = true;  ///< false: the recording holds nothing that could be held against the simulator
  std::string torch_version{};        ///< of the rules that were followed; empty for an oracle log
  std::string torch_from{};           ///< "given", "inferred" from the file, or "assumed"
  std::uint64_t skipped_entries = 0;  ///< of a history, of an action that is not known here
  ReplayResult replay;

  /// The file's name without folder and endings.
  [[nodiscard]] std::string name() const;
};

/// Replays an oracle log and compares. Throws InputError if it cannot be replayed.
std::vector<VerifiedRecording> verify_oracle_log(InputFile& file, const ReadOptions& options);

/// The same for each device of a snapshot, with NAME.truth.json beside it where there is one. One whose
/// history says nothing is not checked.
std::vector<VerifiedRecording> verify_snapshot(InputFile& file, const ReadOptions& options);

// Recordings of real allocators, of either kind, as programs to be replayed on a card.

/// A program, and what the recording says of its reserved bytes.
struct ReplayableRecording {
  std::string name;  ///< of the file, without folder and endings
  ClientProgram program;
  /// What was recorded after some actions.
  struct Recorded {
    std::size_t action = 0;
    Bytes reserved = 0;
    bool failed = false;  ///< the action was refused
  };
  std::vector<Recorded> recorded;  ///< of an operation log: each operation; empty for a snapshot
};

/// An oracle log; empty for one of backend:cudaMallocAsync, which is another allocator.
std::vector<ReplayableRecording> replayable_oracle_log(InputFile& file);

/// The programs that `file` holds, of which nothing else was recorded.
std::vector<ReplayableRecording> replayable_programs(const std::filesystem::path& file,
                                                     std::vector<ClientProgram> programs);

/// Operations after which the card's allocator agrees with PyTorch's own on the card of the recording.
struct RecordedAgreement {
  std::size_t operations = 0;
  std::size_t equal_reserved = 0;
  std::size_t ooms = 0;        ///< recorded
  std::size_t equal_ooms = 0;  ///< refused here as well
};
RecordedAgreement compare_with_recording(const ReplayableRecording& recorded, const ReplayedProgram& card);

}  // namespace vramlab
