// Replays a recording of whatever kind it is, and says how exactly the simulator reproduces it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "recordings/replay/oracle_replay.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"

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
  ReplayResult replay;

  /// The file's name without folder and endings.
  [[nodiscard]] std::string name() const;
};

/// Replays `file`: an oracle log (.json, .json.gz) or a snapshot (.pickle, .pickle.gz), for which a sibling
/// NAME.truth.json[.gz] is used where there is one. One entry a device. Throws InputError for a file that is
/// neither, or cannot be replayed.
std::vector<VerifiedRecording> verify_recording(const std::filesystem::path& file);

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

/// Reads an oracle log or a snapshot (one entry a device). Empty for a log of backend:cudaMallocAsync, which
/// is another allocator. Throws InputError for anything else.
std::vector<ReplayableRecording> read_replayable(const std::filesystem::path& file);

/// Operations after which the card's allocator agrees with PyTorch's own on the card of the recording.
struct RecordedAgreement {
  std::size_t operations = 0;
  std::size_t equal_reserved = 0;
  std::size_t ooms = 0;        ///< recorded
  std::size_t equal_ooms = 0;  ///< refused here as well
};
RecordedAgreement compare_with_recording(const ReplayableRecording& recorded, const ReplayedProgram& card);

}  // namespace vramlab
