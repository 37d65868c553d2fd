// The program `vramlab`: help, version, and the verb that its first word names.
#include <exception>
#include <iostream>

#include <malloc.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

void print_help() {
  std::cout << "vramlab replays memory policies and PyTorch's caching allocator on a simulated card.\n\n"
               "usage: vramlab VERB [options]\n\n";
  for (const Verb& verb : verbs()) {
    std::cout << "  " << verb.name << std::string(17 - verb.name.size(), ' ') << verb.summary << '\n';
  }
  std::cout << "\nvramlab help VERB   options, an example and the exit codes\n";
}

// Help that nobody gets must not look like success.
int printed() {
  if (!std::cout.flush()) throw InputError("standard output", "could not be written.");
  return kDone;
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_help();
    printed();
    return kBadInput;
  }
  const std::string& first = words.front();
  if (first == "--version") {
    std::cout << "vramlab " VRAMLAB_VERSION "\n";
    return printed();
  }
  if (first == "help" || first == "--help" || first == "-h") {
    if (words.size() > 1) {
      std::cout << help_of(find_verb(words[1]));
    } else {
      print_help();
    }
    return printed();
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
  const vramlab::Ending ending = vramlab::ending_of([&] { return vramlab::run({argv + 1, argv + argc}); });
  std::cerr << ending.error;
  return ending.code;
}
