#include "recordings/snapshot/peak_attribution.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>

#include "recordings/snapshot/history.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostCallers = 3;

// Files of PyTorch that stand in stacks whose paths were cut.
constexpr std::array kTorchFiles{
    "module.py",      "functional.py",  "container.py",     "conv.py",
    "batchnorm.py",   "linear.py",      "optimizer.py",     "adam.py",
    "adamw.py",       "sgd.py",         "_tensor.py",       "normalization.py",
    "activation.py",  "dropout.py",     "sparse.py",        "checkpoint.py",
    "grad_mode.py",   "_contextlib.py", "rnn.py",           "pooling.py",
    "loss.py",        "_ops.py",        "_jit_internal.py", "autograd/__init__.py",
    "eval_frame.py",  "upsampling.py",  "pixelshuffle.py",  "padding.py",
    "transformer.py", "graph.py"};

constexpr std::array kLibraryFolders{"/torch/", "/site-packages/torch", "<frozen ", "/importlib/",
                                     "/runpy.py"};
constexpr std::array kNativeEndings{".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".so", ".cxx", ".o"};

bool is_native_frame(const StackFrame& frame) {
  const auto ends = [&frame](const char* ending) { return frame.file.ends_with(ending); };
  return frame.file.empty() || frame.file == "??" ||
         std::any_of(kNativeEndings.begin(), kNativeEndings.end(), ends);
}

std::string label(const StackFrame& frame) {
  const std::size_t slash = frame.file.rfind('/');
  const std::string file = slash == std::string::npos ? frame.file : frame.file.substr(slash + 1);
  return file + ":" + std::to_string(frame.line) + " " + frame.function;
}

// The function of a backward pass that a native stack of the autograd engine runs: "BmmBackward0".
std::string backward_function(const std::string& function) {
  constexpr std::string_view kGenerated = "torch::autograd::generated::";
  const std::size_t start = function.find(kGenerated);
  if (start == std::string::npos) return "";
  const std::size_t name = start + kGenerated.size();
  const std::string found = function.substr(name, function.find("::", name) - name);
  return found == "details" ? "" : found;
}

// By its path, and where paths were cut to the file's name, by the names of PyTorch's own files.
bool is_library_frame(const StackFrame& frame) {
  const std::string_view file = frame.file;
  if (is_native_frame(frame)) return true;
  const auto contains = [file](const char* part) { return file.find(part) != std::string_view::npos; };
  if (std::any_of(kLibraryFolders.begin(), kLibraryFolders.end(), contains)) return true;
  const auto is = [file](const char* name) { return file == name; };
  return file.find('/') == std::string_view::npos && std::any_of(kTorchFiles.begin(), kTorchFiles.end(), is);
}

}  // namespace

std::vector<std::string> shown_frames(std::span<const StackFrame> frames,
                                      std::span<const std::uint32_t> stack) {
  std::vector<std::string> own;
  std::vector<std::string> library;
  std::string backward;
  if (stack.empty()) return {kNoStack};
  for (const std::uint32_t place : stack) {
    const StackFrame& frame = frames[place];
    if (is_native_frame(frame)) {
      if (backward.empty()) backward = backward_function(frame.function);
      continue;
    }
    auto& list = is_library_frame(frame) ? library : own;
    if (list.size() < kMostCallers + 1) list.push_back(label(frame));
  }
  if (!own.empty()) return own;
  if (!backward.empty()) return {backward + " (backward)"};
  return library.empty() ? std::vector<std::string>{"(native code without Python)"} : library;
}

namespace {

using Action = TraceEntry::Action;
using BlockState = SnapshotBlock::State;

struct LiveBlock {
  Bytes requested = 0;
  StreamId stream = 0;
  StackId stack = 0;
};
using LiveBlocks = std::unordered_map<Address, LiveBlock>;

/// What was live before the first entry.
LiveBlocks live_at_start(const TorchSnapshot& snapshot, int device) {
  LiveBlocks initial;
  std::unordered_map<Address, bool> live;  // by address that the history has spoken of
  for (const TraceEntry& entry : history_of(snapshot, device)) {
    if (entry.action == Action::alloc) live[entry.address] = true;
    const bool ends = entry.action == Action::free_completed;
    if (!ends && entry.action != Action::free_requested) continue;
    const auto [known, first] = live.try_emplace(entry.address, false);
    if (first) initial[entry.address] = {entry.size, entry.stream, entry.stack};
    if (first) known->second = true;
    if (ends) known->second = false;
  }
  for (const SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != device) continue;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::inactive || live.contains(block.address)) continue;
      initial[block.address] = {block.requested, segment.stream, block.stack};
    }
  }
  return initial;
}

