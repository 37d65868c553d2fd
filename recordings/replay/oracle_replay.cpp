#include "recordings/replay/oracle_replay.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "recordings/logs/oom_message.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {

std::string describe_state(const CachingAllocator& allocator) {
  std::size_t free_blocks = 0;
  Bytes largest = 0;
  std::size_t pending = 0;
  const auto segments = allocator.segments();
  for (const SegmentView& segment : segments) {
    for (const BlockView& block : segment.blocks) {
      if (block.state == BlockState::pending_free) ++pending;
      if (block.state != BlockState::inactive) continue;
      ++free_blocks;
      largest = std::max(largest, block.size);
    }
  }
  const MemoryStats& stats = allocator.stats();
  const auto bytes = [](const StatArray& stat) {
    return format_bytes(static_cast<Bytes>(stat.all().current));
  };
  std::string text = "reserved " + bytes(stats.reserved_bytes) + " in " + std::to_string(segments.size()) +
                     " segments, allocated " + bytes(stats.allocated_bytes) + " in " +
                     std::to_string(stats.allocation.all().current) + " blocks, " +
                     std::to_string(free_blocks) + " free blocks, the largest of " + format_bytes(largest);
  if (pending > 0) text += ", " + std::to_string(pending) + " waiting for another stream";
  if (allocator.limit()) text += ", limit " + format_bytes(*allocator.limit());
  return text;
}

namespace {

constexpr std::int64_t kDefaultPools = -1;
constexpr Bytes kGeneratorBlock = 8;  // seed and offset of the random generator (R7.1)

// Where an allocation failed with less free on the device than it tried to get, the device was the limit:
// what this process could have is then free + reserved. The message gives it to 0.01 MiB; the driver counts
// in steps of 64 KiB (R10.3).
std::optional<Bytes> usable_from(const OracleLog& log) {
  const auto key = std::find(log.keys.begin(), log.keys.end(), "reserved_bytes.all.current");
  if (key == log.keys.end()) return std::nullopt;
  const auto column = static_cast<std::size_t>(key - log.keys.begin());
  for (const OracleOperation& op : log.operations) {
    if (op.text.empty() || op.counters.empty()) continue;
    const auto free = parse_oom_message(op.text).free;
    if (!free || !free->text.ends_with(" MiB")) continue;
    const Bytes steps = (free->bytes + 32_KiB) / 64_KiB;
    return steps * 64_KiB + static_cast<Bytes>(op.counters[column]);
  }
  return std::nullopt;
}

}  // namespace

OracleReplay::OracleReplay(const OracleLog& log) : log_(log), live_(log) {
  AllocatorOptions options;
  options.settings = parse_allocator_settings(log.conf);
  if (log.fraction < 1) {
    options.limit = static_cast<Bytes>(log.fraction * static_cast<double>(log.total_memory));  // R9.1
  }
  const auto usable = usable_from(log);
  device_limited_ = usable.has_value();
  segments_ = std::make_unique<RecordedSegments>(log.total_memory, usable);
  if (options.settings.backend == AllocatorBackend::cuda_malloc_async) {
    async_ = std::make_unique<AsyncAllocator>(*segments_, options.limit);
    allocator_ = async_.get();
    result_.approximate = {"addresses"};
  } else {
    caching_ = std::make_unique<CachingAllocator>(*segments_, std::move(options));
    allocator_ = caching_.get();
  }

  const std::vector<std::string>& names = stat_names();
  for (const std::string& key : log.keys) {
    const auto name = std::find(names.begin(), names.end(), key);
    if (name == names.end())
      throw InputError("/keys", "\"" + key + "\" is not a counter." + suggest_name(key, names));
    counter_columns_.push_back(static_cast<std::size_t>(name - names.begin()));
  }
}

const ReplayResult& OracleReplay::run() {
  while (step()) {
  }
  return result_;
}

bool OracleReplay::step() {
  if (next_ == log_.operations.size()) return false;
  const OracleOperation& op = log_.operations[next_];
  if (op.kind == "stopped") {  // the request that raised the error is not in the log
    warn(
        "the recording ends where PyTorch raised an error that is not an OOM: a piece of a segment was given "
        "to "
        "cudaFree, as happens after max_split_size_mb was lowered or expandable segments were switched on "
        "(R4.7)");
    ++next_;
    return step();
  }
  perform(op);
  check_counters(op);
  if (caching_ && !orphan_reported_ && caching_->has_orphaned_pool()) {
    orphan_reported_ = true;
    warn("from operation " + std::to_string(next_) +
         " on PyTorch's own state is not defined: it dropped a private "
         "pool whose memory was still in use (R7.9). What follows is kept as an orphan here");
  }
  ++result_.operations;
  ++next_;
  return true;
}

ReplayResult replay_oracle_log(const OracleLog& log) { return OracleReplay(log).run(); }

