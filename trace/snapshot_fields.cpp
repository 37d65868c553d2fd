#include "trace/snapshot_fields.hpp"

#include <array>

namespace vramlab {
namespace {

constexpr std::array<std::string_view, 33> kNames{
    "",
    "segments",
    "device_traces",
    "allocator_settings",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "state",
    "history",
    "real_size",
    "action",
    "addr",
    "device_free",
    "size",
    "time_us",
    "pool_id",
    "frames",
    "name",
    "filename",
    "line",
    "PYTORCH_CUDA_ALLOC_CONF",
    "max_split_size",
    "garbage_collection_threshold",
    "expandable_segments",
    "roundup_power2_divisions",
};
static_assert(kNames.size() == static_cast<std::size_t>(SnapshotField::roundup_power2_divisions) + 1);

}  // namespace

std::string_view name_of(SnapshotField field) { return kNames[static_cast<std::size_t>(field)]; }

SnapshotFields::SnapshotFields(const PickleDocument& document) : document_(document) {
  for (std::size_t i = 1; i < kNames.size(); ++i) fields_.emplace(kNames[i], static_cast<SnapshotField>(i));
}

void SnapshotFields::look_up_new_texts() {
  while (by_text_.size() < document_.text_count()) {
    const auto field = fields_.find(document_.text_at(by_text_.size()));
    by_text_.push_back(field != fields_.end() ? field->second : SnapshotField::unknown);
  }
}

}  // namespace vramlab
