// vramlab policies: what there is, with every option.
#include <algorithm>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/json.hpp"
#include "lab/scenario/schema.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

Json option_json(const Field& option) {
  Json json;
  json["key"] = option.key;
  json["type"] = std::string{option_type_name(option.kind)};
  json["default"] = default_json(option);
  json["allowed"] = describe_allowed(option);
  json["unit"] = option.unit;
  json["help"] = option.help;
  return json;
}

Json profile_json(const PolicyProfile& profile) {
  Json json;
  json["name"] = profile.name;
  json["summary"] = profile.summary;
  json["options"] = Json::object();
  for (const OptionEntry& entry : profile.options.entries()) {
    json["options"][entry.key] = std::visit([](const auto& value) { return Json(value); }, entry.value);
  }
  return json;
}

template <class Entry>
Json kind_json(const Entry& tuner) {
  Json json;
  json["name"] = tuner.name;
  json["summary"] = tuner.summary;
  json["options"] = Json::array();
  for (const Field& option : tuner.options) json["options"].push_back(option_json(option));
  json["profiles"] = Json::array();
  for (const PolicyProfile& profile : tuner.profiles) json["profiles"].push_back(profile_json(profile));
  return json;
}

template <class Entry>
void describe(const Entry& tuner, Output& output) {
  output.line(tuner.name + ": " + tuner.summary + "\n");
  Table options{{{"option", Table::Align::left},
                 {"default"},
                 {"allowed", Table::Align::left},
                 {"meaning", Table::Align::left}}};
  for (const Field& option : tuner.options) {
    options.add_row({option.key, default_text(option), describe_allowed(option),
                     option.help + (option.unit.empty() ? "" : " [" + option.unit + "]")});
  }
  if (tuner.options.empty())
    output.line("It has no options.");
  else
    output.table(options);
  for (const PolicyProfile& profile : tuner.profiles) {
    std::string values;
    for (const OptionEntry& entry : profile.options.entries()) {
      values +=
          fmt::format("{}{} {}", values.empty() ? "" : ", ", entry.key, format_option_value(entry.value));
    }
    output.line(fmt::format("\nprofile {}{}: {}\n  {}", profile.name,
                            profile.name == tuner.default_profile ? " (default)" : "", profile.summary,
                            values.empty() ? "the defaults above" : values));
  }
}

template <class Entry>
std::vector<std::string> row_of(const Entry& entry) {
  std::string profiles;
  for (const PolicyProfile& profile : entry.profiles)
    profiles += (profiles.empty() ? "" : ", ") + profile.name;
  return {entry.name, profiles.empty() ? "-" : profiles, entry.summary};
}

// Which plugin a policy comes from; empty for a built-in one.
std::string origin(const PolicySet& policies, const std::string& name) {
  for (const PolicyPlugin& plugin : policies.plugins) {
    const auto& names = plugin.policies;
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    return fmt::format("plugin {} {}", plugin.name, plugin.version);
  }
  return {};
}

Json listed_json(const PolicySet& policies) {
  Json json = Json::array();
  policies.for_each([&](const auto& kind) {
    Json entry = kind_json(kind);
    if (const auto plugin = origin(policies, kind.name); !plugin.empty()) entry["plugin"] = plugin;
    json.push_back(std::move(entry));
  });
  return json;
}

void list(const PolicySet& policies, Output& output) {
  Table table{{{"policy", Table::Align::left},
               {"profiles", Table::Align::left},
               {"what it does", Table::Align::left}}};
  policies.for_each([&](const auto& kind) {
    auto row = row_of(kind);
    if (const auto plugin = origin(policies, kind.name); !plugin.empty()) row.back() += " (" + plugin + ")";
    table.add_row(std::move(row));
  });
  table.add_row(
      {"oracle", "-", "the best safe fixed choice; found for every comparison, not listed in scenarios"});
  output.table(table);
}

void show(const PolicySet& policies, const std::string& name, Output& output) {
  bool found = false;
  policies.for_each([&](const auto& kind) {
    if (kind.name != name) return;
    found = true;
    describe(kind, output);
    if (const auto plugin = origin(policies, name); !plugin.empty()) output.line("\nfrom " + plugin);
    output.json(kind_json(kind));
  });
  if (!found) throw InputError("", "no policy \"" + name + "\"." + suggest_name(name, policies.names()));
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const auto policies = chosen_policies(arguments);
  const auto names = operands(arguments);
  if (!names.empty()) {
    show(*policies, names.front(), output);
    return kDone;
  }
  list(*policies, output);
  output.json(listed_json(*policies));
  return kDone;
}

void add_options(Options& options) {
  add_plugin_option(options);
  add_output_options(options);
}

}  // namespace

Verb policies_verb() {
  return {.name = "policies",
          .summary = "the policies there are, and every option of one of them",
          .operands = "[NAME]",
          .example = "vramlab policies dual-optimizer",
          .least_operands = 0,
          .most_operands = 1,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
