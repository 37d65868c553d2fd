#include "cli/card.hpp"
#include "sim/core/error.hpp"

namespace vramlab {

void add_device_option(Options& options) {
  options.add_options()(
      "device", boost::program_options::value<std::string>()->default_value("simulated")->value_name("NAME"),
      "where steps run: simulated, or cuda (this machine's first visible card)");
}

MakePerformer chosen_performer(const Arguments& arguments) {
  const std::string device = arguments["device"].as<std::string>();
  if (device == "cuda") return card_performers();
  if (device == "simulated") return {};
  throw InputError("--device",
                   "\"" + device + "\" is no device." + suggest_name(device, {"simulated", "cuda"}));
}

}  // namespace vramlab
