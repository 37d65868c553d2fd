#include "recordings/snapshot/writer.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/error.hpp"
#include "recordings/snapshot/final_segments.hpp"

namespace vramlab {
namespace {

// PyTorch has the same names for both, and more for entries (R11.4).
constexpr bool is_same(AllocatorEvent::Action event, TraceEntry::Action entry) {
  return static_cast<int>(event) == static_cast<int>(entry);
}
static_assert(is_same(AllocatorEvent::Action::alloc, TraceEntry::Action::alloc));
static_assert(is_same(AllocatorEvent::Action::segment_map, TraceEntry::Action::segment_map));
static_assert(is_same(AllocatorEvent::Action::oom, TraceEntry::Action::oom));

}  // namespace

TraceEntry trace_entry_of(const AllocatorEvent& event, std::int64_t time_us, StackId stack) {
  return {.address = event.address,
          .size = event.size,
          .stream = event.stream,
          .time_us = time_us,
          .stack = stack,
          .action = static_cast<TraceEntry::Action>(event.action)};
}

HistoryRecorder::HistoryRecorder(std::size_t max_entries)
    : max_entries_(std::max<std::size_t>(max_entries, 1)) {}

TraceEntry HistoryRecorder::entry_of(const AllocatorEvent& event) const {
  return trace_entry_of(event, time_us_, stack_);
}

void HistoryRecorder::on_event(const AllocatorEvent& event) {
  const TraceEntry entry = entry_of(event);
  if (ring_.size() < max_entries_) {
    ring_.push_back(entry);
    return;
  }
  ring_[oldest_] = entry;
  oldest_ = (oldest_ + 1) % max_entries_;
  ++lost_;
}

std::vector<TraceEntry> HistoryRecorder::entries() const {
  std::vector<TraceEntry> ordered(ring_);
  std::rotate(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(oldest_), ordered.end());
  return ordered;
}

namespace {

// Python's integers are signed; no address or size reaches 2^63.
std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::int64_t written_split_size(const AllocatorSettings& settings) {
  return settings.max_split_size == kUnlimited ? -1 : as_signed(settings.max_split_size);
}

}  // namespace

class SnapshotWriter::Impl {
 public:
  Impl(ByteSink sink, const TorchSnapshot& around, std::size_t devices)
      : out_(std::move(sink)), around_(around), devices_left_(devices), several_devices_(devices != 1) {
    frames_.resize(around.frames.size());
    stacks_.resize(around.stacks.size());
    out_.begin();
    out_.empty_dict();
    out_.mark();
    key("segments");
    list(around.segments, [&](const SnapshotSegment& segment) { write_segment(segment); });
    key("device_traces");
    out_.empty_list();
    if (devices > 1) out_.mark();
  }

  void begin_device() {
    if (devices_left_ == 0) throw InternalError("a snapshot got more devices than it was opened for");
    end_device();
    --devices_left_;
    out_.empty_list();
    device_open_ = true;
    entries_ = 0;
  }

  // The first entry waits for the second: a list of one is written without a mark.
  void add(const TraceEntry& entry) {
    if (!device_open_) throw InternalError("an entry of a history needs a device");
    ++entries_;
    if (entries_ == 1) {
      first_ = entry;
      return;
    }
    if (entries_ == 2) {
      out_.mark();
      write_entry(first_);
    }
    if (entries_ % PickleWriter::kBatch == 1) out_.mark();
    write_entry(entry);
    if (entries_ % PickleWriter::kBatch == 0) out_.appends();
  }

  void finish(const AllocatorSettings& settings, std::size_t count,
              const std::function<SnapshotAnnotation(std::size_t)>& annotation) {
    while (devices_left_ > 0) begin_device();
    end_device();
    if (several_devices_ && device_open_) out_.appends();
    if (!several_devices_) out_.append();
    key("allocator_settings");
    write_settings(settings);
    key("external_annotations");
    counted_list(count, [&](std::size_t i) { write_annotation(annotation(i)); });
    out_.set_items();
    out_.end();
  }

