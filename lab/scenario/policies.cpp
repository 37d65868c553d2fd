#include "lab/scenario/policies.hpp"

#include <algorithm>
#include <utility>

#include "plugins/plugin_loader.hpp"

namespace vramlab {

std::vector<Row<PolicySection>> policy_rows() {
  using P = PolicySection;
  return {{"use", &P::use, "", 0, 0, "a policy of `vramlab policies`", kRequired},
          {"profile", &P::profile, "", 0, 0, "a named set of its options (default: the policy's own)"},
          {"label", &P::label, "", 0, 0, "its name in tables (default: policy and profile)"}};
}

const Record<PolicySection>& policy_table() {
  static const Record<PolicySection> table{policy_rows(), raw(FieldKind::object, &PolicySection::json)};
  return table;
}

std::string label_fault(const std::string& label, std::set<std::string>& taken) {
  if (label.empty())
    return "\"label\" is empty. Give this policy a name to tell it by, or leave the key out.";
  if (taken.insert(label).second) return {};
  return "the label \"" + label + "\" is taken. Give this policy a \"label\" of its own.";
}

PolicyList read_policy_list(const std::vector<PolicySection>& policies, const PolicyFamily& family,
                            FileProblems& problems, const RecordBase& table) {
  PolicyList list;
  if (policies.empty()) problems.add("/policies", "the list is empty; name at least one policy.");
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const std::string pointer = "/policies/" + std::to_string(i);
    problems.guarded(pointer, [&] {
      const PolicySection& section = policies[i];
      PolicyEntry entry;
      entry.choice.use = section.use;
      entry.choice.profile = section.profile.value_or("");
      entry.choice.where = pointer;
      const std::string usual = family.find(entry.choice);
      entry.label = section.label.value_or(usual);
      const std::string fault = label_fault(entry.label, list.labels);
      if (!fault.empty()) problems.add(pointer, fault);
      if (section.json != nullptr) {
        entry.choice.options = policy_options(*section.json, table, pointer, problems);
      }
      family.try_out(entry.choice);
      list.entries.push_back(std::move(entry));
    });
    list.complete = list.complete && list.entries.size() == i + 1;
  }
  return list;
}

OptionMap policy_options(const Json& entry, const RecordBase& table, const std::string& pointer,
                         FileProblems& problems) {
  const std::vector<std::string> own = keys_of(table.fields);
  OptionMap options;
  for (const auto& [key, value] : entry.items()) {
    if (std::find(own.begin(), own.end(), key) != own.end()) continue;
    const std::string where = pointer + "/" + key;
    if (value.is_boolean()) {
      options.set(key, value.get<bool>(), where);
    } else if (value.is_number_integer()) {
      options.set(key, value.get<std::int64_t>(), where);
    } else if (value.is_number()) {
      options.set(key, value.get<double>(), where);
    } else if (value.is_string()) {
      options.set(key, value.get<std::string>(), where);
    } else {
      problems.add(where,
                   "an option is a number, true or false, or text in quotes." + suggest_name(key, own));
    }
  }
  return options;
}

std::shared_ptr<const PolicySet> with_plugins(const std::vector<std::string>& plugins,
                                              const std::filesystem::path& file,
                                              std::shared_ptr<const PolicySet> known,
                                              FileProblems& problems) {
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    try {
      known = with_plugin(known, file.parent_path() / plugins[i]);
    } catch (const InputError& error) {
      problems.add("/plugins/" + std::to_string(i),
                   "the plugin " + plugins[i] + ": " + error.problems().front().what);
    }
  }
  return known;
}

}  // namespace vramlab
