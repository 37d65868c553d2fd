// The stack frames of a snapshot: shared lists and dicts are read once, equal ones become one.
#include <utility>

#include "sim/core/error.hpp"
#include "trace/snapshot_reader.hpp"

namespace vramlab {

StackId SnapshotReader::read_stack(PickleValue list) {
  if (!options_.stacks || !list.is_container()) return 0;
  if (stacks_read_.size() <= list.index()) stacks_read_.resize(document_.container_count());
  std::uint32_t& read = stacks_read_[list.index()];
  if (read != 0) return read - 1;
  std::vector<std::uint32_t> stack;
  each_element(list, [&](PickleValue frame) { stack.push_back(read_frame(frame)); });
  const auto [known, is_new] =
      stack_ids_.emplace(std::move(stack), static_cast<StackId>(snapshot_.stacks.size()));
  if (is_new) snapshot_.stacks.push_back(known->first);
  read = known->second + 1;
  return known->second;
}

std::uint32_t SnapshotReader::read_frame(PickleValue dict) {
  if (!dict.is_container()) fail("is no dict.");
  if (frames_read_.size() <= dict.index()) frames_read_.resize(document_.container_count());
  std::uint32_t& read = frames_read_[dict.index()];
  if (read != 0) return read - 1;
  StackFrame frame;
  each_field(dict, [&](Field field, PickleValue value) {
    if (field == Field::name) frame.function = text(value);
    if (field == Field::filename) frame.file = text(value);
    if (field == Field::line) frame.line = number(value);
  });
  const auto [known, is_new] = frame_ids_.emplace(frame, static_cast<std::uint32_t>(snapshot_.frames.size()));
  if (is_new) snapshot_.frames.push_back(std::move(frame));
  read = known->second + 1;
  return known->second;
}

}  // namespace vramlab
