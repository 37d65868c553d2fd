#include "recordings/replay/oracle_replay.hpp"

#include <algorithm>
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

using Kind = ClientAction::Kind;

// Where an allocation failed with less free on the device than it tried to get, the device was the limit:
// what this process could have is then free + reserved. The message gives it to 0.01 MiB; the driver counts
// in steps of 64 KiB (R10.3).
std::optional<Bytes> usable_from(const OracleLog& log) {
  const auto column = log.reserved_column();
  if (!column) return std::nullopt;
  for (const OracleOperation& op : log.operations) {
    if (op.text.empty() || op.counters.empty()) continue;
    const auto free = parse_oom_message(op.text).free;
    if (!free || !free->text.ends_with(" MiB")) continue;
    const Bytes steps = (free->bytes + 32_KiB) / 64_KiB;
    return steps * 64_KiB + static_cast<Bytes>(op.counters[*column]);
  }
  return std::nullopt;
}

}  // namespace

OracleReplay::OracleReplay(const OracleLog& log)
    : log_(log),
      written_(oracle_program(log)),
      blocks_(written_.program.blocks),
      pools_(written_.program.pools + 1U) {
  const auto usable = usable_from(log);
  device_limited_ = usable.has_value();
  segments_ = std::make_unique<RecordedSegments>(log.total_memory, usable);
  if (written_.program.settings.backend == AllocatorBackend::cuda_malloc_async) {
    async_ = std::make_unique<AsyncAllocator>(*segments_, log.limit());
    allocator_ = async_.get();
    result_.approximate = {"addresses"};
  } else {
    AllocatorOptions options;
    options.settings = written_.program.settings;
    options.limit = log.limit();
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
  for (; next_ < log_.operations.size(); ++next_) {
    const OracleOperation& op = log_.operations[next_];
    if (op.kind == "stopped") {  // the request that raised the error is not in the log
      warn(
          "the recording ends where PyTorch raised an error that is not an OOM: a piece of a segment was "
          "given to cudaFree, as happens after max_split_size_mb was lowered or expandable segments were "
          "switched on (R4.7)");
      continue;
    }
    for (std::size_t i = written_.first_action[next_]; i < written_.first_action[next_ + 1]; ++i) {
      perform(op, written_.program.actions[i]);
    }
    check_counters(op);
    if (caching_ && !orphan_reported_ && caching_->has_orphaned_pool()) {
      orphan_reported_ = true;
      warn("from operation " + std::to_string(next_) +
           " on PyTorch's own state is not defined: it dropped a private "
           "pool whose memory was still in use (R7.9). What follows is kept as an orphan here");
    }
    ++result_.operations;
  }
  return result_;
}

ReplayResult replay_oracle_log(const OracleLog& log) { return OracleReplay(log).run(); }

void OracleReplay::perform(const OracleOperation& op, const ClientAction& action) {
  switch (action.kind) {
    case Kind::alloc:
      return allocate(op, action);
    case Kind::free:
      if (const auto block = std::exchange(blocks_[action.block], std::nullopt)) allocator_->free(*block);
      return;
    case Kind::empty_cache:
      return allocator_->empty_cache();
    case Kind::reset_peak:
      return allocator_->reset_peak_stats();
    case Kind::record_stream:
      if (caching_ && blocks_[action.block]) caching_->record_stream(*blocks_[action.block], action.stream);
      return;
    case Kind::sync:
      if (caching_) caching_->finish_events();
      return;
    default:
      if (caching_) return perform_native(op, action);
      throw InputError("/ops/" + std::to_string(next_) + "/0",
                       "\"" + op.kind + "\" is not an operation of backend:cudaMallocAsync.");
  }
}

void OracleReplay::perform_native(const OracleOperation& op, const ClientAction& action) {
  PoolId& pool = pools_[action.pool];
  if (action.kind == Kind::settings) {
    caching_->set_settings(op.argument);
  } else if (action.kind == Kind::pool_new) {
    pool = caching_->new_mem_pool(pool_options(action));
  } else if (action.kind == Kind::capture_begin) {
    pool = caching_->begin_capture(action.stream);
  } else if (action.kind == Kind::capture_end) {
    caching_->end_capture(pool);
  } else if (op.kind == "pool_del") {
    caching_->delete_mem_pool(pool);
  } else {
    caching_->release_graph(pool);
  }
}

// The blocks that the log's own operations do not list (of `init`, and of a graph's generator) had no
// pointer recorded: nothing of them is checked.
void OracleReplay::allocate(const OracleOperation& op, const ClientAction& action) {
  const bool recorded = op.kind != "init" && op.kind != "capture_begin";
  if (recorded && op.pointer != 0) supply(op.pointer);
  if (action.pool != 0) caching_->enter_mem_pool(pools_[action.pool]);
  const AllocationResult result = allocator_->allocate(action.bytes, action.stream);
  if (action.pool != 0) caching_->leave_mem_pool(pools_[action.pool]);
  if (result) blocks_[action.block] = result->block;
  if (recorded) check_allocation(op, action, result);
}

// The recorded pointer is the base of a new plain segment, if the request makes one.
void OracleReplay::supply(Address pointer) {
  async_ ? async_->supply_address(pointer) : segments_->supply_segment(pointer);
}

void OracleReplay::check_allocation(const OracleOperation& op, const ClientAction& action,
                                    const AllocationResult& result) {
  const bool recorded_oom = !op.text.empty();
  if (result && !recorded_oom) {
    check_address(op, *result);
  } else if (!result && recorded_oom) {
    check_oom_text(op, result.oom());
  } else if (recorded_oom) {
    ++result_.oom_texts_checked;
    ++result_.oom_text_mismatches;
    diverge("outcome", "out of memory", "allocated");
    allocator_->free(result->block);
    blocks_[action.block].reset();
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
  ++result_.oom_texts_checked;
  if (!differences.empty()) ++result_.oom_text_mismatches;
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

void OracleReplay::diverge(const std::string& what, const std::string& recorded,
                           const std::string& simulated) {
  if (result_.first_divergence) return;
  result_.first_divergence = Divergence{next_,     log_.operations[next_].kind,
                                        what,      recorded,
                                        simulated, caching_ ? describe_state(*caching_) : ""};
}

void OracleReplay::warn(const std::string& warning) { result_.warnings.push_back(warning); }

}  // namespace vramlab
