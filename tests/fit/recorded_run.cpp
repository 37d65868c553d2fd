#include "tests/fit/recorded_run.hpp"

#include <filesystem>

#include "recordings/snapshot/marks.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

std::optional<RecordedRun> recorded_run(const std::string& name) {
  const std::filesystem::path source = VRAMLAB_SOURCE_DIR;
  for (const auto& folder : {source / "tests/data/recorded", source / "../shared/data/recorded",
                             source / "../shared/data/programs-h200"}) {
    const auto snapshot = folder / (name + ".pickle.gz");
    const auto marks = folder / (name + ".marks.json");
    if (!std::filesystem::exists(snapshot) || !std::filesystem::exists(marks)) continue;
    return cut_at_marks(read_torch_snapshot(snapshot, {.stacks = false}), read_marks_file(marks), name);
  }
  return std::nullopt;
}

}  // namespace vramlab
