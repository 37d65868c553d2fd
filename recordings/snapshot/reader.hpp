// Turns the values of a pickle into a snapshot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recordings/pickle/pickle.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// Every key that is read, whatever dict it belongs to.
enum class SnapshotField : std::uint8_t {
  unknown,
  // the snapshot
  segments,
  device_traces,
  allocator_settings,
  // segments and blocks
  device,
  address,
  total_size,
  allocated_size,
  active_size,
  requested_size,
  stream,
  segment_type,
  segment_pool_id,
  is_expandable,
  blocks,
  state,
  history,
  real_size,
  // trace entries
  action,
  addr,
  device_free,
  size,
  time_us,
  pool_id,
  // stacks
  frames,
  name,
  filename,
  line,
  // settings
  conf,
  max_split_size,
  garbage_collection_threshold,
  expandable_segments,
  roundup_power2_divisions,
};

/// The name of a field in the file.
std::string_view name_of(SnapshotField field);

/// Tells the field of any key of one document in constant time.
class SnapshotFields {
 public:
  /// `document` may still grow, and must outlive this.
  explicit SnapshotFields(const PickleDocument& document);

  [[nodiscard]] SnapshotField of(PickleValue key) {
    if (key.kind() != PickleValue::Kind::text) return SnapshotField::unknown;
    if (key.index() >= by_text_.size()) look_up_new_texts();
    return by_text_[key.index()];
  }

 private:
  void look_up_new_texts();

  const PickleDocument& document_;
  std::unordered_map<std::string_view, SnapshotField> fields_;
  std::vector<SnapshotField> by_text_;
};

// A history that is being read, of a length that is not known yet.

/// Grows without copying what it holds, and becomes a vector without needing the memory twice.
class TraceEntries {
 public:
  [[nodiscard]] std::size_t size() const { return size_; }

  void push_back(const TraceEntry& entry) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) add_chunk();
    chunks_.back().push_back(entry);
    ++size_;
  }

  /// All entries; none are left.
  std::vector<TraceEntry> take() {
    const std::size_t size = std::exchange(size_, 0);
    if (chunks_.size() == 1) return std::move(std::exchange(chunks_, {}).front());
    std::vector<TraceEntry> all;
    all.reserve(size);
    for (std::vector<TraceEntry>& chunk : chunks_) {
      all.insert(all.end(), chunk.begin(), chunk.end());
      std::vector<TraceEntry>().swap(chunk);
    }
    chunks_.clear();
    return all;
  }

 private:
  static constexpr std::size_t kChunk = std::size_t{1}
                                        << 20;  // large enough to go back to the system at once

  // The first one grows as it may.
  void add_chunk() {
    const bool is_first = chunks_.empty();
    chunks_.emplace_back();
    if (!is_first) chunks_.back().reserve(kChunk);
  }

  std::vector<std::vector<TraceEntry>> chunks_;
  std::size_t size_ = 0;
};

// Turns the values of a pickle into a snapshot.

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
  if (dict.kind() != PickleValue::Kind::dict) fail("is not a dict.");
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
  if (list.kind() != PickleValue::Kind::list && list.kind() != PickleValue::Kind::tuple)
    fail("is not a list.");
  const auto elements = items(list);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    place_.push_back({SnapshotField::unknown, i});
    visit(elements[i]);
    place_.pop_back();
  }
}

}  // namespace vramlab
