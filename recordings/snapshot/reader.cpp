#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "recordings/pickle/pickle.hpp"
#include "recordings/snapshot/snapshot_keys.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {
namespace {

using namespace snapshot_reading;

using Action = TraceEntry::Action;
using State = SnapshotBlock::State;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::size_t kRoundupClasses = 16;

// Newer versions have further actions.
Action action_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(Action::other); ++i) {
    if (name == name_of(static_cast<Action>(i))) return static_cast<Action>(i);
  }
  return Action::other;
}

/// Turns the values of a pickle into a snapshot (R11.1 to R11.8).
class SnapshotReader : public PickleListTaker {
 public:
  /// `document`, which may still be empty, and `name`, which stands for the file in errors, must outlive the
  /// reader.
  SnapshotReader(const PickleDocument& document, const std::string& name, const SnapshotReadOptions& options)
      : document_(document), name_(name), options_(options) {
    stack_ids_[{}] = 0;
    snapshot_.torch = options.torch;
  }

  // Trace entries are taken while the pickle is read, and need not be kept.
  [[nodiscard]] std::string_view key() const override { return "device_traces"; }
  void take(PickleValue list, std::size_t place, std::span<const PickleValue> elements) override {
    if (elements.empty()) return;
    TraceEntries& entries = taken_[list.index()];
    place_ = {{known("device_traces"), 0}, {0, place}, {0, 0}};
    for (const PickleValue element : elements) {
      place_.back().index = entries.size();
      const TraceEntry entry = read_entry(element);
      entries.push_back(entry);
      if (options_.watch) options_.watch(place, entry);
    }
    place_.clear();
  }

  /// The rest, when all has been read. Throws InputError naming the key. To be called once.
  TorchSnapshot read() {
    const PickleValue root = document_.root();
    if (root.kind() == PickleValue::Kind::list) {
      read_segments(root);
      return finished();
    }
    bool is_snapshot = false;
    if (root.kind() == PickleValue::Kind::dict) {
      each_field(root, [&](SnapshotKey field, PickleValue value) {
        if (field == known("segments") || field == known("device_traces")) is_snapshot = true;
        if (field == known("segments")) read_segments(value);
        if (field == known("device_traces")) read_traces(value);
        if (field == known("allocator_settings")) unless_bad([&] { read_settings(value); });
        if (field == known("external_annotations")) unless_bad([&] { read_annotations(value); });
        if (field == known("made_without_card")) snapshot_.made = parse_made_without_card(text(value), name_);
        if (field == known("host_segments")) unless_bad([&] { read_host_segments(value); });
        if (field == known("host_traces")) unless_bad([&] { read_host_traces(value); });
      });
    }
    if (!is_snapshot) fail("is a pickle, but no memory snapshot: it has neither segments nor device_traces.");
    return finished();
  }

 private:
  TorchSnapshot finished() {
    for (const auto& [what, left_out] : left_out_) {
      const std::string more =
          left_out.count == 1 ? "" : ' ' + std::to_string(left_out.count - 1) + " more are like it.";
      snapshot_.warnings.push_back(left_out.first + " It is left out, and the replay goes on without it." +
                                   more);
    }
    for (const auto& [action, count] : unknown_actions_) {
      snapshot_.warnings.push_back(
          name_ + ": " + std::to_string(count) + " entries \"" + action +
          "\" of the history are of an action that is not known here. They are skipped.");
    }
    return std::move(snapshot_);
  }

  // What no replay needs refuses no file: where it cannot be read, it is left out, with a warning.
  template <class Read>
  void unless_bad(const Read& read) {
    const std::size_t depth = place_.size();
    try {
      read();
    } catch (const InputError& error) {
      if (is_repeated()) throw;
      const Problem& problem = error.problems().front();
      LeftOut& left_out = left_out_[{kKeys[place_.back().field], problem.what}];
      if (++left_out.count == 1) left_out.first = problem.where + ": " + problem.what;
      place_.resize(depth);
    }
  }

  [[nodiscard]] bool is_repeated() const { return visits_ > 2 * document_.element_count(); }

  // --- Values, with the place of the one being read ---

  [[noreturn]] void fail(const std::string& what) const {
    std::string place;
    for (const Step& step : place_) {
      place += '/' + (step.field == 0 ? std::to_string(step.index) : std::string(kKeys[step.field]));
    }
    throw InputError(place.empty() ? name_ : name_ + ": " + place, what);
  }

