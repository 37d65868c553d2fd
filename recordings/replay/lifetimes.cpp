#include "recordings/replay/lifetimes.hpp"

#include <set>
#include <unordered_map>

#include "sim/memory/caching/rounding.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

/// Follows a program's actions in their order.
class LifetimeReader {
 public:
  explicit LifetimeReader(const ClientProgram& program) : program_(program), lifetimes_(program.blocks) {}

  std::vector<Lifetime> read() {
    for (std::size_t i = 0; i < program_.actions.size(); ++i) take(program_.actions[i], i);
    return std::move(lifetimes_);
  }

 private:
  void take(const ClientAction& action, std::size_t at) {
    switch (action.kind) {
      case Kind::alloc:
        return begin(action, at);
      case Kind::record_stream:
        other_streams_[action.block].insert(action.stream);
        return;
      case Kind::free:
        lifetimes_[action.block].freed = at;
        // A deferred free comes back with its `finish`, or when all streams are waited for.
        if (!other_streams_.contains(action.block)) return give_back(action.block, at);
        waiting_.insert(action.block);
        return;
      case Kind::finish:
        if (waiting_.erase(action.block) > 0) give_back(action.block, at);
        return;
      case Kind::sync:
        for (const ProgramBlock block : waiting_) {
          std::set<StreamId>& streams = other_streams_[block];
          action.detail == 1 ? static_cast<void>(streams.erase(action.stream)) : streams.clear();
          if (streams.empty()) give_back(block, at);
        }
        std::erase_if(waiting_, [this](ProgramBlock block) { return other_streams_[block].empty(); });
        return;
      case Kind::capture_begin:
        ++captures_;
        return;
      case Kind::capture_end:
        --captures_;
        return;
      case Kind::mark:
        ++step_;
        return;
      default:
        return;
    }
  }

  void begin(const ClientAction& action, std::size_t at) {
    const bool given = action.bytes > 0 && action.bytes < kAbsurdSize;
    lifetimes_[action.block] = {.born = at,
                                .freed = program_.actions.size(),
                                .returned = program_.actions.size(),
                                .requested = action.bytes,
                                .rounded = given ? round_up(action.bytes, kMinBlock) : 0,
                                .stream = action.stream,
                                .pool = action.pool,
                                .stack = action.detail,
                                .step = step_,
                                .captured = captures_ > 0,
                                .before_recording = at < program_.initial_actions,
                                .place = {}};
  }

  void give_back(ProgramBlock block, std::size_t at) { lifetimes_[block].returned = at; }

  const ClientProgram& program_;
  std::vector<Lifetime> lifetimes_;
  std::unordered_map<ProgramBlock, std::set<StreamId>> other_streams_;  ///< not waited for yet
  std::set<ProgramBlock> waiting_;
  std::uint32_t step_ = 0;
  int captures_ = 0;
};

}  // namespace

std::vector<Lifetime> lifetimes_of(const ClientProgram& program, const std::vector<BlockPlace>* places) {
  std::vector<Lifetime> lifetimes = LifetimeReader(program).read();
  for (std::size_t i = 0; places != nullptr && i < lifetimes.size(); ++i) {
    if ((*places)[i].size > 0) lifetimes[i].place = (*places)[i];
  }
  return lifetimes;
}

std::vector<std::string> step_names(const ClientProgram& program) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < program.actions.size(); ++i) {
    if (program.actions[i].kind == Kind::mark) names.push_back(mark_after(program, i));
  }
  names.emplace_back();
  return names;
}

}  // namespace vramlab
