// All kinds of scenarios. A program that knows fewer has a list of its own (cli/compare/program.cpp).
#include "lab/experiment.hpp"

namespace vramlab {

// Each in lab/kinds/NAME/view.cpp.
Kind training_kind();
Kind jobs_kind();
Kind epoch_kind();
Kind search_kind();
Kind snapshot_kind();
Kind regression_kind();

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kinds{training_kind(), jobs_kind(),     epoch_kind(),
                                       search_kind(),   snapshot_kind(), regression_kind()};
  return kinds;
}

}  // namespace vramlab
