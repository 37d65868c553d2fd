// vramlab schema: the JSON schema of scenario files, for editors and checkers.
#include "cli/output.hpp"
#include "cli/plugin_option.hpp"
#include "cli/verb.hpp"
#include "lab/scenario.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

void add_options(Options& options) {
  options.add_options()("output,o", po::value<std::string>()->default_value("")->value_name("FILE"),
                        "write it to a file (default: standard output)");
  add_plugin_option(options);
  add_output_options(options);
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const Json schema = scenario_schema(*chosen_policies(arguments));
  const auto file = arguments["output"].as<std::string>();
  if (file.empty()) {
    output.line(schema.dump(2));
  } else {
    write_file(file, schema.dump(2) + '\n');
    output.wrote(file);
  }
  output.json(schema);
  return kDone;
}

}  // namespace

Verb schema_verb() {
  return {.name = "schema",
          .summary = "the JSON schema of scenario files",
          .operands = "",
          .example = "vramlab schema -o schema.json",
          .least_operands = 0,
          .most_operands = 0,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