 private:
  void end_device() {
    if (!device_open_) return;
    if (entries_ == 1) {
      write_entry(first_);
      out_.append();
    } else if (entries_ % PickleWriter::kBatch != 0) {
      out_.appends();
    }
  }

  // A string that is one object in PyTorch: written once, named again afterwards.
  void key(std::string_view name) {
    const auto known = names_.find(name);
    if (known != names_.end()) return out_.again(known->second);
    names_.emplace(std::string{name}, out_.text(name));
  }

  template <class Value>
  void field(std::string_view name, const Value& value) {
    key(name);
    if constexpr (std::is_same_v<Value, bool>) {
      out_.boolean(value);
    } else if constexpr (std::is_integral_v<Value>) {
      out_.integer(static_cast<std::int64_t>(value));
    } else {
      key(value);
    }
  }

  template <class WriteFields>
  MemoPlace dict(const WriteFields& write_fields) {
    const MemoPlace place = out_.empty_dict();
    out_.mark();
    write_fields();
    out_.set_items();
    return place;
  }

  template <class Items, class Write>
  MemoPlace list(const Items& items, const Write& write) {
    return counted_list(items.size(), [&](std::size_t i) { write(items[i]); });
  }

  // As Python does: one item alone, several in batches.
  template <class WriteItem>
  MemoPlace counted_list(std::size_t count, const WriteItem& write_item) {
    const MemoPlace place = out_.empty_list();
    if (count == 1) {
      write_item(0);
      out_.append();
      return place;
    }
    for (std::size_t n = 0; n < count;) {
      if (n % PickleWriter::kBatch == 0) out_.mark();
      write_item(n);
      if (++n % PickleWriter::kBatch == 0 || n == count) out_.appends();
    }
    return place;
  }

  // One list for each stack, however often it occurs, and one for all that have none.
  void stack(StackId id) {
    if (stacks_[id]) return out_.again(*stacks_[id]);
    stacks_[id] = list(around_.stacks[id], [&](std::uint32_t place) { frame(place); });
  }

  void frame(std::uint32_t id) {
    if (frames_[id]) return out_.again(*frames_[id]);
    const StackFrame& written = around_.frames[id];
    frames_[id] = dict([&] {
      field("name", written.function);
      field("filename", written.file);
      field("line", written.line);
    });
  }

  void write_segment(const SnapshotSegment& segment) {
    dict([&] {
      field("device", segment.device);
      field("address", segment.address);
      field("total_size", segment.total_size);
      field("allocated_size", segment.allocated_size);
      field("active_size", segment.active_size);
      field("requested_size", segment.requested_size);
      field("stream", segment.stream);
      field("segment_type", segment.large ? "large" : "small");
      key("segment_pool_id");
      out_.tuple_begins();
      out_.integer(as_signed(segment.pool.first));
      out_.integer(as_signed(segment.pool.second));
      out_.tuple2();
      field("is_expandable", segment.expandable);
      key("frames");
      stack(segment.stack);
      key("blocks");
      list(segment.blocks, [&](const SnapshotBlock& block) { write_block(block); });
    });
  }

  void write_block(const SnapshotBlock& block) {
    dict([&] {
      field("address", block.address);
      field("size", block.size);
      field("requested_size", block.requested);
      field("state", name_of(block.state));
      key("frames");
      stack(block.stack);
    });
  }

  void write_entry(const TraceEntry& entry) {
    dict([&] {
      field("action", name_of(entry.action));
      field(entry.action == TraceEntry::Action::oom ? "device_free" : "addr", entry.address);
      field("size", entry.size);
      field("stream", entry.stream);
      field("time_us", entry.time_us);
      key("compile_context");
      out_.text("N/A");            // an object of its own in every entry (R11.9)
      field("user_metadata", "");  // while Python has only one empty string
      if (entry.stack == 0) return;
      key("frames");
      stack(entry.stack);
    });
  }