  // A snapshot holds each of its parts once. A small file may hold one part in very many places, and would
  // take for ever.
  std::span<const PickleValue> items(PickleValue container) {
    const auto items = document_.items(container);
    visits_ += items.size();
    if (is_repeated()) fail("the same data is repeated too often.");
    return items;
  }

  template <class Visit>
  void each_field(PickleValue dict, const Visit& visit) {
    if (dict.kind() != PickleValue::Kind::dict) fail("is not a dict.");
    const auto fields = items(dict);
    place_.push_back({});
    for (std::size_t i = 0; i < fields.size(); i += 2) {
      const SnapshotKey field = field_of(fields[i]);
      if (field == 0) continue;
      place_.back().field = field;
      visit(field, fields[i + 1]);
    }
    place_.pop_back();
  }

  SnapshotKey field_of(PickleValue key) {
    if (key.kind() != PickleValue::Kind::text) return 0;
    while (fields_.size() <= key.index()) fields_.push_back(field_named(document_.text_at(fields_.size())));
    return fields_[key.index()];
  }

  template <class Visit>
  void each_element(PickleValue list, const Visit& visit) {
    if (list.kind() != PickleValue::Kind::list && list.kind() != PickleValue::Kind::tuple)
      fail("is not a list.");
    const auto elements = items(list);
    place_.push_back({});
    for (std::size_t i = 0; i < elements.size(); ++i) {
      place_.back().index = i;
      visit(elements[i]);
    }
    place_.pop_back();
  }

  [[nodiscard]] std::int64_t number(PickleValue value) const {
    const auto number = document_.integer(value);
    if (!number)
      fail(value.kind() == PickleValue::Kind::huge ? "does not fit 64 bits." : "is not a whole number.");
    return *number;
  }

  [[nodiscard]] Bytes bytes(PickleValue value) const {
    const std::int64_t size = number(value);
    if (size < 0 || size > kMostBytes) {
      fail(std::to_string(size) + " is not a number of bytes from 0 to 2^60.");
    }
    return static_cast<Bytes>(size);
  }

  // C++ writers store addresses as signed numbers (R11.10).
  [[nodiscard]] Address address(PickleValue value) const { return static_cast<Address>(number(value)); }

  [[nodiscard]] bool truth(PickleValue value) const {
    if (value.kind() == PickleValue::Kind::integer) return number(value) != 0;
    if (value.kind() != PickleValue::Kind::boolean) fail("is neither True nor False.");
    return value.is_truth();
  }

  [[nodiscard]] std::string_view text(PickleValue value) const {
    const auto text = document_.text(value);
    if (!text) fail("is not text.");
    return *text;
  }

  // --- Segments ---

  void read_segments(PickleValue list) {
    each_element(list, [&](PickleValue segment) { snapshot_.segments.push_back(read_segment(segment)); });
  }

  SnapshotSegment read_segment(PickleValue dict) {
    SnapshotSegment segment;
    PickleValue blocks;
    std::optional<Bytes> allocated, active, requested;
    const auto take_sum = [&](PickleValue value, std::optional<Bytes>& sum) {
      unless_bad([&] { sum = bytes(value); });
    };
    each_field(dict, [&](SnapshotKey field, PickleValue value) {
      if (field == known("device")) segment.device = static_cast<int>(bytes(value) & 0xFFFF);
      if (field == known("address")) segment.address = address(value);
      if (field == known("total_size")) segment.total_size = bytes(value);
      if (field == known("allocated_size")) take_sum(value, allocated);
      if (field == known("active_size")) take_sum(value, active);
      if (field == known("requested_size")) take_sum(value, requested);
      if (field == known("stream")) segment.stream = static_cast<StreamId>(number(value));
      if (field == known("segment_type")) segment.large = is_large(text(value));
      if (field == known("segment_pool_id")) segment.pool = read_pool(value);
      if (field == known("is_expandable")) segment.expandable = truth(value);
      if (field == known("frames")) segment.stack = read_stack(value);
      if (field == known("blocks")) blocks = value;
    });
    if (blocks != PickleValue{}) read_blocks(blocks, segment);
    add_up(segment);
    segment.allocated_size = allocated.value_or(segment.allocated_size);
    segment.active_size = active.value_or(segment.active_size);
    segment.requested_size = requested.value_or(segment.requested_size);
    return segment;
  }

