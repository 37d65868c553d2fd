// A check that the containers of a pickle form no cycle and are not nested too deeply.
#pragma once

#include <string>

#include "trace/pickle_value.hpp"

namespace vramlab {

/// Throws InputError if a container that can be reached from the root contains itself, at any distance, or if
/// there are more than `depth` (at most 254) levels of containers. Looks at each container once, however
/// often it is shared. `name` stands for the file in errors.
void check_pickle_shape(const PickleDocument& document, const std::string& name, std::size_t depth);

}  // namespace vramlab
