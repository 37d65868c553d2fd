#include "lab/peak_memory.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "trace/program_replay.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostCallers = 3;

struct SizeClass {
  Bytes end;  ///< first size above
  const char* name;
};
// The borders of the allocator's own decisions (R1.6, R1.7), then powers.
constexpr std::array kSizeClasses{SizeClass{1_MiB + 1, "up to 1 MiB"}, SizeClass{10_MiB, "1 to 10 MiB"},
                                  SizeClass{100_MiB, "10 to 100 MiB"}, SizeClass{1_GiB, "100 MiB to 1 GiB"},
                                  SizeClass{kUnlimited, "1 GiB and more"}};

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

/// Frames of one stack that the reader wrote, innermost first; those of Python libraries if there are no
/// others; else what the native frames say.
std::vector<std::string> frames_to_show(const ClientProgram& program, std::uint32_t stack) {
  std::vector<std::string> own;
  std::vector<std::string> library;
  std::string backward;
  if (program.stacks[stack].empty()) return {"(no stack recorded, such as in backward)"};
  for (const std::uint32_t place : program.stacks[stack]) {
    const StackFrame& frame = program.frames[place];
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

struct Held {
  Bytes bytes;
  const ClientAction& action;
};

std::vector<PeakShare> shares(const std::vector<Held>& held,
                              const std::function<std::vector<std::string>(const Held&)>& key_of) {
  std::map<std::string, PeakShare> by_name;
  for (const Held& block : held) {
    const std::vector<std::string> key = key_of(block);
    PeakShare& share = by_name[key.front()];
    if (share.blocks == 0) {
      share.name = key.front();
      share.callers.assign(key.begin() + 1, key.end());
    }
    share.bytes += block.bytes;
    ++share.blocks;
  }
  std::vector<PeakShare> sorted;
  for (auto& [name, share] : by_name) sorted.push_back(std::move(share));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PeakShare& a, const PeakShare& b) { return a.bytes > b.bytes; });
  return sorted;
}

const char* size_class(Bytes bytes) {
  return std::find_if(kSizeClasses.begin(), kSizeClasses.end(),
                      [bytes](const SizeClass& c) { return bytes < c.end; })
      ->name;
}

}  // namespace

bool is_library_frame(const StackFrame& frame) {
  const std::string_view file = frame.file;
  if (is_native_frame(frame)) return true;
  const auto contains = [file](const char* part) { return file.find(part) != std::string_view::npos; };
  if (std::any_of(kLibraryFolders.begin(), kLibraryFolders.end(), contains)) return true;
  const auto is = [file](const char* name) { return file == name; };
  return file.find('/') == std::string_view::npos && std::any_of(kTorchFiles.begin(), kTorchFiles.end(), is);
}

PeakMemory peak_memory(const ClientProgram& program, const WhatIfRow& row) {
  PeakMemory peak;
  ReplaySetup setup = setup_of(row);
  ProgramOutcome outcome = row.outcome;
  if (!outcome.fits()) {
    setup.total = kNeverFull;
    setup.limit.reset();
    outcome = replay_program(program, setup);
  }
  if (outcome.highest_allocated == 0) return peak;
  std::vector<Held> held;
  for (const HeldBlock& block : held_blocks(program, setup, outcome.highest_allocated_at)) {
    const ClientAction& action = program.actions[block.action];
    held.push_back({block.size, action});
    peak.bytes += block.size;
    peak.requested += action.bytes;
    ++peak.blocks;
  }
  peak.mark = mark_after(program, outcome.highest_allocated_at);
  const bool has_stacks = std::any_of(program.stacks.begin(), program.stacks.end(),
                                      [](const auto& stack) { return !stack.empty(); });
  if (has_stacks) {
    peak.by_frame = shares(held, [&](const Held& block) {
      std::vector<std::string> frames = frames_to_show(program, block.action.detail);
      return frames.empty() ? std::vector<std::string>{"(no stack: outside Python, such as backward)"}
                            : frames;
    });
  }
  peak.by_size =
      shares(held, [](const Held& block) { return std::vector<std::string>{size_class(block.bytes)}; });
  peak.by_stream = shares(held, [](const Held& block) {
    const std::string stream =
        block.action.stream == 0 ? "default stream" : "stream " + std::to_string(block.action.stream);
    const std::string pool = block.action.pool == 0 ? "" : ", MemPool " + std::to_string(block.action.pool);
    return std::vector<std::string>{stream + pool};
  });
  return peak;
}

}  // namespace vramlab
