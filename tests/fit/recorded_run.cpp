#include "tests/fit/recorded_run.hpp"

#include <filesystem>

#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

std::optional<std::filesystem::path> recording_file(const std::string& name) {
  const std::filesystem::path source = VRAMLAB_SOURCE_DIR;
  for (const auto& folder : {source / "tests/data/recorded", source / "../shared/data/recorded",
                             source / "../shared/data/programs-h200"}) {
    const auto snapshot = folder / (name + ".pickle.gz");
    if (std::filesystem::exists(snapshot) && std::filesystem::exists(folder / (name + ".marks.json")))
      return snapshot;
  }
  return std::nullopt;
}

std::optional<RecordedRun> recorded_run(const std::string& name) {
  const auto snapshot = recording_file(name);
  if (!snapshot) return std::nullopt;
  const auto marks = snapshot->parent_path() / (name + ".marks.json");
  return cut_at_marks(read_torch_snapshot(*snapshot, {.stacks = false}), read_marks_file(marks), name);
}

}  // namespace vramlab
