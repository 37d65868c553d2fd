// The program that scripts/demo runs: `compare`, of training scenarios alone, on a simulated card. It is
// built in half the time of the whole, of the same sources.
#include <csignal>
#include <cstdlib>
#include <iostream>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"

namespace vramlab {

Kind training_kind();  // lab/kinds/training/view.cpp

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kinds{training_kind()};
  return kinds;
}

const std::vector<VerbGroup>& verb_groups() {
  static const std::vector<VerbGroup> groups{{"a policy, or the choice between several", {compare_verb()}}};
  return groups;
}

}  // namespace vramlab

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // as in cli/main.cpp
  const std::vector<std::string> words{argv + 1, argv + argc};
  const vramlab::Ending ending = vramlab::ending_of([&] {
    if (words.empty()) throw vramlab::InputError("", "usage: vramlab_compare compare SCENARIO [options]");
    if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
      throw vramlab::InputError("mpirun", "this program is no rank of a job.");
    }
    return vramlab::run_verb(words);
  });
  std::cerr << ending.error;
  if (ending.code == vramlab::kBadInput) {
    std::cerr << "vramlab_compare compares training scenarios and no more; \"scripts/build program\" makes "
                 "vramlab, "
                 "which knows every verb and kind.\n";
  }
  return ending.code;
}
