// A network's figures from a Hugging Face config.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "models/layers/spec.hpp"

namespace vramlab {

/// What a config.json says.
struct NetworkConfig {
  layers::NetworkSpec network;
  std::optional<layers::Number> number;  ///< of the weights, where it says so
  std::vector<std::string>
      defaults;  ///< keys that it leaves out, with the values that stand in: "num_layers 6"
};

/// Reads `json`; a key that it does not have counts as in the configuration class of transformers. Keys that
/// say nothing about memory are passed over. Throws InputError with `where` and the JSON pointer for a value
/// that is out of range, and for an architecture that is not known, with the nearest that is.
NetworkConfig read_network_config(const Json& json, const std::string& where);

}  // namespace vramlab
