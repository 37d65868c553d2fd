// vramlab schema: the JSON schema of scenario files, for editors and checkers.
#include "lab/scenario/schema.hpp"

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/experiment.hpp"
#include "lab/kinds/training/spec.hpp"
#include "lab/scenario/fields.hpp"

namespace vramlab {
namespace {

void add_schema_options(Options& options) {
  options.add_options()("output,o", text_value("FILE"), "write it to a file (default: standard output)")(
      "keys", text_value("KIND"), "list the keys of one kind of scenario instead, as a table");
  add_plugin_option(options);
  add_output_options(options);
}

const RecordBase& table_of(const std::string& kind) {
  std::vector<std::string> names;
  for (const Kind& one : kinds()) {
    if (one.name == kind) return one.table();
    names.push_back(one.name);
  }
  throw InputError("--keys", "there are no scenarios of kind \"" + kind + "\"." + suggest_name(kind, names));
}

int list_keys(const std::string& kind, Output& output) {
  Table table{{left("key"), left("value"), left("range"), left("meaning")}};
  Json json = Json::array();
  for (const FieldRow& row : field_rows(table_of(kind).fields)) {
    const std::string usual = row.default_value.empty() ? "" : " (default " + row.default_value + ")";
    table.add_row({"`" + row.key + "`", row.value, row.range.empty() ? "-" : row.range,
                   row.meaning + (row.required ? " (required)" : usual)});
    json.push_back({{"key", row.key},
                    {"value", row.value},
                    {"range", row.range},
                    {"default", row.default_value},
                    {"meaning", row.meaning},
                    {"required", row.required}});
  }
  output.table(table);
  output.json(json);
  return kDone;
}

int run_schema(const Arguments& arguments, Output& output) {
  const auto kind = text_of(arguments, "keys");
  if (!kind.empty()) return list_keys(kind, output);
  const Json schema = scenario_schema(*chosen_policies(arguments, output));
  output.write(text_of(arguments, "output"), schema.dump(2) + '\n');
  output.json(schema);
  return kDone;
}

}  // namespace

Verb schema_verb() {
  return {.name = "schema",
          .summary = "the JSON schema of scenario files",
          .example = "vramlab schema -o schema.json",
          .add_options = add_schema_options,
          .run = run_schema};
}

}  // namespace vramlab
