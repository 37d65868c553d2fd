// vramlab validate-device: real memory against the simulator, and a profile of the card. Only the help is
// here; builds without CUDA have it too.
#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

void add_options(Options& options) {
  options.add_options()("profile", po::value<std::string>()->default_value("")->value_name("FILE"),
                        "measure the card and write what scenarios name as \"device\": {\"profile\": FILE}")(
      "leave", po::value<std::string>()->default_value("")->value_name("SIZE"),
      "a second process fills the card until SIZE is free; the recordings' own limits do not count then");
  add_output_options(options);
}

int hold(const Arguments&) { return hold_card_memory(); }

}  // namespace

Verb validate_device_verb() {
  return {.name = "validate-device",
          .summary = "on a machine with a card: real memory against the simulator, and a device profile",
          .operands = "[RECORDING...]",
          .example = "vramlab validate-device tests/data/oracle/*.json.gz --profile card.json",
          .least_operands = 0,
          .most_operands = 100000,
          .add_options = add_options,
          .run = validate_device};
}

Verb hold_card_memory_verb() {
  return {.name = "hold-card-memory",
          .summary = "",
          .operands = "",
          .example = "",
          .least_operands = 0,
          .most_operands = 0,
          .add_options = nullptr,
          .run = hold};
}

}  // namespace vramlab
