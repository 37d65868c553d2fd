// What there is for a real card: --device, and vramlab validate-device (real memory and the decisions made on
// it against the simulator, and a profile of the card). Builds without CUDA have the help too.
#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

void add_options(Options& options) {
  options.add_options()("profile", text_value("FILE"),
                        "measure the card and write what scenarios name as \"device\": {\"profile\": FILE}")(
      "leave", text_value("SIZE"),
      "a second process fills the card until SIZE is free; the recordings' own limits do not count then")(
      "families", po::bool_switch(),
      "decisions of every family: one scenario of each that comes with the program, as if it were named");
  add_output_options(options);
}

}  // namespace

void add_device_options(Options& options) {
  options.add_options()(
      "device", po::value<std::string>()->default_value("simulated")->value_name("NAME"),
      "where steps run: simulated, or cuda (this machine's cards, the first visible one first)")(
      "time-scale", po::value<double>()->default_value(1, "1")->value_name("X"),
      "with --device cuda: a step waits for this share (0 to 1) of what is left of its time when its memory "
      "work is done; the clock counts all of it");
}

DeviceMakers chosen_device(const Arguments& arguments) {
  const std::string device = text_of(arguments, "device");
  const double scale = arguments["time-scale"].as<double>();
  if (!(scale >= 0 && scale <= 1)) throw InputError("--time-scale", "must be 0 to 1.");
  if (device == "cuda") return card_makers(scale);
  if (scale != 1) throw InputError("--time-scale", "is for --device cuda: simulated steps wait for nothing.");
  if (device == "simulated") return {};
  throw InputError("--device",
                   "\"" + device + "\" is not a device." + suggest_name(device, {"simulated", "cuda"}));
}

Verb validate_device_verb() {
  return {.name = "validate-device",
          .summary = "on a machine with a card: real memory against the simulator, and a device profile",
          .operands = "[FILE...]",
          .count = {0, 100000},
          .example = "vramlab validate-device tests/data/oracle/*.json.gz --profile card.json",
          .add_options = add_options,
          .run = validate_device};
}

}  // namespace vramlab
