#include "recordings/snapshot/stack_groups.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace vramlab {
namespace {

constexpr std::size_t kMostCallers = 3;

/// Whose code a frame is.
enum class Origin : std::uint8_t {
  program,   ///< the reader's
  layer,     ///< forward() of a model that a library defines
  library,   ///< the rest of installed packages
  standard,  ///< of Python and what starts it
  torch,
  generated,  ///< by torch.compile and others, under another name in every run
  native,
};

constexpr std::array kNativeEndings{".cpp", ".cc", ".c", ".h", ".hpp", ".cu", ".cuh", ".so", ".cxx", ".o"};
// Of PyTorch wherever it is installed, or built from its sources.
constexpr std::array kTorchFolders{"-packages/torch/",    "/pytorch/torch/",      "/torch/nn/modules/",
                                   "/torch/nn/parallel/", "/torch/optim/",        "/torch/utils/",
                                   "/torch/autograd/",    "/torch/_dynamo/",      "/torch/_inductor/",
                                   "/torch/_functorch/",  "/torch/amp/",          "/torch/fx/",
                                   "/torch/cuda/",        "/torch/distributed/",  "/torch/_tensor.py",
                                   "/torch/_ops.py",      "/torch/functional.py", "/torch/nn/functional.py"};
constexpr std::array kStandardFolders{"/lib/python", "/lib64/python", "/bin/", "/runpy.py", "/importlib/"};
constexpr std::array kGeneratedFolders{"torchinductor", "/torch_compile_debug/", "/.triton/"};
// Packages whose layers and functions only pass on what the program asks for.
constexpr std::array kHelperPackages{"einops",    "jaxtyping",  "beartype",
                                     "typeguard", "opt_einsum", "torchtyping"};

// Files in stacks whose paths were cut to the name.
constexpr std::array kTorchFiles{
    "module.py",       "functional.py",    "container.py",     "conv.py",       "batchnorm.py",
    "linear.py",       "optimizer.py",     "adam.py",          "adamw.py",      "sgd.py",
    "_tensor.py",      "normalization.py", "activation.py",    "dropout.py",    "sparse.py",
    "checkpoint.py",   "grad_mode.py",     "_contextlib.py",   "rnn.py",        "pooling.py",
    "loss.py",         "_ops.py",          "_jit_internal.py", "eval_frame.py", "upsampling.py",
    "pixelshuffle.py", "padding.py",       "transformer.py",   "graph.py"};
constexpr std::array kEinopsFiles{"einops.py", "_backends.py", "_torch_specific.py", "_einmix.py"};
constexpr std::array kLibraryFiles{"_decorator.py", "_array_types.py"};
constexpr std::array kTorchFunctions{"backward", "grad", "_make_grads"};  // of autograd/__init__.py
constexpr std::array kStandardFiles{"runpy.py", "contextlib.py", "threading.py"};

std::string slashed(const std::string& file) {
  std::string path = file;
  std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

template <class Parts>
bool contains_one(std::string_view text, const Parts& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](const char* part) { return text.find(part) != std::string_view::npos; });
}

template <class Names>
bool is_one(std::string_view text, const Names& names) {
  return std::any_of(names.begin(), names.end(), [text](const char* name) { return text == name; });
}

bool is_native(const StackFrame& frame) {
  const auto ends = [&frame](const char* ending) { return frame.file.ends_with(ending); };
  return frame.file.empty() || frame.file == "??" ||
         std::any_of(kNativeEndings.begin(), kNativeEndings.end(), ends);
}

bool has_drive(std::string_view file) {
  return file.size() > 2 && std::isalpha(static_cast<unsigned char>(file[0])) != 0 && file[1] == ':' &&
         (file[2] == '\\' || file[2] == '/');
}

/// "einops/einops.py" for a file of an installed package; empty for others.
std::string installed_path(const std::string& path) {
  constexpr std::string_view kInstalled = "-packages/";  // site-packages, dist-packages
  const std::size_t place = path.rfind(kInstalled);
  return place == std::string::npos ? "" : path.substr(place + kInstalled.size());
}

std::string package_of(const std::string& path) {
  const std::string installed = installed_path(path);
  const std::string first = installed.substr(0, installed.find('/'));
  return first.ends_with(".py") ? first.substr(0, first.size() - 3) : first;
}

// Files of torch.compile are called by a hash of some 50 letters and digits.
bool is_generated(const std::string& path) {
  if (path.starts_with('<')) return !path.starts_with("<stdin>") && !path.starts_with("<ipython");
  if (contains_one(path, kGeneratedFolders)) return true;
  const std::string name = base_name(path);
  return name.size() > 40 && name.ends_with(".py") && name.front() == 'c' &&
         std::all_of(name.begin(), name.end() - 3, [](unsigned char letter) {
           return std::islower(letter) != 0 || std::isdigit(letter) != 0;
         });
}

