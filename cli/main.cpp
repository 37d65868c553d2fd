// The program `vramlab`: help, version, and the verb that its first word names.
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include <malloc.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

std::string help() {
  std::string text =
      "vramlab replays memory policies and PyTorch's caching allocator on a simulated card.\n\n"
      "usage: vramlab VERB [options]\n\n";
  for (const VerbGroup& group : verb_groups()) {
    text += "you have " + group.have + ":\n";
    for (const Verb& verb : group.verbs) {
      text += "  " + verb.name + std::string(17 - verb.name.size(), ' ') + verb.summary + '\n';
    }
    text += '\n';
  }
  return text + "vramlab help VERB   options, an example and the exit codes\n";
}

int print(const std::string& text, int code = kDone) {
  print_to(nullptr, text);
  return code;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) return print(help(), kBadInput);
  const std::string& first = words.front();
  if (first == "--version") return print("vramlab " VRAMLAB_VERSION "\n");
  if (first == "help" || first == "--help" || first == "-h") {
    return print(words.size() > 1 ? help_of(find_verb(words[1])) : help());
  }
  if (first == "hold-card-memory") return hold_card_memory();  // for the program itself, and in no list
  if (first == "perform-card-job") return perform_card_job();
  return run_verb(words);
}

// Step programs are written and dropped by the thousand. The C library would give their pages back to the
// kernel and ask for them anew each time: more than half of an epoch's time (docs/performance.md).
void keep_freed_pages() {
  constexpr int kTrim = 512 << 20;  // bytes free at the top of a heap before it shrinks
  constexpr int kMap = 32 << 20;    // bytes from which an allocation is mapped alone; the most there is
  mallopt(M_TRIM_THRESHOLD, kTrim);
  mallopt(M_MMAP_THRESHOLD, kMap);
}

}  // namespace
}  // namespace vramlab

int main(int argc, char** argv) {
  vramlab::keep_freed_pages();
  std::signal(SIGPIPE, SIG_IGN);  // who reads the text may go; the files are still written (print_to)
  const vramlab::Ending ending = vramlab::ending_of([&] { return vramlab::run({argv + 1, argv + argc}); });
  std::cerr << ending.error;
  return ending.code;
}
