#include "plugins/guarded_policies.hpp"

namespace vramlab {

OptionMap checked_options(const std::string& policy, const std::vector<OptionDescription>& options,
                          const OptionMap& given) {
  std::vector<Problem> problems;
  const std::string listing = options.empty() ? " (" + policy + " has no options)"
                                              : " (vramlab policies " + policy + " lists all keys)";
  const auto values = checked_values(given, options, listing, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  OptionMap checked;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (values[i]) checked.set(options[i].key, *values[i], given.find(options[i].key)->where);
  }
  return checked;
}

}  // namespace vramlab