  void write_settings(const AllocatorSettings& settings) {
    dict([&] {
      field("PYTORCH_CUDA_ALLOC_CONF", settings.text);
      field("max_split_size", written_split_size(settings));
      key("garbage_collection_threshold");
      out_.real(settings.garbage_collection_threshold);
      field("expandable_segments", settings.expandable_segments);
      field("pinned_num_register_threads", settings.pinned_num_register_threads);
      field("release_lock_on_cudamalloc", settings.release_lock_on_cudamalloc);
      field("pinned_use_cuda_host_register", settings.pinned_use_cuda_host_register);
      field("graph_capture_record_stream_reuse", settings.graph_capture_record_stream_reuse);
      key("roundup_power2_divisions");
      dict([&] {
        for (std::size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i) {
          out_.text(std::to_string(Bytes{1} << i));
          out_.integer(as_signed(settings.roundup_power2_divisions[i]));
        }
      });
    });
  }

  void write_annotation(const SnapshotAnnotation& annotation) {
    dict([&] {
      key("stage");
      out_.text(annotation.start ? "START" : "END");
      key("name");
      out_.text(annotation.name);
      field("device", annotation.device);
      field("time_us", annotation.time_us);
    });
  }

  PickleWriter out_;
  const TorchSnapshot& around_;
  std::size_t devices_left_;
  bool several_devices_;
  bool device_open_ = false;
  std::uint64_t entries_ = 0;
  TraceEntry first_;
  std::map<std::string, MemoPlace, std::less<>> names_;
  std::vector<std::optional<MemoPlace>> frames_;  ///< by place in `around`
  std::vector<std::optional<MemoPlace>> stacks_;
};

SnapshotWriter::SnapshotWriter(ByteSink sink, const TorchSnapshot& around, std::size_t devices)
    : impl_(std::make_unique<Impl>(std::move(sink), around, devices)) {}
SnapshotWriter::~SnapshotWriter() = default;
void SnapshotWriter::begin_device() { impl_->begin_device(); }
void SnapshotWriter::add(const TraceEntry& entry) { impl_->add(entry); }
void SnapshotWriter::finish(const AllocatorSettings& settings,
                            std::span<const SnapshotAnnotation> annotations) {
  impl_->finish(settings, annotations.size(), [&](std::size_t i) { return annotations[i]; });
}
void SnapshotWriter::finish(const AllocatorSettings& settings, std::size_t count,
                            const std::function<SnapshotAnnotation(std::size_t)>& annotation) {
  impl_->finish(settings, count, annotation);
}

void write_torch_snapshot(const TorchSnapshot& snapshot, const ByteSink& sink,
                          std::span<const SnapshotAnnotation> annotations) {
  SnapshotWriter writer{sink, snapshot, snapshot.traces.size()};
  for (const std::vector<TraceEntry>& trace : snapshot.traces) {
    writer.begin_device();
    for (const TraceEntry& entry : trace) writer.add(entry);
  }
  AllocatorSettings settings = allocator_settings_of(snapshot);
  settings.text = snapshot.settings.conf.value_or("");
  writer.finish(settings, annotations);
}

TorchSnapshot snapshot_of(const CachingAllocator& allocator, int device,
                          std::map<PoolId, SnapshotPool> pools) {
  TorchSnapshot snapshot;
  for (const SegmentView& segment : allocator.segments()) {
    if (segment.pool == kDefaultPool) continue;
    pools.try_emplace(segment.pool, SnapshotPool{0, static_cast<std::uint64_t>(segment.pool)});
  }
  snapshot.segments = snapshot_segments(allocator, device, pools);
  for (const auto& [id, pool] : pools) snapshot.pools.push_back(pool);
  const AllocatorSettings& settings = allocator.settings();
  snapshot.settings.conf = settings.text;
  snapshot.settings.max_split_size = written_split_size(settings);
  snapshot.settings.garbage_collection_threshold = settings.garbage_collection_threshold;
  snapshot.settings.expandable_segments = settings.expandable_segments;
  snapshot.settings.roundup_power2_divisions.assign(settings.roundup_power2_divisions.begin(),
                                                    settings.roundup_power2_divisions.end());
  return snapshot;
}

}  // namespace vramlab
