#include "policies/tuners/period.hpp"

#include "core/error.hpp"

namespace vramlab {

std::size_t default_parameter(const ParameterSpace& space) { return space.find("batch").value_or(0); }

std::size_t require_parameter(const ParameterSpace& space, const std::string& parameter,
                              const std::string& policy) {
  if (parameter.empty()) return default_parameter(space);
  if (const auto index = space.find(parameter)) return *index;
  std::vector<std::string> names;
  for (const Parameter& candidate : space.parameters) names.push_back(candidate.name);
  throw InputError("", "the policy " + policy + " moves \"" + parameter +
                           "\", which this workload does not have." + suggest_name(parameter, names));
}

}  // namespace vramlab
