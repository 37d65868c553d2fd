#include "trace/shown_frames.hpp"

#include <algorithm>
#include <array>
#include <string_view>

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

}  // namespace vramlab