void OracleReplay::perform(const OracleOperation& op) {
  const std::string& kind = op.kind;
  if (kind == "init") {
    // Pool logs begin after one small tensor was made, freed and released.
    if (std::any_of(op.counters.begin(), op.counters.end(), [](std::int64_t value) { return value != 0; })) {
      allocator_->free(allocator_->allocate(4, kDefaultStream)->block);
      allocator_->empty_cache();
    }
  } else if (kind == "alloc" || kind == "alloc_t" || kind == "oom" || kind == "alloc_oom") {
    check_allocation(op, allocate(op, stream_of(op)));
  } else if (kind == "free" || kind == "free_deferred") {
    free(op);
  } else if (kind == "empty_cache") {
    // The newest graph's object dies when the next one is made, just before the release (see the log's
    // format).
    if (next_is("capture_begin") && newest_graph_ && graphs_.at(*newest_graph_).reset) {
      graph_object_dies(graphs_.at(*newest_graph_));
    }
    allocator_->empty_cache();
  } else if (kind == "reset_peak") {
    allocator_->reset_peak_stats();
  } else if (async_) {
    refuse(0, "\"" + kind + "\" is not an operation of backend:cudaMallocAsync.");
  } else if (kind == "graph_alloc" || kind == "graph_alloc_oom") {
    check_allocation(op, allocate(op, graph_of(op).stream));
  } else if (kind == "pool_alloc" || kind == "pool_alloc_oom") {
    allocate_in_pool(op);
  } else if (kind == "settings") {
    caching_->set_settings(op.argument);
  } else if (kind == "pool_new") {
    new_pool(op);
  } else if (kind == "pool_del") {
    caching_->delete_mem_pool(pool_of(op));
    pools_.erase(op.tag);
  } else if (kind == "capture_begin") {
    begin_capture(op);
  } else if (kind == "capture_end") {
    caching_->end_capture(graph_of(op).pool);
  } else if (kind == "graph_del") {
    delete_graph(op);
  }
}

void OracleReplay::refuse(std::size_t field, const std::string& what) const {
  throw InputError("/ops/" + std::to_string(next_) + '/' + std::to_string(field), what);
}

PoolId OracleReplay::pool_of(const OracleOperation& op) const {
  const auto pool = pools_.find(op.tag);
  if (pool == pools_.end()) refuse(2, std::to_string(op.tag) + " is not a living MemPool.");
  return pool->second;
}

OracleReplay::Graph& OracleReplay::graph_of(const OracleOperation& op) {
  const auto graph = graphs_.find(op.tag);
  if (graph == graphs_.end()) refuse(2, std::to_string(op.tag) + " is not a graph.");
  return graph->second;
}

StreamId OracleReplay::side_stream() const {
  if (log_.streams.size() < 2) refuse(0, "a deferred free needs a second stream, and the log names none.");
  return log_.streams[1];
}

StreamId OracleReplay::stream_of(const OracleOperation& op) const {
  if (op.tag == kDefaultPools) return kDefaultStream;
  if (op.tag < 0 || static_cast<std::size_t>(op.tag) >= log_.streams.size()) {
    refuse(2, std::to_string(op.tag) + " is not an index of a stream.");
  }
  return log_.streams[static_cast<std::size_t>(op.tag)];
}

bool OracleReplay::next_is(const char* kind) const {
  return next_ + 1 < log_.operations.size() && log_.operations[next_ + 1].kind == kind;
}

// The recorded pointer is the base of a new plain segment, if the request makes one.
AllocationResult OracleReplay::allocate(const OracleOperation& op, StreamId stream) {
  if (op.pointer != 0) {
    if (async_) {
      async_->supply_address(op.pointer);
    } else {
      segments_->supply_segment(op.pointer);
    }
  }
  return allocator_->allocate(op.bytes, stream);
}

void OracleReplay::allocate_in_pool(const OracleOperation& op) {
  const PoolId pool = pool_of(op);
  caching_->enter_mem_pool(pool);
  const AllocationResult result = allocate(op, kDefaultStream);
  caching_->leave_mem_pool(pool);
  check_allocation(op, result);
}

void OracleReplay::check_allocation(const OracleOperation& op, const AllocationResult& result) {
  const bool recorded_oom = !op.text.empty();
  if (result && !recorded_oom) {
    check_address(op, *result);
    live_.put(op.block, result->block);
  } else if (!result && recorded_oom) {
    check_oom_text(op, result.oom());
  } else if (recorded_oom) {
    ++result_.oom_texts_checked;
    ++result_.oom_text_mismatches;
    diverge("outcome", "out of memory", "allocated");
    allocator_->free(result->block);
  } else {
    ++result_.addresses_checked;
    ++result_.address_mismatches;
    diverge("outcome", "allocated", "out of memory");
  }
  segments_->discard_supplied();
}