/// The live blocks and the reserved bytes, moved from entry to entry.
class Walk {
 public:
  Walk(const TorchSnapshot& snapshot, int device)
      : live_(live_at_start(snapshot, device)), reserved_(reserved_at_start(snapshot, device)) {
    for (const auto& [address, block] : live_) requested_ += block.requested;
  }

  void step(const TraceEntry& entry) {
    reserved_ += reserved_change(entry);
    if (entry.action == Action::alloc) {
      live_[entry.address] = {entry.size, entry.stream, entry.stack};
      requested_ += entry.size;
    }
    if (entry.action == Action::free_completed) {
      const auto block = live_.find(entry.address);
      if (block == live_.end()) return;
      requested_ -= block->second.requested;
      live_.erase(block);
    }
  }

  [[nodiscard]] Bytes requested() const { return requested_; }
  [[nodiscard]] Bytes reserved() const { return static_cast<Bytes>(std::max<std::int64_t>(reserved_, 0)); }
  [[nodiscard]] const LiveBlocks& live() const { return live_; }

 private:
  LiveBlocks live_;
  Bytes requested_ = 0;
  std::int64_t reserved_;
};

// PyTorch rounds to 512 bytes at least, so smaller ones are one class.
int size_class(Bytes size) { return static_cast<int>(std::bit_width(std::max<Bytes>(size, 512) - 1)); }

std::string class_name(int power) {
  if (power <= 9) return "up to 512 B";
  return "up to " + format_bytes(Bytes{1} << power);
}

template <class Key, class Name>
std::vector<PeakShare> shares_of(const std::map<Key, PeakShare>& by_key, const Name& name) {
  std::vector<PeakShare> shares;
  for (const auto& [key, share] : by_key) {
    shares.push_back(share);
    shares.back().name = name(key);
  }
  return shares;
}

void share_out(const TorchSnapshot& snapshot, const LiveBlocks& live, PeakAttribution& peak) {
  std::map<std::string, PeakShare> frames;
  std::map<int, PeakShare> classes;
  std::map<StreamId, PeakShare> streams;
  for (const auto& [address, block] : live) {
    const std::string frame = shown_frames(snapshot.frames, snapshot.stacks[block.stack]).front();
    for (PeakShare* share : {&frames[frame], &classes[size_class(block.requested)], &streams[block.stream]}) {
      share->bytes += block.requested;
      ++share->blocks;
    }
  }
  peak.by_frame = shares_of(frames, [](const std::string& name) { return name; });
  std::stable_sort(peak.by_frame.begin(), peak.by_frame.end(),
                   [](const PeakShare& a, const PeakShare& b) { return a.bytes > b.bytes; });
  peak.by_size_class = shares_of(classes, class_name);
  peak.by_stream = shares_of(streams, [](StreamId stream) { return std::to_string(stream); });
}

}  // namespace

PeakAttribution attribute_peak(const TorchSnapshot& snapshot, int device) {
  const std::span<const TraceEntry> trace = history_of(snapshot, device);
  PeakAttribution peak;
  peak.device = device;
  peak.from_history = !trace.empty();
  Walk search{snapshot, device};
  peak.requested = search.requested();
  for (std::size_t i = 0; i < trace.size(); ++i) {
    search.step(trace[i]);
    if (search.requested() <= peak.requested) continue;
    peak.requested = search.requested();
    peak.entry = i + 1;
    peak.time_us = trace[i].time_us;
  }
  Walk walk{snapshot, device};
  for (std::size_t i = 0; i < peak.entry; ++i) walk.step(trace[i]);
  peak.reserved = walk.reserved();
  peak.rest = peak.reserved - std::min(peak.reserved, peak.requested);
  share_out(snapshot, walk.live(), peak);
  return peak;
}

std::vector<int> devices_of(const TorchSnapshot& snapshot) {
  std::set<int> devices;
  for (const SnapshotSegment& segment : snapshot.segments) devices.insert(segment.device);
  for (std::size_t device = 0; device < snapshot.traces.size(); ++device) {
    if (!snapshot.traces[device].empty()) devices.insert(static_cast<int>(device));
  }
  return {devices.begin(), devices.end()};
}

}  // namespace vramlab
