#include "cli/options.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

[[noreturn]] void refuse() {
  throw InputError("",
                   "this build has no CUDA; build it where a CUDA toolkit of at least 12.5 is installed to "
                   "use a real card.");
}

}  // namespace

DeviceMakers card_makers(double) { refuse(); }
int validate_device(const Arguments&, Output&) { refuse(); }
int hold_card_memory(int) { refuse(); }
int perform_card_job(int) { refuse(); }

}  // namespace vramlab