void OracleReplay::check_address(const OracleOperation& op, const Allocation& allocation) {
  if (async_) {
    ++result_.addresses_given;
    return;
  }
  Address address = allocation.address;
  bool given = segments_->supplied() == 0;
  const AllocatorState& state = caching_->state();
  const Block& block = state.blocks[static_cast<BlockIndex>(allocation.block)];
  const Address segment = state.segments[block.segment].base;
  if (!given && segments_->is_symbolic(segment)) {
    const Bytes offset = address - segment;
    const auto [base, first] = symbolic_bases_.try_emplace(segment, op.pointer - offset);
    given = first;
    address = base->second + offset;
  }
  if (given) {
    ++result_.addresses_given;
    return;
  }
  ++result_.addresses_checked;
  if (address != op.pointer) {
    ++result_.address_mismatches;
    diverge("address", std::to_string(op.pointer), std::to_string(address));
  }
}

void OracleReplay::check_oom_text(const OracleOperation& op, const OutOfMemory& oom) {
  ++result_.oom_texts_checked;
  if (!check_figures(op, oom)) ++result_.oom_text_mismatches;
}

bool OracleReplay::check_figures(const OracleOperation& op, const OutOfMemory& oom) {
  const std::string message = async_ ? async_oom_message(oom) : oom_message(oom);
  auto differences = compare_oom_figures(op.text, message);
  if (device_limited_) {
    const auto recorded = parse_oom_message(op.text).free;
    const auto simulated = parse_oom_message(message).free;
    if (recorded && simulated && recorded->text != simulated->text) {
      differences.push_back({"device free", recorded->text, simulated->text});
    }
  }
  for (const OomFigureDifference& difference : differences) {
    diverge(difference.figure, difference.recorded, difference.simulated);
  }
  return differences.empty();
}

void OracleReplay::check_counters(const OracleOperation& op) {
  const std::vector<std::int64_t> values = stat_values(allocator_->stats());
  std::vector<std::int64_t> simulated;
  for (const std::size_t column : counter_columns_) simulated.push_back(values[column]);

  for (std::size_t i = 0; i < simulated.size(); ++i) {
    ++result_.counters_checked;
    if (simulated[i] != op.counters[i]) {
      ++result_.counter_mismatches;
      diverge(log_.keys[i], std::to_string(op.counters[i]), std::to_string(simulated[i]));
    }
    if (counters_before_.empty() || !log_.keys[i].starts_with("num_device_")) continue;
    const std::int64_t recorded_change = op.counters[i] - recorded_before_[i];
    const std::int64_t simulated_change = simulated[i] - counters_before_[i];
    result_.segment_events_recorded += static_cast<std::uint64_t>(recorded_change);
    result_.segment_events_matched += static_cast<std::uint64_t>(std::min(recorded_change, simulated_change));
  }
  counters_before_ = std::move(simulated);
  recorded_before_ = op.counters;
}

void OracleReplay::free(const OracleOperation& op) {
  const auto block = live_.take(op.block);
  if (!block) return;  // its allocation failed in the simulation
  const bool deferred = op.kind == "free_deferred" && caching_;
  if (deferred) caching_->record_stream(*block, side_stream());
  allocator_->free(*block);
  if (deferred) caching_->finish_events();
}

void OracleReplay::new_pool(const OracleOperation& op) {
  pools_[op.tag] = caching_->new_mem_pool({.use_on_oom = op.argument == "use_on_oom",
                                           .no_split = op.argument == "no_split",
                                           .custom_allocator = false});
}

// R7.1: the generator's two blocks are made by the first of the living graphs, on its stream, in the default
// pools; no operation lists them.
void OracleReplay::begin_capture(const OracleOperation& op) {
  const bool registered = std::any_of(graphs_.begin(), graphs_.end(),
                                      [](const auto& graph) { return graph.second.object_alive; });
  if (!registered) {
    for (int i = 0; i < 2; ++i) {
      const AllocationResult block = allocator_->allocate(kGeneratorBlock, op.pointer);
      if (block) generator_blocks_.push_back(block->block);
    }
  }
  graphs_[op.tag] = {caching_->begin_capture(op.pointer), op.pointer, false, true};
  newest_graph_ = op.tag;
}

void OracleReplay::delete_graph(const OracleOperation& op) {
  Graph& graph = graph_of(op);
  caching_->release_graph(graph.pool);
  graph.reset = true;
  if (op.tag != newest_graph_) graph_object_dies(graph);
}

void OracleReplay::graph_object_dies(Graph& graph) {
  graph.object_alive = false;
  const bool any = std::any_of(graphs_.begin(), graphs_.end(),
                               [](const auto& other) { return other.second.object_alive; });
  if (any) return;
  for (const BlockId block : std::exchange(generator_blocks_, {})) allocator_->free(block);
}

void OracleReplay::diverge(const std::string& what, const std::string& recorded,
                           const std::string& simulated) {
  if (result_.first_divergence) return;
  result_.first_divergence = Divergence{next_,     log_.operations[next_].kind,
                                        what,      recorded,
                                        simulated, caching_ ? describe_state(*caching_) : ""};
}

void OracleReplay::warn(const std::string& warning) { result_.warnings.push_back(warning); }

}  // namespace vramlab
