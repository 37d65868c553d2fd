// compare SCENARIO PLUGIN: reads a scenario whose policy the plugin has, and runs it.
#include <iostream>

#include "lab/kinds/training/run.hpp"
#include "plugins/plugin_loader.hpp"
#include "recordings/input_file.hpp"

int main(int, char** argv) {
  using namespace vramlab;
  const auto policies = with_plugin(builtin_policies(), argv[2]);
  const TrainingScenario scenario =
      read_training(parse_document(read_input_file(argv[1]), argv[1], policies));
  const PolicyResult result = run_policy(scenario, scenario.policies.front());
  std::cout << result.label << " ends at " << result.run.final_point.front() << " after "
            << result.run.adjustments.size() << " change\n";
  return result.run.final_point.front() == 7 && result.run.adjustments.size() == 1 ? 0 : 1;
}
