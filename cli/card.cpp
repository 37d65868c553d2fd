#include "cli/card.hpp"

#include "cuda/card_performer.hpp"

namespace vramlab {

MakePerformer card_performers() {
  return [](const WorkloadModel& model, const ProcessSetup& setup) {
    return std::make_unique<CardPerformer>(model, setup);
  };
}

int hold_card_memory() { return run_memory_holder(); }

}  // namespace vramlab
