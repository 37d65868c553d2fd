#include "recordings/snapshot/reader.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.hpp"

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

// The stack frames of a snapshot: shared lists and dicts are read once, equal ones become one.

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
  if (!dict.is_container()) fail("is not a dict.");
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

// The dicts of a snapshot: segments, blocks, trace entries, settings (R11.1 to R11.8).
namespace {

using Action = TraceEntry::Action;
using Kind = PickleValue::Kind;
using State = SnapshotBlock::State;

// The third spelling stands in PyTorch's documentation only.
constexpr std::array<std::pair<const char*, State>, 4> kStates{{
    {"active_allocated", State::active_allocated},
    {"active_pending_free", State::active_pending_free},
    {"active_awaiting_free", State::active_pending_free},
    {"inactive", State::inactive},
}};

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::size_t kRoundupClasses = 16;

// Newer versions have further actions.
Action action_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(Action::other); ++i) {
    if (name == name_of(static_cast<Action>(i))) return static_cast<Action>(i);
  }
  return Action::other;
}

}  // namespace

void SnapshotReader::fail(const std::string& what) const {
  std::string place;
  for (const Step& step : place_) {
    place += '/';
    place += step.field == Field::unknown ? std::to_string(step.index) : std::string(name_of(step.field));
  }
  throw InputError(place.empty() ? name_ : name_ + ": " + place, what);
}

// A snapshot holds each of its parts once. A small file may hold one part in very many places, and would take
// for ever.
std::span<const PickleValue> SnapshotReader::items(PickleValue container) {
  const auto items = document_.items(container);
  visits_ += items.size();
  if (visits_ > 2 * document_.element_count()) fail("the same data is repeated too often.");
  return items;
}

std::int64_t SnapshotReader::number(PickleValue value) const {
  const auto number = document_.integer(value);
  if (!number) fail(value.kind() == Kind::huge ? "does not fit 64 bits." : "is not a whole number.");
  return *number;
}

Bytes SnapshotReader::bytes(PickleValue value) const {
  const std::int64_t size = number(value);
  if (size < 0 || size > kMostBytes) {
    fail(std::to_string(size) + " is not a number of bytes from 0 to 2^60.");
  }
  return static_cast<Bytes>(size);
}

// C++ writers store addresses as signed numbers (R11.10).
Address SnapshotReader::address(PickleValue value) const { return static_cast<Address>(number(value)); }

bool SnapshotReader::truth(PickleValue value) const {
  if (value.kind() != Kind::boolean) fail("is neither True nor False.");
  return value.is_truth();
}

std::string_view SnapshotReader::text(PickleValue value) const {
  const auto text = document_.text(value);
  if (!text) fail("is not text.");
  return *text;
}

TorchSnapshot SnapshotReader::read() {
  const PickleValue root = document_.root();
  if (root.kind() == Kind::list) {
    read_segments(root);
    return std::move(snapshot_);
  }
  bool known = false;
  if (root.kind() == Kind::dict) {
    each_field(root, [&](Field field, PickleValue value) {
      known = known || field == Field::segments || field == Field::device_traces;
      if (field == Field::segments) read_segments(value);
      if (field == Field::device_traces) read_traces(value);
      if (field == Field::allocator_settings) read_settings(value);
    });
  }
  if (!known) fail("is a pickle, but no memory snapshot: it has neither segments nor device_traces.");
  return std::move(snapshot_);
}

// --- Segments ---

void SnapshotReader::read_segments(PickleValue list) {
  each_element(list, [&](PickleValue segment) { snapshot_.segments.push_back(read_segment(segment)); });
}

SnapshotSegment SnapshotReader::read_segment(PickleValue dict) {
  SnapshotSegment segment;
  PickleValue blocks;
  each_field(dict, [&](Field field, PickleValue value) {
    switch (field) {
      case Field::device:
        segment.device = static_cast<int>(bytes(value) & 0xFFFF);
        break;
      case Field::address:
        segment.address = address(value);
        break;
      case Field::total_size:
        segment.total_size = bytes(value);
        break;
      case Field::allocated_size:
        segment.allocated_size = bytes(value);
        break;
      case Field::active_size:
        segment.active_size = bytes(value);
        break;
      case Field::requested_size:
        segment.requested_size = bytes(value);
        break;
      case Field::stream:
        segment.stream = static_cast<StreamId>(number(value));
        break;
      case Field::segment_type:
        segment.large = text(value) == "large";
        if (!segment.large && text(value) != "small") fail("is neither \"small\" nor \"large\".");
        break;
      case Field::segment_pool_id:
        segment.pool = read_pool(value);
        break;
      case Field::is_expandable:
        segment.expandable = truth(value);
        break;
      case Field::frames:
        segment.stack = read_stack(value);
        break;
      case Field::blocks:
        blocks = value;
        break;
      default:
        break;
    }
  });
  if (blocks == PickleValue{}) return segment;
  place_.push_back({Field::blocks, 0});
  Address after_last = segment.address;
  each_element(blocks, [&](PickleValue block) {
    segment.blocks.push_back(read_block(block, after_last));
    after_last = segment.blocks.back().address + segment.blocks.back().size;
  });
  place_.pop_back();
  return segment;
}

