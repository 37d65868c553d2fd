// Replays a recording of whatever kind it is, and says how exactly the simulator reproduces it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trace/oracle_replay.hpp"

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

}  // namespace vramlab
