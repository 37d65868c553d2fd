#include "lab/scenario/policies.hpp"

#include <string>
#include <utility>

#include "plugins/plugin_loader.hpp"

namespace vramlab {
namespace {

void read_entry(const Json& json, const std::string& pointer, const PolicyFamily& family, PolicyList& list,
                FileProblems& problems) {
  PolicyEntry entry;
  entry.choice.use = json["use"].get<std::string>();
  entry.choice.profile = json.value("profile", std::string{});
  entry.choice.where = pointer;
  const std::string usual = family.find(entry.choice);
  entry.label = json.value("label", usual);
  const std::string fault = label_fault(entry.label, list.labels);
  if (!fault.empty()) problems.add(pointer, fault);
  static const std::set<std::string> kOwnKeys{"use", "profile", "label"};
  entry.choice.options = policy_options(json, kOwnKeys, pointer, problems);
  family.try_out(entry.choice);
  list.entries.push_back(std::move(entry));
}

}  // namespace

std::string label_fault(const std::string& label, std::set<std::string>& taken) {
  if (label.empty())
    return "\"label\" is empty. Give this policy a name to tell it by, or leave the key out.";
  if (taken.insert(label).second) return {};
  return "the label \"" + label + "\" is taken. Give this policy a \"label\" of its own.";
}

PolicyList read_policy_list(const Json& policies, const PolicyFamily& family, FileProblems& problems) {
  PolicyList list;
  if (policies.empty()) problems.add("/policies", "the list is empty; name at least one policy.");
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const std::string pointer = "/policies/" + std::to_string(i);
    problems.guarded(pointer, [&] { read_entry(policies[i], pointer, family, list, problems); });
    list.complete = list.complete && list.entries.size() == i + 1;
  }
  return list;
}

std::shared_ptr<const PolicySet> with_scenario_plugins(const Json& scenario,
                                                       const std::filesystem::path& file,
                                                       std::shared_ptr<const PolicySet> known,
                                                       FileProblems& problems) {
  const Json names = scenario.value("plugins", Json::array());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = names[i].get<std::string>();
    try {
      known = with_plugin(known, file.parent_path() / name);
    } catch (const InputError& error) {
      problems.add("/plugins/" + std::to_string(i),
                   "the plugin " + name + ": " + error.problems().front().what);
    }
  }
  return known;
}

}  // namespace vramlab
