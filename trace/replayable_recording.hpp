// Recordings of real allocators, of either kind, as programs to be replayed on a card.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trace/client_program.hpp"
#include "trace/program_replay.hpp"

namespace vramlab {

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
