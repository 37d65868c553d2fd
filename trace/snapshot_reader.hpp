// Turns the values of a pickle into a snapshot.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/pickle_reader.hpp"
#include "trace/pickle_value.hpp"
#include "trace/snapshot_fields.hpp"
#include "trace/torch_snapshot.hpp"
#include "trace/trace_entries.hpp"

namespace vramlab {

/// One use of the reader: see parse_torch_snapshot(), which is the way to call it.
class SnapshotReader : public PickleListTaker {
 public:
  /// `document`, which may still be empty, and `name`, which stands for the file in errors, must outlive the
  /// reader.
  SnapshotReader(const PickleDocument& document, const std::string& name, const SnapshotReadOptions& options)
      : document_(document), name_(name), options_(options), fields_(document) {
    stack_ids_[{}] = 0;
  }

  // Trace entries are taken while the pickle is read, and need not be kept.
  [[nodiscard]] std::string_view key() const override { return name_of(SnapshotField::device_traces); }
  void take(PickleValue list, std::size_t place, std::span<const PickleValue> elements) override;

  /// The rest, when all has been read. Throws InputError naming the key. To be called once.
  TorchSnapshot read();

 private:
  using Field = SnapshotField;

  // Values, with the place of the one being read.
  [[noreturn]] void fail(const std::string& what) const;
  std::span<const PickleValue> items(PickleValue container);
  template <class Visit>
  void each_field(PickleValue dict, Visit visit);
  template <class Visit>
  void each_element(PickleValue list, Visit visit);
  [[nodiscard]] std::int64_t number(PickleValue value) const;
  [[nodiscard]] Bytes bytes(PickleValue value) const;
  [[nodiscard]] Address address(PickleValue value) const;
  [[nodiscard]] bool truth(PickleValue value) const;
  [[nodiscard]] std::string_view text(PickleValue value) const;

  void read_segments(PickleValue list);
  SnapshotSegment read_segment(PickleValue dict);
  SnapshotBlock read_block(PickleValue dict, Address after_last);
  void read_history(PickleValue list, SnapshotBlock& block);
  SnapshotPool read_pool(PickleValue pair);
  std::int32_t pool_number(const SnapshotPool& pool);
  void read_traces(PickleValue list);
  std::vector<TraceEntry> taken_entries(PickleValue list);
  TraceEntry::Action action_of(PickleValue name);
  TraceEntry read_entry(PickleValue dict);
  StackId read_stack(PickleValue list);
  std::uint32_t read_frame(PickleValue dict);
  void read_settings(PickleValue dict);
  void read_roundup(PickleValue dict);

  const PickleDocument& document_;
  const std::string& name_;
  SnapshotReadOptions options_;
  SnapshotFields fields_;
  std::size_t visits_ = 0;
  TorchSnapshot snapshot_;
  struct Step {
    Field field{};  ///< unknown: an element of a list
    std::size_t index = 0;
  };
  std::vector<Step> place_;
  std::map<std::uint32_t, TraceEntries> taken_;  ///< by number of the list
  std::vector<std::uint8_t> actions_;            ///< by text: action + 1, 0 = not looked up
  std::vector<std::uint32_t> stacks_read_;  ///< by container: id of the stack + 1; shared lists are read once
  std::vector<std::uint32_t> frames_read_;  ///< by container: number of the frame + 1
  std::map<std::vector<std::uint32_t>, StackId> stack_ids_;
  std::map<StackFrame, std::uint32_t> frame_ids_;
};

template <class Visit>
void SnapshotReader::each_field(PickleValue dict, Visit visit) {
  if (dict.kind() != PickleValue::Kind::dict) fail("is no dict.");
  const auto fields = items(dict);
  for (std::size_t i = 0; i < fields.size(); i += 2) {
    const SnapshotField field = fields_.of(fields[i]);
    if (field == SnapshotField::unknown) continue;
    place_.push_back({field, 0});
    visit(field, fields[i + 1]);
    place_.pop_back();
  }
}

template <class Visit>
void SnapshotReader::each_element(PickleValue list, Visit visit) {
  if (list.kind() != PickleValue::Kind::list && list.kind() != PickleValue::Kind::tuple) fail("is no list.");
  const auto elements = items(list);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    place_.push_back({SnapshotField::unknown, i});
    visit(elements[i]);
    place_.pop_back();
  }
}

}  // namespace vramlab
