#include "cli/card.hpp"
#include "sim/core/error.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

}  // namespace

void add_device_option(Options& options) {
  options.add_options()("device", po::value<std::string>()->default_value("simulated")->value_name("NAME"),
                        "where steps run: simulated, or cuda (this machine's first visible card)");
}

bool wants_card(const Arguments& arguments) {
  const std::string device = arguments["device"].as<std::string>();
  if (device == "simulated") return false;
  if (device == "cuda") return true;
  throw InputError("--device",
                   "\"" + device + "\" is no device." + suggest_name(device, {"simulated", "cuda"}));
}

void choose_device(const Arguments& arguments, Scenario& scenario) {
  if (wants_card(arguments)) scenario.setup.make_performer = card_performers();
}

}  // namespace vramlab