  void read_blocks(PickleValue blocks, SnapshotSegment& segment) {
    place_.push_back({known("blocks"), 0});
    Address after_last = segment.address;
    each_element(blocks, [&](PickleValue block) {
      segment.blocks.push_back(read_block(block, after_last));
      after_last = segment.blocks.back().address + segment.blocks.back().size;
    });
    place_.pop_back();
  }

  // The sums, where a file lacks them.
  static void add_up(SnapshotSegment& segment) {
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == State::active_allocated) segment.allocated_size += block.size;
      if (block.state == State::inactive) continue;
      segment.active_size += block.size;
      segment.requested_size += block.requested;
    }
  }

  [[nodiscard]] bool is_large(std::string_view type) const {
    if (type != "large" && type != "small") fail("is neither \"small\" nor \"large\".");
    return type == "large";
  }

  SnapshotBlock read_block(PickleValue dict, Address after_last) {
    SnapshotBlock block;
    block.address = after_last;
    each_field(dict, [&](SnapshotKey field, PickleValue value) {
      if (field == known("address")) block.address = address(value);
      if (field == known("size")) block.size = bytes(value);
      if (field == known("requested_size")) block.requested = bytes(value);
      if (field == known("state")) block.state = state_named(text(value));
      if (field == known("frames")) block.stack = read_stack(value);
      if (field == known("history")) read_history(value, block);
    });
    return block;
  }

  [[nodiscard]] State state_named(std::string_view name) const {
    for (const State state : {State::active_allocated, State::active_pending_free, State::inactive}) {
      if (name == name_of(state)) return state;
    }
    if (name == "active_awaiting_free") return State::active_pending_free;  // in PyTorch's documentation only
    fail('"' + std::string(name) + "\" is not a state of a block.");
  }

  // Files of torch 2.0 and older: the latest allocation comes first.
  void read_history(PickleValue list, SnapshotBlock& block) {
    bool first = true;
    each_element(list, [&](PickleValue entry) {
      if (!std::exchange(first, false)) return;
      each_field(entry, [&](SnapshotKey field, PickleValue value) {
        if (field == known("real_size")) block.requested = bytes(value);
        if (field == known("frames")) block.stack = read_stack(value);
      });
    });
  }

  SnapshotPool read_pool(PickleValue pair) {
    if (pair == PickleValue{}) return {};  // None
    std::vector<std::uint64_t> numbers;
    each_element(pair,
                 [&](PickleValue value) { numbers.push_back(static_cast<std::uint64_t>(number(value))); });
    if (numbers.size() != 2) fail("is not a pair of numbers.");
    const SnapshotPool pool{numbers[0], numbers[1]};
    pool_number(pool);
    return pool;
  }

  std::int32_t pool_number(const SnapshotPool& pool) {
    const auto known = std::find(snapshot_.pools.begin(), snapshot_.pools.end(), pool);
    const auto number = static_cast<std::int32_t>(known - snapshot_.pools.begin());
    if (known == snapshot_.pools.end()) snapshot_.pools.push_back(pool);
    return number;
  }

  // --- Traces ---

  // A list stands in one place, or its entries would be there more than once.
  void read_traces(PickleValue list) {
    each_element(list, [&](PickleValue device) {
      std::vector<TraceEntry> trace = taken_entries(device);
      each_element(device, [&](PickleValue entry) {
        trace.push_back(read_entry(entry));
        if (options_.watch) options_.watch(snapshot_.traces.size(), trace.back());
      });
      snapshot_.traces.push_back(std::move(trace));
    });
  }

  std::vector<TraceEntry> taken_entries(PickleValue list) {
    const auto taken = list.kind() == PickleValue::Kind::list ? taken_.find(list.index()) : taken_.end();
    if (taken == taken_.end()) return {};
    if (taken->second.size() == 0) fail("the same data is repeated too often.");
    return taken->second.take();
  }

  Action action_of(PickleValue name) {
    const std::string_view word = text(name);
    if (name.index() >= actions_.size()) actions_.resize(document_.text_count());
    std::optional<Action>& action = actions_[name.index()];
    if (!action) action = action_named(word);
    if (*action == Action::other) ++unknown_actions_[std::string(word)];
    return *action;
  }

  TraceEntry read_entry(PickleValue dict) {
    TraceEntry entry;
    bool has_action = false;
    each_field(dict, [&](SnapshotKey field, PickleValue value) {
      if (field == known("action")) {
        entry.action = action_of(value);
        has_action = true;
      }
      if (field == known("addr") || field == known("device_free")) entry.address = address(value);
      if (field == known("size")) entry.size = bytes(value);
      if (field == known("stream")) entry.stream = static_cast<StreamId>(number(value));
      if (field == known("time_us")) {
        entry.time_us = last_time_us_;  // of the entry before, where this one's is bad
        unless_bad([&] { entry.time_us = number(value); });
        last_time_us_ = entry.time_us;
      }
      if (field == known("pool_id")) entry.pool = pool_number(read_pool(value));
      if (field == known("frames")) entry.stack = read_stack(value);
      if (field == known("forward_frames") && value.is_container()) ++snapshot_.forward_stacks;
      if (field == known("user_metadata")) unless_bad([&] { read_label(value, "", entry); });
      if (field == known("compile_context") && entry.label == 0)
        unless_bad([&] { read_label(value, "torch.compile ", entry); });
    });
    if (!has_action) fail("has no action.");
    return entry;
  }

  // PyTorch writes "" or "N/A" where there is none.
  void read_label(PickleValue value, const std::string& before, TraceEntry& entry) {
    if (value == PickleValue{}) return;
    const std::string_view said = text(value);
    if (said.empty() || said == "N/A") return;
    const auto [known, is_new] =
        label_ids_.emplace(before + std::string(said), static_cast<std::uint32_t>(snapshot_.labels.size()));
    if (is_new) snapshot_.labels.push_back(known->first);
    entry.label = known->second;
  }

  void read_annotations(PickleValue list) {
    each_element(list, [&](PickleValue annotation) {
      unless_bad([&] { snapshot_.annotations.push_back(read_annotation(annotation)); });
    });
  }

  SnapshotAnnotation read_annotation(PickleValue dict) {
    SnapshotAnnotation annotation;
    each_field(dict, [&](SnapshotKey field, PickleValue value) {
      if (field == known("name")) annotation.name = text(value);
      if (field == known("stage")) annotation.start = text(value) != "END";
      if (field == known("device")) annotation.device = static_cast<int>(number(value) & 0xFFFF);
      if (field == known("time_us")) annotation.time_us = number(value);
    });
    return annotation;
  }

  // --- Stacks: shared lists and dicts are read once, equal ones become one ---

  StackId read_stack(PickleValue list) {
    StackId stack = 0;
    if (options_.stacks && list.is_container()) unless_bad([&] { stack = read_frames(list); });
    return stack;
  }

  StackId read_frames(PickleValue list) {
    if (stacks_read_.size() <= list.index()) stacks_read_.resize(document_.container_count());
    std::uint32_t& read = stacks_read_[list.index()];
    if (read != 0) return read - 1;
    std::vector<std::uint32_t> stack;
    each_element(list, [&](PickleValue frame) { unless_bad([&] { stack.push_back(read_frame(frame)); }); });
    const auto [known, is_new] =
        stack_ids_.emplace(std::move(stack), static_cast<StackId>(snapshot_.stacks.size()));
    if (is_new) snapshot_.stacks.push_back(known->first);
    read = known->second + 1;
    return known->second;
  }

  std::uint32_t read_frame(PickleValue dict) {
    if (!dict.is_container()) fail("is not a dict.");
    if (frames_read_.size() <= dict.index()) frames_read_.resize(document_.container_count());
    std::uint32_t& read = frames_read_[dict.index()];
    if (read != 0) return read - 1;
    StackFrame frame;
    each_field(dict, [&](SnapshotKey field, PickleValue value) {
      if (field == known("name")) unless_bad([&] { frame.function = text(value); });
      if (field == known("filename")) unless_bad([&] { frame.file = text(value); });
      if (field == known("line")) unless_bad([&] { frame.line = number(value); });
    });
    const auto [known, is_new] =
        frame_ids_.emplace(frame, static_cast<std::uint32_t>(snapshot_.frames.size()));
    if (is_new) snapshot_.frames.push_back(std::move(frame));
    read = known->second + 1;
    return known->second;
  }

  // --- Pinned memory of the host: only what there is of it. Its dicts are read as far as they are those of
  // segments. ---

  void read_host_segments(PickleValue list) {
    SnapshotHost& host = host_memory();
    each_element(list, [&](PickleValue segment) {
      unless_bad([&] {
        Bytes total = 0;
        std::optional<Bytes> in_use;
        Bytes in_blocks = 0;
        each_field(segment, [&](SnapshotKey field, PickleValue value) {
          if (field == known("total_size")) total = bytes(value);
          if (field == known("allocated_size")) in_use = bytes(value);
          if (field == known("blocks")) in_blocks = in_use_of(value);
        });
        ++host.segments;
        host.bytes += total;
        host.in_use += in_use.value_or(in_blocks);
      });
    });
  }

  Bytes in_use_of(PickleValue blocks) {
    Bytes sum = 0;
    each_element(blocks, [&](PickleValue block) {
      Bytes size = 0;
      bool held = false;
      each_field(block, [&](SnapshotKey field, PickleValue value) {
        if (field == known("size")) size = bytes(value);
        if (field == known("state")) held = text(value) == name_of(State::active_allocated);
      });
      if (held) sum += size;
    });
    return sum;
  }

  // Entries, or a list of them for each device.
  void read_host_traces(PickleValue list) {
    SnapshotHost& host = host_memory();
    each_element(list, [&](PickleValue one) {
      host.entries += one.kind() == PickleValue::Kind::list ? items(one).size() : 1;
    });
  }

  SnapshotHost& host_memory() { return snapshot_.host ? *snapshot_.host : snapshot_.host.emplace(); }

  // --- Settings ---

  void read_settings(PickleValue dict) {
    SnapshotSettings& settings = snapshot_.settings;
    each_field(dict, [&](SnapshotKey field, PickleValue value) {
      if (value == PickleValue{}) return;  // None
      unless_bad([&] {
        if (field == known("PYTORCH_CUDA_ALLOC_CONF")) settings.conf = text(value);
        if (field == known("PYTORCH_ALLOC_CONF") && !settings.conf) settings.conf = text(value);
        if (field == known("trace_alloc_overflowed")) settings.trace_overflowed = truth(value);
        if (field == known("trace_alloc_max_entries")) settings.trace_max_entries = number(value);
        if (field == known("max_split_size")) settings.max_split_size = number(value);
        if (field == known("garbage_collection_threshold")) {
          settings.garbage_collection_threshold = document_.real(value);
          if (!settings.garbage_collection_threshold) fail("is not a number.");
        }
        if (field == known("expandable_segments")) settings.expandable_segments = truth(value);
        if (field == known("roundup_power2_divisions")) read_roundup(value);
      });
    });
  }

  // Keys are "1", "2", "4" and so on, up to "32768" (R11.8).
  void read_roundup(PickleValue dict) {
    if (dict.kind() != PickleValue::Kind::dict) fail("is not a dict.");
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

  const PickleDocument& document_;
  const std::string& name_;
  SnapshotReadOptions options_;
  std::size_t visits_ = 0;
  TorchSnapshot snapshot_;
  struct Step {
    SnapshotKey field = 0;  ///< 0: an element of a list
    std::size_t index = 0;
  };
  std::vector<Step> place_;
  std::vector<SnapshotKey> fields_;              ///< by text
  std::vector<std::optional<Action>> actions_;   ///< by text, where it was looked up
  std::map<std::uint32_t, TraceEntries> taken_;  ///< by number of the list
  std::vector<std::uint32_t> stacks_read_;  ///< by container: id of the stack + 1; shared lists are read once
  std::vector<std::uint32_t> frames_read_;  ///< by container: number of the frame + 1
  std::map<std::vector<std::uint32_t>, StackId> stack_ids_;
  std::map<StackFrame, std::uint32_t> frame_ids_;
  std::map<std::string, std::uint32_t, std::less<>> label_ids_;
  struct LeftOut {
    std::string first;
    std::size_t count = 0;
  };
  std::int64_t last_time_us_ = 0;
  std::map<std::pair<std::string_view, std::string>, LeftOut> left_out_;  ///< by field and what is wrong
  std::map<std::string, std::size_t> unknown_actions_;
};

}  // namespace

TorchSnapshot parse_torch_snapshot(std::string_view pickle, const std::string& name,
                                   const SnapshotReadOptions& options) {
  PickleDocument document;
  SnapshotReader reader(document, name, options);
  read_pickle(pickle, name, document, reader);
  return reader.read();
}

TorchSnapshot read_torch_snapshot(const std::filesystem::path& file, const SnapshotReadOptions& options) {
  InputFile in(file);
  return read_torch_snapshot(in, options);
}

TorchSnapshot read_torch_snapshot(InputFile& in, const SnapshotReadOptions& options) {
  const std::string name = in.name();
  PickleDocument document(true);
  SnapshotReader reader(document, name, options);
  read_pickle([&in](char* place, std::size_t size) { return in.read(place, size); }, name, document, reader);
  return reader.read();
}

}  // namespace vramlab
