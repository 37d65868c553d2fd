// The keys of a snapshot's dicts, and the look-up of a pickle's texts among them.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/pickle_value.hpp"

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

}  // namespace vramlab
