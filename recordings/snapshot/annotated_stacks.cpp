#include "recordings/snapshot/annotated_stacks.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

namespace vramlab {
namespace {

bool has_stacks(const TorchSnapshot& snapshot) {
  return std::ranges::any_of(snapshot.traces, [](const auto& trace) {
    return std::ranges::any_of(trace, [](const TraceEntry& entry) { return entry.stack != 0; });
  });
}

// "Optimizer.step#AdamW.step" and what programs call these parts themselves.
bool is_beside_forward(const std::string& name) {
  std::string low = name;
  std::ranges::transform(low, low.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return low.find("backward") != std::string::npos || low.find("optim") != std::string::npos;
}

// A whole step is no part of one: what torch.profiler's steps and the exports of `vramlab run` are called.
bool is_step(const std::string& name) {
  return name.starts_with("ProfilerStep#") || name.starts_with("iteration ");
}

// "model" and "model.layers.3" of "model.layers.3": what a module lies in, but for lists.
std::vector<std::string> parents_of(const std::string& name) {
  std::vector<std::string> parents;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    const bool list = dot + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[dot + 1])) != 0;
    if (!list) parents.push_back(name.substr(0, dot));
  }
  parents.push_back(name);
  return parents;
}

/// Writes names into the stacks of a snapshot that has none.
class StackNames {
 public:
  explicit StackNames(TorchSnapshot& snapshot) : snapshot_(snapshot) {}

  bool name() {
    for (std::size_t device = 0; device < snapshot_.traces.size(); ++device) annotate(device);
    if (!found_) label();
    return found_;
  }

 private:
  void annotate(std::size_t device) {
    std::vector<const SnapshotAnnotation*> notes;
    for (const SnapshotAnnotation& note : snapshot_.annotations) {
      if (note.device == static_cast<int>(device)) notes.push_back(&note);
    }
    std::ranges::stable_sort(notes, {}, [](const auto* note) { return note->time_us; });
    std::vector<std::string> open;
    auto next = notes.begin();
    // One that begins comes before the entries of its microsecond, one that ends behind them.
    for (TraceEntry& entry : snapshot_.traces[device]) {
      while (next != notes.end() &&
             ((*next)->time_us < entry.time_us || ((*next)->start && (*next)->time_us == entry.time_us)))
        follow(**next++, open);
      if (!open.empty()) entry.stack = stack_of(open);
    }
  }

  void label() {
    for (auto& trace : snapshot_.traces) {
      for (TraceEntry& entry : trace) {
        const std::string& said = snapshot_.labels[entry.label];
        if (!said.empty() && !said.starts_with("torch.compile ")) entry.stack = stack_of(parents_of(said));
      }
    }
  }

  static void follow(const SnapshotAnnotation& note, std::vector<std::string>& open) {
    if (is_step(note.name)) return;
    if (note.start) {
      open.push_back(note.name);
      return;
    }
    const auto ended = std::find(open.rbegin(), open.rend(), note.name);
    if (ended != open.rend()) open.erase(std::next(ended).base());
  }

  // `names`: the outermost first.
  StackId stack_of(const std::vector<std::string>& names) {
    if (std::ranges::any_of(names, is_beside_forward)) return 0;
    found_ = true;
    const auto [known, is_new] = stacks_.try_emplace(names, static_cast<StackId>(snapshot_.stacks.size()));
    if (!is_new) return known->second;
    std::vector<std::uint32_t> stack{frame_of(std::string{kAnnotatedProgram})};
    for (const std::string& name : names) stack.push_back(frame_of(name));
    std::ranges::reverse(stack);
    snapshot_.stacks.push_back(std::move(stack));
    return known->second;
  }

  std::uint32_t frame_of(const std::string& name) {
    const auto [known, is_new] =
        frames_.try_emplace(name, static_cast<std::uint32_t>(snapshot_.frames.size()));
    if (is_new) snapshot_.frames.push_back({name, std::string{kAnnotationFile}, 0});
    return known->second;
  }

  TorchSnapshot& snapshot_;
  bool found_ = false;
  std::map<std::vector<std::string>, StackId> stacks_;
  std::map<std::string, std::uint32_t> frames_;
};

}  // namespace

bool name_stacks(TorchSnapshot& snapshot) { return !has_stacks(snapshot) && StackNames(snapshot).name(); }

}  // namespace vramlab
