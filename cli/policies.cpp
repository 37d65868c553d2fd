// vramlab policies: what there is, with every option.
#include <fmt/format.h>

#include "cli/output.hpp"
#include "cli/verb.hpp"
#include "lab/json_text.hpp"
#include "policies/admitter_registry.hpp"
#include "policies/registry.hpp"
#include "policies/searcher_registry.hpp"

namespace vramlab {
namespace {

Json option_json(const OptionDescription& option) {
  Json json;
  json["key"] = option.key;
  json["type"] = std::string{option_type_name(option.type)};
  json["default"] = std::visit([](const auto& value) { return Json(value); }, option.default_value);
  json["allowed"] = describe_allowed(option);
  json["unit"] = option.unit;
  json["help"] = option.help;
  return json;
}

Json profile_json(const TunerProfile& profile) {
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
Json tuner_json(const Entry& tuner) {
  Json json;
  json["name"] = tuner.name;
  json["summary"] = tuner.summary;
  json["options"] = Json::array();
  for (const OptionDescription& option : tuner.options) json["options"].push_back(option_json(option));
  json["profiles"] = Json::array();
  for (const TunerProfile& profile : tuner.profiles) json["profiles"].push_back(profile_json(profile));
  return json;
}

template <class Entry>
void describe(const Entry& tuner, Output& output) {
  output.line(tuner.name + ": " + tuner.summary + "\n");
  Table options{{{"option", Table::Align::left},
                 {"default"},
                 {"allowed", Table::Align::left},
                 {"meaning", Table::Align::left}}};
  for (const OptionDescription& option : tuner.options) {
    options.add_row({option.key, format_option_value(option.default_value), describe_allowed(option),
                     option.help + (option.unit.empty() ? "" : " [" + option.unit + "]")});
  }
  if (tuner.options.empty())
    output.line("It has no options.");
  else
    output.table(options);
  for (const TunerProfile& profile : tuner.profiles) {
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

void list(Output& output) {
  Table table{{{"policy", Table::Align::left},
               {"profiles", Table::Align::left},
               {"what it does", Table::Align::left}}};
  for (const TunerEntry& tuner : builtin_tuners()) table.add_row(row_of(tuner));
  for (const AdmitterEntry& admitter : builtin_admitters()) table.add_row(row_of(admitter));
  for (const SearcherEntry& searcher : builtin_searchers()) table.add_row(row_of(searcher));
  table.add_row(
      {"oracle", "-", "the best safe fixed choice; found for every comparison, not listed in scenarios"});
  output.table(table);
}

const SearcherEntry* searcher_called(const std::string& name) {
  for (const SearcherEntry& searcher : builtin_searchers()) {
    if (searcher.name == name) return &searcher;
  }
  return nullptr;
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const auto names = operands(arguments);
  if (names.empty()) {
    list(output);
    Json json = Json::array();
    for (const TunerEntry& tuner : builtin_tuners()) json.push_back(tuner_json(tuner));
    for (const AdmitterEntry& admitter : builtin_admitters()) json.push_back(tuner_json(admitter));
    for (const SearcherEntry& searcher : builtin_searchers()) json.push_back(tuner_json(searcher));
    output.json(json);
  } else if (names.front() == builtin_admitters().front().name) {
    describe(builtin_admitters().front(), output);
    output.json(tuner_json(builtin_admitters().front()));
  } else if (const SearcherEntry* searcher = searcher_called(names.front())) {
    describe(*searcher, output);
    output.json(tuner_json(*searcher));
  } else {
    const TunerEntry& tuner = find_tuner(names.front());
    describe(tuner, output);
    output.json(tuner_json(tuner));
  }
  return kDone;
}

}  // namespace

Verb policies_verb() {
  return {.name = "policies",
          .summary = "the policies there are, and every option of one of them",
          .operands = "[NAME]",
          .example = "vramlab policies dual-optimizer",
          .least_operands = 0,
          .most_operands = 1,
          .add_options = add_output_options,
          .run = run};
}

}  // namespace vramlab
