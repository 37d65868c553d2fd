#include "recordings/lifetimes/call_paths.hpp"

#include <algorithm>
#include <cctype>

namespace vramlab {
namespace {

bool is_python_file(const StackFrame& frame) { return frame.file.ends_with(".py"); }

// What every call of a module goes through.
bool is_module_call(const StackFrame& frame) {
  return last_part(frame.file) == "module.py" &&
         (frame.function == "_call_impl" || frame.function == "_wrapped_call_impl");
}

bool is_of_autograd(const StackFrame& frame) {
  return frame.function == "_engine_run_backward" || frame.function == "unpack_hook" ||
         frame.function.find("autograd::Engine") != std::string::npos;
}

}  // namespace

std::string_view last_part(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_module_name(const StackFrame& frame) {
  return frame.line == 0 && !frame.file.empty() && !frame.function.empty() &&
         std::ranges::all_of(frame.file,
                             [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

bool is_container(const StackFrame& frame) { return last_part(frame.file) == "container.py"; }

CallPath::CallPath(const ClientProgram& program, const std::vector<std::uint32_t>& stack) {
  for (auto place = stack.rbegin(); place != stack.rend(); ++place) {
    const StackFrame& frame = program.frames[*place];
    of_autograd = of_autograd || is_of_autograd(frame);
    if (is_module_name(frame)) lines.push_back({*place, true});
    if (!is_python_file(frame)) continue;
    if (!is_module_call(frame)) {
      lines.push_back({*place, false});
    } else if (!lines.empty()) {
      lines.back().calls = true;
    }
  }
}

std::vector<CallPath> call_paths(const ClientProgram& program) {
  std::vector<CallPath> paths;
  paths.reserve(program.stacks.size());
  for (const auto& stack : program.stacks) paths.emplace_back(program, stack);
  return paths;
}

}  // namespace vramlab