// By its path, and where paths were cut to the file's name, by the names of well-known files.
Origin origin_of(const StackFrame& frame) {
  if (is_native(frame)) return Origin::native;
  const std::string path = slashed(frame.file);
  if (is_generated(path)) return Origin::generated;
  if (contains_one(path, kTorchFolders)) return Origin::torch;
  const std::string package = package_of(path);
  if (!package.empty()) {
    const bool layer = frame.function == "forward" && !is_one(package, kHelperPackages);
    return layer ? Origin::layer : Origin::library;
  }
  if (path.find('/') == std::string::npos) {
    const bool backward = path == "__init__.py" && is_one(frame.function, kTorchFunctions);
    if (backward || is_one(path, kTorchFiles)) return Origin::torch;
    if (is_one(path, kEinopsFiles) || is_one(path, kLibraryFiles)) return Origin::library;
    return is_one(path, kStandardFiles) ? Origin::standard : Origin::program;
  }
  const bool windows_library = has_drive(path) && path.find("/Lib/") != std::string::npos;
  return windows_library || contains_one(path, kStandardFolders) ? Origin::standard : Origin::program;
}

// As it stands in the file; of installed packages without where they are installed.
std::string file_of(const StackFrame& frame) {
  const std::string installed = installed_path(slashed(frame.file));
  return installed.empty() ? frame.file : installed;
}

std::string label(const StackFrame& frame) {
  const std::string file = base_name(slashed(frame.file));
  const std::string line = frame.line > 0 ? ":" + std::to_string(frame.line) : "";
  return file + line + " " + frame.function;
}

// The function of a backward pass that a native stack of the autograd engine runs: "BmmBackward0".
std::string backward_function(const std::string& function) {
  constexpr std::string_view kGenerated = "torch::autograd::generated::";
  if (function.starts_with("torch::autograd::AccumulateGrad::")) return "AccumulateGrad";
  const std::size_t start = function.find(kGenerated);
  if (start == std::string::npos) return "";
  const std::string_view name = std::string_view{function}.substr(start + kGenerated.size());
  std::string found{name.substr(0, name.find_first_of(":(<"))};
  found = found.substr(0, found.find("_apply_functional"));
  return found == "details" ? "" : found;
}

// Of a program in C++. PyTorch and Python are built without the lines of their own functions.
bool is_native_program(const StackFrame& frame) {
  constexpr std::array kOthers{
      "c10::", "at::", "torch::", "caffe2::", "pybind11::", "std::", "__libc", "_start"};
  const std::string path = slashed(frame.file);
  if (frame.line <= 0 || path.ends_with(".c") || path.ends_with(".h")) return false;
  if (contains_one(path, std::array{"/c10/", "/aten/", "/torch/csrc/", "/ATen/"})) return false;
  return std::none_of(kOthers.begin(), kOthers.end(),
                      [&](const char* other) { return frame.function.starts_with(other); });
}

bool is_operator(const StackFrame& frame) {
  return frame.function.starts_with("at::native::") || frame.function.starts_with("at::_ops::");
}

/// The frames of a stack by whose they are.
struct SortedFrames {
  std::vector<const StackFrame*> own;  ///< of the program, and layers of libraries
  std::vector<const StackFrame*> library;
  std::vector<const StackFrame*> torch;
  std::vector<const StackFrame*> native_program;
  const StackFrame* first_operator = nullptr;
  std::string backward;
  bool generated = false;

  /// Those to name; empty if only `otherwise` says something.
  [[nodiscard]] const std::vector<const StackFrame*>& best() const {
    if (!own.empty()) return own;
    if (!library.empty()) return library;
    return backward.empty() && !generated && native_program.empty() ? torch : native_program;
  }

  [[nodiscard]] std::string otherwise() const {
    if (!backward.empty()) return backward + " (backward)";
    if (generated) return "(code generated by torch.compile)";
    return first_operator != nullptr ? first_operator->function : "(native code without Python)";
  }
};

SortedFrames sort_frames(std::span<const StackFrame> frames, std::span<const std::uint32_t> stack) {
  SortedFrames sorted;
  for (const std::uint32_t place : stack) {
    const StackFrame& frame = frames[place];
    switch (origin_of(frame)) {
      case Origin::program:
      case Origin::layer:
        sorted.own.push_back(&frame);
        break;
      case Origin::library:
        sorted.library.push_back(&frame);
        break;
      case Origin::torch:
        sorted.torch.push_back(&frame);
        break;
      case Origin::generated:
        sorted.generated |= !frame.file.starts_with('<') || frame.file.starts_with("<eval_with_key");
        break;
      case Origin::standard:
        break;
      case Origin::native:
        if (sorted.backward.empty()) sorted.backward = backward_function(frame.function);
        if (is_native_program(frame)) sorted.native_program.push_back(&frame);
        if (sorted.first_operator == nullptr && is_operator(frame)) sorted.first_operator = &frame;
        break;
    }
  }
  return sorted;
}

// As the program's imports call it: the package of an installed file, else the file's own name.
std::string module_of(const StackFrame& frame) {
  const std::string path = slashed(frame.file);
  if (const std::string package = package_of(path); !package.empty()) return package;
  const std::string name = base_name(path);
  if (path == name && is_one(name, kEinopsFiles)) return "einops";
  if (name == "__init__.py" && name.size() < path.size()) {
    return base_name(path.substr(0, path.size() - name.size() - 1));
  }
  return name.substr(0, name.rfind('.'));
}

