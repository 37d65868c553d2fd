#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "recordings/scripts/recorded_program.hpp"

namespace vramlab {
namespace {

using Kind = ClientAction::Kind;

constexpr std::int64_t kDefaultPools = -1;
constexpr Bytes kGeneratorBlock = 8;  // seed and offset of the random generator (R7.1)

class Writer {
 public:
  explicit Writer(const OracleLog& log) : log_(log) {
    program_.settings = parse_allocator_settings(log.conf);
    program_.limit = log.limit();
    program_.device_total = log.total_memory;
  }

  OracleProgram write() {
    OracleProgram written;
    for (at_ = 0; at_ < log_.operations.size(); ++at_) {
      written.first_action.push_back(program_.actions.size());
      perform(log_.operations[at_]);
    }
    written.first_action.push_back(program_.actions.size());
    written.program = std::move(program_);
    return written;
  }

 private:
  struct Graph {
    ProgramPool pool = 0;
    StreamId stream = 0;
    bool reset = false;
    bool object_alive = true;
  };

  // `stopped` is no action: the request that raised the error is not in the log.
  void perform(const OracleOperation& op) {
    const std::string& kind = op.kind;
    if (kind == "init") {
      // Pool logs begin after one small tensor was made, freed and released.
      if (std::all_of(op.counters.begin(), op.counters.end(), [](std::int64_t v) { return v == 0; })) return;
      add({.bytes = 4, .block = program_.blocks, .kind = Kind::alloc});
      add({.block = program_.blocks++, .kind = Kind::free});
      add({.kind = Kind::empty_cache});
    } else if (kind == "alloc" || kind == "alloc_t" || kind == "oom" || kind == "alloc_oom") {
      allocate(op, stream_of(op), 0);
    } else if (kind == "graph_alloc" || kind == "graph_alloc_oom") {
      allocate(op, graph_of(op).stream, 0);
    } else if (kind == "pool_alloc" || kind == "pool_alloc_oom") {
      allocate(op, kDefaultStream, pool_of(op));
    } else if (kind == "free" || kind == "free_deferred") {
      free(op);
    } else if (kind == "empty_cache") {
      // The newest graph's object dies when the next one is made, just before the release (see the log's
      // format).
      if (next_is("capture_begin") && newest_graph_ && graphs_.at(*newest_graph_).reset) {
        graph_object_dies(graphs_.at(*newest_graph_));
      }
      add({.kind = Kind::empty_cache});
    } else if (kind == "reset_peak") {
      add({.kind = Kind::reset_peak});
    } else if (kind == "settings") {
      add({.detail = text(op.argument), .kind = Kind::settings});
    } else if (kind == "pool_new") {
      new_pool(op);
    } else if (kind == "pool_del") {
      add({.pool = pool_of(op), .kind = Kind::pool_del});
      pools_.erase(op.tag);
    } else if (kind == "capture_begin") {
      begin_capture(op);
    } else if (kind == "capture_end") {
      add({.pool = graph_of(op).pool, .kind = Kind::capture_end});
    } else if (kind == "graph_del") {
      delete_graph(op);
    }
  }

  void add(const ClientAction& action) {
    program_.actions.push_back(action);
    program_.actions.back().source = static_cast<std::uint32_t>(at_);
  }

  void allocate(const OracleOperation& op, StreamId stream, ProgramPool pool) {
    add({.bytes = op.bytes, .stream = stream, .block = program_.blocks, .pool = pool, .kind = Kind::alloc});
    if (op.text.empty()) live_[op.pointer] = program_.blocks;
    ++program_.blocks;
  }

  void free(const OracleOperation& op) {
    const auto live = live_.find(op.pointer);
    if (live == live_.end()) return;
    // cudaMallocAsync knows no deferred frees of its own, and its logs name no streams.
    const bool deferred = op.kind == "free_deferred" && program_.settings.backend == AllocatorBackend::native;
    if (deferred) add({.stream = side_stream(), .block = live->second, .kind = Kind::record_stream});
    add({.block = live->second, .kind = Kind::free});
    if (deferred) add({.kind = Kind::sync});
    live_.erase(live);
  }