SnapshotBlock SnapshotReader::read_block(PickleValue dict, Address after_last) {
  SnapshotBlock block;
  block.address = after_last;
  each_field(dict, [&](Field field, PickleValue value) {
    switch (field) {
      case Field::address:
        block.address = address(value);
        break;
      case Field::size:
        block.size = bytes(value);
        break;
      case Field::requested_size:
        block.requested = bytes(value);
        break;
      case Field::state: {
        const std::string_view name = text(value);
        const auto* const state = std::find_if(kStates.begin(), kStates.end(),
                                               [name](const auto& known) { return name == known.first; });
        if (state == kStates.end()) fail('"' + std::string(name) + "\" is not a state of a block.");
        block.state = state->second;
        break;
      }
      case Field::frames:
        block.stack = read_stack(value);
        break;
      case Field::history:
        read_history(value, block);
        break;
      default:
        break;
    }
  });
  return block;
}

// Files of torch 2.0 and older: the latest allocation comes first.
void SnapshotReader::read_history(PickleValue list, SnapshotBlock& block) {
  bool first = true;
  each_element(list, [&](PickleValue entry) {
    if (!std::exchange(first, false)) return;
    each_field(entry, [&](Field field, PickleValue value) {
      if (field == Field::real_size) block.requested = bytes(value);
      if (field == Field::frames) block.stack = read_stack(value);
    });
  });
}

SnapshotPool SnapshotReader::read_pool(PickleValue pair) {
  std::vector<std::uint64_t> numbers;
  each_element(pair,
               [&](PickleValue value) { numbers.push_back(static_cast<std::uint64_t>(number(value))); });
  if (numbers.size() != 2) fail("is not a pair of numbers.");
  const SnapshotPool pool{numbers[0], numbers[1]};
  pool_number(pool);
  return pool;
}

std::int32_t SnapshotReader::pool_number(const SnapshotPool& pool) {
  const auto known = std::find(snapshot_.pools.begin(), snapshot_.pools.end(), pool);
  const auto number = static_cast<std::int32_t>(known - snapshot_.pools.begin());
  if (known == snapshot_.pools.end()) snapshot_.pools.push_back(pool);
  return number;
}

// --- Traces ---

void SnapshotReader::take(PickleValue list, std::size_t place, std::span<const PickleValue> elements) {
  if (elements.empty()) return;
  TraceEntries& entries = taken_[list.index()];
  place_ = {{Field::device_traces, 0}, {Field::unknown, place}, {Field::unknown, 0}};
  for (const PickleValue element : elements) {
    place_.back().index = entries.size();
    entries.push_back(read_entry(element));
  }
  place_.clear();
}

// A list stands in one place, or its entries would be there more than once.
void SnapshotReader::read_traces(PickleValue list) {
  each_element(list, [&](PickleValue device) {
    std::vector<TraceEntry> trace = taken_entries(device);
    each_element(device, [&](PickleValue entry) { trace.push_back(read_entry(entry)); });
    snapshot_.traces.push_back(std::move(trace));
  });
}

std::vector<TraceEntry> SnapshotReader::taken_entries(PickleValue list) {
  const auto taken = list.kind() == Kind::list ? taken_.find(list.index()) : taken_.end();
  if (taken == taken_.end()) return {};
  if (taken->second.size() == 0) fail("the same data is repeated too often.");
  return taken->second.take();
}

Action SnapshotReader::action_of(PickleValue name) {
  const std::string_view word = text(name);
  if (name.index() >= actions_.size()) actions_.resize(document_.text_count());
  std::uint8_t& known = actions_[name.index()];
  if (known == 0) known = static_cast<std::uint8_t>(static_cast<int>(action_named(word)) + 1);
  return static_cast<Action>(known - 1);
}

TraceEntry SnapshotReader::read_entry(PickleValue dict) {
  TraceEntry entry;
  bool has_action = false;
  each_field(dict, [&](Field field, PickleValue value) {
    switch (field) {
      case Field::action: {
        entry.action = action_of(value);
        has_action = true;
        break;
      }
      case Field::addr:
      case Field::device_free:
        entry.address = address(value);
        break;
      case Field::size:
        entry.size = bytes(value);
        break;
      case Field::stream:
        entry.stream = static_cast<StreamId>(number(value));
        break;
      case Field::time_us:
        entry.time_us = number(value);
        break;
      case Field::pool_id:
        entry.pool = pool_number(read_pool(value));
        break;
      case Field::frames:
        entry.stack = read_stack(value);
        break;
      default:
        break;
    }
  });
  if (!has_action) fail("has no action.");
  return entry;
}

// --- Settings ---

void SnapshotReader::read_settings(PickleValue dict) {
  SnapshotSettings& settings = snapshot_.settings;
  each_field(dict, [&](Field field, PickleValue value) {
    switch (field) {
      case Field::conf:
        settings.conf = text(value);
        break;
      case Field::max_split_size:
        settings.max_split_size = number(value);
        break;
      case Field::garbage_collection_threshold: {
        const auto threshold = document_.real(value);
        if (!threshold) fail("is not a number.");
        settings.garbage_collection_threshold = *threshold;
        break;
      }
      case Field::expandable_segments:
        settings.expandable_segments = truth(value);
        break;
      case Field::roundup_power2_divisions:
        read_roundup(value);
        break;
      default:
        break;
    }
  });
}

// Keys are "1", "2", "4" and so on, up to "32768" (R11.8).
void SnapshotReader::read_roundup(PickleValue dict) {
  if (dict.kind() != Kind::dict) fail("is not a dict.");
  std::vector<std::uint64_t> divisions(kRoundupClasses);
  const auto fields = items(dict);
  for (std::size_t i = 0; i < fields.size(); i += 2) {
    const std::string_view key = text(fields[i]);
    for (std::size_t c = 0; c < kRoundupClasses; ++c) {
      if (key == std::to_string(std::size_t{1} << c)) divisions[c] = bytes(fields[i + 1]);
    }
  }
  snapshot_.settings.roundup_power2_divisions = std::move(divisions);
}

}  // namespace vramlab
