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
  return {{"key", option.key},
          {"type", std::string{option_type_name(option.kind)}},
          {"default", default_json(option)},
          {"allowed", describe_allowed(option)},
          {"unit", option.unit},
          {"help", option.help}};
}

Json profile_json(const PolicyProfile& profile) {
  Json options = Json::object();
  for (const OptionEntry& entry : profile.options.entries()) {
    options[entry.key] = std::visit([](const auto& value) { return Json(value); }, entry.value);
  }
  return {{"name", profile.name}, {"summary", profile.summary}, {"options", std::move(options)}};
}

template <class Entry>
Json kind_json(const Entry& tuner) {
  Json options = Json::array();
  for (const Field& option : tuner.options) options.push_back(option_json(option));
  Json profiles = Json::array();
  for (const PolicyProfile& profile : tuner.profiles) profiles.push_back(profile_json(profile));
  return {{"name", tuner.name},
          {"summary", tuner.summary},
          {"options", std::move(options)},
          {"profiles", std::move(profiles)}};
}

template <class Entry>
void describe(const Entry& tuner, Output& output) {
  output.line(tuner.name + ": " + tuner.summary + "\n");
  Table options{{left("option"), "default", left("allowed"), left("meaning")}};
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
    output.line("\nprofile {}{}: {}\n  {}", profile.name,
                profile.name == tuner.default_profile ? " (default)" : "", profile.summary,
                values.empty() ? "the defaults above" : values);
  }
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

void list(const PolicySet& policies, Output& output) {
  Table table{{left("policy"), left("profiles"), left("what it does")}};
  Json json = Json::array();
  policies.for_each([&](const auto& kind) {
    std::string profiles;
    for (const PolicyProfile& profile : kind.profiles)
      profiles += (profiles.empty() ? "" : ", ") + profile.name;
    const std::string plugin = origin(policies, kind.name);
    table.add_row({kind.name, profiles.empty() ? "-" : profiles,
                   kind.summary + (plugin.empty() ? "" : " (" + plugin + ")")});
    json.push_back(kind_json(kind));
    if (!plugin.empty()) json.back()["plugin"] = plugin;
  });
  table.add_row(
      {"oracle", "-", "the best safe fixed choice; found for every comparison, not listed in scenarios"});
  output.table(table);
  output.json(json);
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

int run_policies(const Arguments& arguments, Output& output) {
  const auto policies = chosen_policies(arguments, output);
  const auto names = operands(arguments);
  names.empty() ? list(*policies, output) : show(*policies, names.front(), output);
  return kDone;
}

void add_policies_options(Options& options) {
  add_plugin_option(options);
  add_output_options(options);
}

}  // namespace

Verb policies_verb() {
  return {.name = "policies",
          .summary = "the policies there are, and every option of one of them",
          .operands = "[NAME]",
          .count = {0, 1},
          .example = "vramlab policies dual-optimizer",
          .add_options = add_policies_options,
          .run = run_policies};
}

}  // namespace vramlab