// The innermost frames outside PyTorch, helpers included.
std::vector<std::string> modules_of(std::span<const StackFrame> frames,
                                    std::span<const std::uint32_t> stack) {
  std::vector<std::string> modules;
  for (const std::uint32_t place : stack) {
    const Origin origin = origin_of(frames[place]);
    if (origin == Origin::program || origin == Origin::layer || origin == Origin::library) {
      modules.push_back(module_of(frames[place]));
    }
  }
  return modules;
}

std::vector<std::string> names_of(const SortedFrames& sorted, std::string (*name)(const StackFrame&)) {
  std::vector<std::string> names;
  for (const StackFrame* frame : sorted.best()) names.push_back(name(*frame));
  if (names.empty()) names.push_back(sorted.otherwise());
  return names;
}

}  // namespace

std::vector<std::string> shown_frames(std::span<const StackFrame> frames,
                                      std::span<const std::uint32_t> stack) {
  if (stack.empty()) return {kNoStack};
  return names_of(sort_frames(frames, stack), label);
}

std::vector<std::string> group_of(std::span<const StackFrame> frames, std::span<const std::uint32_t> stack,
                                  const Grouping& grouping) {
  if (stack.empty()) return {kNoStack};
  std::vector<std::string> lines;
  if (grouping.by == GroupBy::module) lines = modules_of(frames, stack);
  if (lines.empty()) {
    lines = grouping.by == GroupBy::file ? names_of(sort_frames(frames, stack), file_of)
                                         : shown_frames(frames, stack);
  }
  if (grouping.by == GroupBy::file || grouping.by == GroupBy::module) {
    lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  }
  const std::size_t all = grouping.by == GroupBy::stack ? lines.size() : 1;
  lines.resize(std::min(lines.size(), grouping.depth == 0 ? all : grouping.depth));
  return lines;
}

std::string folded_stack(std::span<const StackFrame> frames, std::span<const std::uint32_t> stack) {
  if (stack.empty()) return kNoStack;
  std::string folded;
  for (auto place = stack.rbegin(); place != stack.rend(); ++place) {
    const StackFrame& frame = frames[*place];
    std::string name = is_native(frame) ? frame.function : label(frame);
    if (name.empty()) continue;
    for (char& letter : name) {
      if (letter == ';') letter = ',';
      if (std::iscntrl(static_cast<unsigned char>(letter)) != 0) letter = ' ';
    }
    folded += (folded.empty() ? "" : ";") + name;
  }
  return folded.empty() ? kNoStack : folded;
}

bool has_windows_paths(std::span<const StackFrame> frames) {
  return std::any_of(frames.begin(), frames.end(), [](const StackFrame& frame) {
    return has_drive(frame.file) || frame.file.starts_with("\\\\");
  });
}

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : " < ") + line;
  return text;
}

}  // namespace

const StackShares::Group& StackShares::group_at(StackId stack) {
  std::optional<Group>& group = groups_[stack];
  if (group) return *group;
  group.emplace();
  group->lines = group_of(frames_, stacks_[stack], grouping_);
  if (grouping_.by == GroupBy::frame) {
    const std::vector<std::string> all = shown_frames(frames_, stacks_[stack]);
    const std::size_t first = std::min(group->lines.size(), all.size());
    const std::size_t end = std::min(all.size(), first + kMostCallers);
    group->callers.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                          all.begin() + static_cast<std::ptrdiff_t>(end));
  }
  if (grouping_.folded) group->folded = folded_stack(frames_, stacks_[stack]);
  return *group;
}

void StackShares::add(StackId stack, Bytes bytes, bool before_recording, bool apart) {
  const Group& group = group_at(stack);
  const bool unknown = before_recording && stacks_[stack].empty();
  std::string name = unknown ? kNoStackBefore : joined(group.lines);
  const bool before = before_recording && (apart || unknown);
  const auto [place, is_new] = shares_.try_emplace({name, before});
  PeakShare& share = place->second;
  if (is_new) {
    share.name = name;
    share.group = unknown ? std::vector<std::string>{name} : group.lines;
    share.callers = group.callers;
    share.before_recording = before;
  } else {
    const auto shared =
        std::mismatch(share.callers.begin(), share.callers.end(), group.callers.begin(), group.callers.end());
    share.callers.erase(shared.first, share.callers.end());
  }
  share.bytes += bytes;
  ++share.blocks;
  if (!grouping_.folded) return;
  const std::string root = before_recording ? "(in use when recording began);" : "";
  folded_[unknown ? std::string(kNoStackBefore) : root + group.folded] += bytes;
}

std::vector<PeakShare> StackShares::sorted() const {
  std::vector<PeakShare> sorted;
  for (const auto& [key, share] : shares_) sorted.push_back(share);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PeakShare& a, const PeakShare& b) { return a.bytes > b.bytes; });
  return sorted;
}

}  // namespace vramlab
