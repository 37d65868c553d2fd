#include "recordings/snapshot/writer.hpp"

#include <algorithm>
#include <optional>
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
  TraceEntry entry;
  entry.address = event.address;
  entry.size = event.size;
  entry.stream = event.stream;
  entry.time_us = time_us;
  entry.stack = stack;
  entry.action = static_cast<TraceEntry::Action>(event.action);
  return entry;
}

HistoryRecorder::HistoryRecorder(std::size_t max_entries)
    : max_entries_(std::max<std::size_t>(max_entries, 1)) {}

void HistoryRecorder::on_event(const AllocatorEvent& event) {
  const TraceEntry entry = trace_entry_of(event, time_us_, stack_);
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

const char* name_of(SnapshotBlock::State state) {
  switch (state) {
    case SnapshotBlock::State::active_allocated:
      return "active_allocated";
    case SnapshotBlock::State::active_pending_free:
      return "active_pending_free";
    case SnapshotBlock::State::inactive:
      return "inactive";
  }
  return "";
}

// Python's integers are signed; no address or size reaches 2^63.
std::int64_t as_signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

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

  void finish(const AllocatorSettings& settings, std::span<const SnapshotAnnotation> annotations) {
    while (devices_left_ > 0) begin_device();
    end_device();
    if (several_devices_ && device_open_) out_.appends();
    if (!several_devices_) out_.append();
    key("allocator_settings");
    write_settings(settings);
    key("external_annotations");
    list(annotations, [&](const SnapshotAnnotation& annotation) { write_annotation(annotation); });
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

  void number(std::string_view name, std::uint64_t value) {
    key(name);
    out_.integer(as_signed(value));
  }

  template <class Items, class Write>
  void list(const Items& items, const Write& write) {
    out_.empty_list();
    if (items.size() == 1) {
      write(*items.begin());
      out_.append();
      return;
    }
    std::size_t n = 0;
    for (const auto& item : items) {
      if (n % PickleWriter::kBatch == 0) out_.mark();
      write(item);
      if (++n % PickleWriter::kBatch == 0 || n == items.size()) out_.appends();
    }
  }

  // One list for each stack, however often it occurs, and one for all that have none.
  void stack(StackId id) {
    if (stacks_[id]) return out_.again(*stacks_[id]);
    const std::vector<std::uint32_t>& frames = around_.stacks[id];
    stacks_[id] = out_.empty_list();
    if (frames.empty()) return;
    if (frames.size() > 1) out_.mark();
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (i > 0 && i % PickleWriter::kBatch == 0) {
        out_.appends();
        out_.mark();
      }
      frame(frames[i]);
    }
    frames.size() > 1 ? out_.appends() : out_.append();
  }

  void frame(std::uint32_t id) {
    if (frames_[id]) return out_.again(*frames_[id]);
    const StackFrame& written = around_.frames[id];
    frames_[id] = out_.empty_dict();
    out_.mark();
    key("name");
    key(written.function);
    key("filename");
    key(written.file);
    key("line");
    out_.integer(written.line);
    out_.set_items();
  }

  void write_segment(const SnapshotSegment& segment) {
    out_.empty_dict();
    out_.mark();
    key("device");
    out_.integer(segment.device);
    number("address", segment.address);
    number("total_size", segment.total_size);
    number("allocated_size", segment.allocated_size);
    number("active_size", segment.active_size);
    number("requested_size", segment.requested_size);
    number("stream", segment.stream);
    key("segment_type");
    key(segment.large ? "large" : "small");
    key("segment_pool_id");
    out_.tuple_begins();
    out_.integer(as_signed(segment.pool.first));
    out_.integer(as_signed(segment.pool.second));
    out_.tuple2();
    key("is_expandable");
    out_.boolean(segment.expandable);
    key("frames");
    stack(segment.stack);
    key("blocks");
    list(segment.blocks, [&](const SnapshotBlock& block) { write_block(block); });
    out_.set_items();
  }

  void write_block(const SnapshotBlock& block) {
    out_.empty_dict();
    out_.mark();
    number("address", block.address);
    number("size", block.size);
    number("requested_size", block.requested);
    key("state");
    key(name_of(block.state));
    key("frames");
    stack(block.stack);
    out_.set_items();
  }

  void write_entry(const TraceEntry& entry) {
    out_.empty_dict();
    out_.mark();
    key("action");
    key(vramlab::name_of(entry.action));
    number(entry.action == TraceEntry::Action::oom ? "device_free" : "addr", entry.address);
    number("size", entry.size);
    number("stream", entry.stream);
    key("time_us");
    out_.integer(entry.time_us);
    key("compile_context");
    out_.text("N/A");  // an object of its own in every entry (R11.9)
    key("user_metadata");
    key("");  // while Python has only one empty string
    if (entry.stack != 0) {
      key("frames");
      stack(entry.stack);
    }
    out_.set_items();
  }

  void write_settings(const AllocatorSettings& settings) {
    out_.empty_dict();
    out_.mark();
    key("PYTORCH_CUDA_ALLOC_CONF");
    key(settings.text);
    key("max_split_size");
    out_.integer(settings.max_split_size == kUnlimited ? -1 : as_signed(settings.max_split_size));
    key("garbage_collection_threshold");
    out_.real(settings.garbage_collection_threshold);
    flag("expandable_segments", settings.expandable_segments);
    number("pinned_num_register_threads", settings.pinned_num_register_threads);
    flag("release_lock_on_cudamalloc", settings.release_lock_on_cudamalloc);
    flag("pinned_use_cuda_host_register", settings.pinned_use_cuda_host_register);
    flag("graph_capture_record_stream_reuse", settings.graph_capture_record_stream_reuse);
    key("roundup_power2_divisions");
    out_.empty_dict();
    out_.mark();
    for (std::size_t i = 0; i < settings.roundup_power2_divisions.size(); ++i) {
      out_.text(std::to_string(Bytes{1} << i));
      out_.integer(as_signed(settings.roundup_power2_divisions[i]));
    }
    out_.set_items();
    out_.set_items();
  }

  void flag(std::string_view name, bool value) {
    key(name);
    out_.boolean(value);
  }

  void write_annotation(const SnapshotAnnotation& annotation) {
    out_.empty_dict();
    out_.mark();
    key("stage");
    out_.text(annotation.start ? "START" : "END");
    key("name");
    out_.text(annotation.name);
    key("device");
    out_.integer(annotation.device);
    key("time_us");
    out_.integer(annotation.time_us);
    out_.set_items();
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
  impl_->finish(settings, annotations);
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
  snapshot.settings.max_split_size =
      settings.max_split_size == kUnlimited ? -1 : as_signed(settings.max_split_size);
  snapshot.settings.garbage_collection_threshold = settings.garbage_collection_threshold;
  snapshot.settings.expandable_segments = settings.expandable_segments;
  snapshot.settings.roundup_power2_divisions.assign(settings.roundup_power2_divisions.begin(),
                                                    settings.roundup_power2_divisions.end());
  return snapshot;
}

}  // namespace vramlab
