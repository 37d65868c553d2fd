// R7.1 to R7.3: the pools of captured graphs and of torch.cuda.MemPool, and which requests go to them.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "sim/memory/caching/caching_allocator.hpp"

namespace vramlab {

constexpr std::size_t kGroupsWithBins = 64;        // the bins of a pool take 16 KiB
constexpr std::size_t kMostGroups = 0x1'0000 / 2;  // two pools each, numbered by PoolIndex

// A dropped group without segments is used again; its number is not.
std::size_t CachingAllocator::add_group(const PoolOptions& options, int uses) {
  std::size_t group = state_.groups.size();
  if (!state_.spare_groups.empty()) {
    group = state_.spare_groups.extract(state_.spare_groups.begin()).value();
  } else {
    if (group == kMostGroups)
      throw InputError(
          "", "there are more than 32,767 private pools at once. Delete some before others are made.");
    state_.groups.emplace_back();
    state_.pools.resize(2 * state_.groups.size());
  }
  const PoolId id = state_.groups.size() == 1 ? kDefaultPool : PoolId{++state_.last_pool_id};
  state_.groups[group] = {.id = id, .options = options, .uses = uses};
  if (group > 0) state_.private_groups.emplace(id, group);
  const FreeListKind kind = group < kGroupsWithBins ? free_list_ : FreeListKind::ordered;
  for (std::size_t pool = 2 * group; pool < 2 * group + 2; ++pool) {
    state_.pools[pool] = {FreeList(kind), {}, 0};
  }
  return group;
}

// Its blocks, if any are left, are orphans until the last segment goes (R7.9).
void CachingAllocator::drop_group(std::size_t group) {
  PoolGroup& dropped = state_.groups[group];
  if (std::exchange(dropped.dropped, true)) return;
  state_.private_groups.erase(dropped.id);
  if (dropped.segments == 0) {
    state_.spare_groups.insert(group);
  } else {
    ++state_.orphaned_groups;
  }
}

std::size_t CachingAllocator::find_group(PoolId pool) const {
  const auto found = state_.private_groups.find(pool);
  if (found != state_.private_groups.end()) return found->second;
  throw InternalError("there is no private pool " + std::to_string(static_cast<std::uint32_t>(pool)));
}

// R7.1: the most recent context that takes this stream.
std::size_t CachingAllocator::group_for(StreamId stream) const {
  for (auto context = state_.contexts.rbegin(); context != state_.contexts.rend(); ++context) {
    if (!context->captured || *context->captured == stream) return context->group;
  }
  return 0;
}

bool CachingAllocator::capture_open() const {
  return std::any_of(state_.contexts.begin(), state_.contexts.end(),
                     [](const PoolContext& context) { return context.captured.has_value(); });
}

PoolId CachingAllocator::new_mem_pool(const PoolOptions& options) {
  const auto demand = [this](bool asked, const char* what, TorchRule rule) {  // section 15
    if (!asked || has_rule(state_.settings.torch, rule)) return;
    throw InputError(std::string("MemPool") + what, "torch " + to_text(state_.settings.torch) +
                                                        " does not have it; it came with " +
                                                        to_text(version_rule(rule).from) + '.');
  };
  demand(true, "", TorchRule::mem_pool);
  demand(options.use_on_oom, " use_on_oom", TorchRule::mem_pool_use_on_oom);
  demand(options.no_split, " no_split", TorchRule::mem_pool_no_split);
  return state_.groups[add_group(options, 1)].id;
}

// R7.2
void CachingAllocator::delete_mem_pool(PoolId pool) {
  --state_.groups[find_group(pool)].uses;
  empty_cache(pool);
}

void CachingAllocator::enter_mem_pool(PoolId pool) {
  const std::size_t group = find_group(pool);
  ++state_.groups[group].uses;
  state_.contexts.push_back({group, std::nullopt});
}

void CachingAllocator::leave_mem_pool(PoolId pool) {
  close_context(pool, false);
  --state_.groups[find_group(pool)].uses;
}

PoolId CachingAllocator::begin_capture(StreamId stream, std::optional<PoolId> shared) {
  const std::size_t group = shared ? find_group(*shared) : add_group({}, 0);
  ++state_.groups[group].uses;
  state_.contexts.push_back({group, stream});
  return state_.groups[group].id;
}

void CachingAllocator::close_context(PoolId pool, bool capture) {
  const std::size_t group = find_group(pool);
  const auto open =
      std::find_if(state_.contexts.rbegin(), state_.contexts.rend(), [&](const PoolContext& context) {
        return context.group == group && context.captured.has_value() == capture;
      });
  if (open == state_.contexts.rend()) throw InternalError("a private pool is left that was not entered");
  state_.contexts.erase(std::next(open).base());
}

}  // namespace vramlab