  void new_pool(const OracleOperation& op) {
    const PoolKind kind = op.argument == "use_on_oom" ? PoolKind::use_on_oom
                          : op.argument == "no_split" ? PoolKind::no_split
                                                      : PoolKind::plain;
    pools_[op.tag] = ++program_.pools;
    add({.pool = program_.pools, .detail = static_cast<std::uint32_t>(kind), .kind = Kind::pool_new});
  }

  // R7.1: the generator's two blocks are made by the first of the living graphs, on its stream, in the
  // default pools; no operation lists them.
  void begin_capture(const OracleOperation& op) {
    const bool registered = std::any_of(graphs_.begin(), graphs_.end(),
                                        [](const auto& graph) { return graph.second.object_alive; });
    for (int i = 0; i < (registered ? 0 : 2); ++i) {
      add({.bytes = kGeneratorBlock, .stream = op.pointer, .block = program_.blocks, .kind = Kind::alloc});
      generator_blocks_.push_back(program_.blocks++);
    }
    graphs_[op.tag] = {++program_.pools, op.pointer, false, true};
    newest_graph_ = op.tag;
    add({.stream = op.pointer, .pool = program_.pools, .kind = Kind::capture_begin});
  }

  void delete_graph(const OracleOperation& op) {
    Graph& graph = graph_of(op);
    add({.pool = graph.pool, .kind = Kind::pool_del});
    graph.reset = true;
    if (op.tag != newest_graph_) graph_object_dies(graph);
  }

  void graph_object_dies(Graph& graph) {
    graph.object_alive = false;
    const bool any = std::any_of(graphs_.begin(), graphs_.end(),
                                 [](const auto& other) { return other.second.object_alive; });
    if (any) return;
    for (const ProgramBlock block : std::exchange(generator_blocks_, {})) {
      add({.block = block, .kind = Kind::free});
    }
  }

  [[nodiscard]] StreamId stream_of(const OracleOperation& op) const {
    if (op.tag == kDefaultPools) return kDefaultStream;
    if (op.tag < 0 || static_cast<std::size_t>(op.tag) >= log_.streams.size()) {
      refuse(2, std::to_string(op.tag) + " is not an index of a stream.");
    }
    return log_.streams[static_cast<std::size_t>(op.tag)];
  }

  [[nodiscard]] StreamId side_stream() const {
    if (log_.streams.size() < 2) refuse(0, "a deferred free needs a second stream, and the log names none.");
    return log_.streams[1];
  }

  [[nodiscard]] ProgramPool pool_of(const OracleOperation& op) const {
    const auto pool = pools_.find(op.tag);
    if (pool == pools_.end()) refuse(2, std::to_string(op.tag) + " is not a living MemPool.");
    return pool->second;
  }

  Graph& graph_of(const OracleOperation& op) {
    const auto graph = graphs_.find(op.tag);
    if (graph == graphs_.end()) refuse(2, std::to_string(op.tag) + " is not a graph.");
    return graph->second;
  }

  [[nodiscard]] bool next_is(const char* kind) const {
    return at_ + 1 < log_.operations.size() && log_.operations[at_ + 1].kind == kind;
  }

  std::uint32_t text(const std::string& words) {
    program_.texts.push_back(words);
    return static_cast<std::uint32_t>(program_.texts.size() - 1);
  }

  [[noreturn]] void refuse(std::size_t field, const std::string& what) const {
    throw InputError("/ops/" + std::to_string(at_) + '/' + std::to_string(field), what);
  }

  const OracleLog& log_;
  ClientProgram program_;
  std::size_t at_ = 0;                              ///< the operation being written
  std::unordered_map<Address, ProgramBlock> live_;  ///< by pointer
  std::map<std::int64_t, ProgramPool> pools_;
  std::map<std::int64_t, Graph> graphs_;
  std::optional<std::int64_t> newest_graph_;
  std::vector<ProgramBlock> generator_blocks_;
};

}  // namespace

OracleProgram oracle_program(const OracleLog& log) { return Writer(log).write(); }

}  // namespace vramlab
