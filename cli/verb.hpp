// What a verb of the program is: its options, its help, and what it does.
#pragma once

#include <string>
#include <vector>

#include <boost/program_options.hpp>

namespace vramlab {

enum ExitCode : int {
  kDone = 0,
  kExpectationFailed = 1,  ///< an expectation or a verification did not hold
  kBadInput = 2,
  kInternalError = 3,
  kStoppedByUser = 130  ///< Ctrl-C; what was finished is kept
};

using Options = boost::program_options::options_description;
using Arguments = boost::program_options::variables_map;

/// One verb. Its options table gives parsing and help alike.
struct Verb {
  std::string name;
  std::string summary;   ///< one line
  std::string operands;  ///< as shown in the usage line: "SCENARIO..."
  std::string example;   ///< one command that works in the source tree
  std::size_t least_operands = 0;
  std::size_t most_operands = 0;
  void (*add_options)(Options&) = nullptr;  ///< null if it has none of its own
  int (*run)(const Arguments&) = nullptr;   ///< returns an ExitCode; throws InputError
};

/// All verbs, in the order of the help.
const std::vector<Verb>& verbs();

Verb compare_verb();     // compare.cpp
Verb run_verb();         // run.cpp
Verb check_verb();       // check.cpp
Verb verify_verb();      // verify.cpp
Verb whatif_verb();      // whatif.cpp
Verb fit_verb();         // fit.cpp
Verb predict_verb();     // predict.cpp
Verb matrix_verb();      // matrix.cpp
Verb models_verb();      // models.cpp
Verb find_batch_verb();  // find_batch.cpp
Verb estimate_verb();    // estimate.cpp
Verb explain_verb();     // explain.cpp
Verb diff_verb();        // diff.cpp
Verb policies_verb();    // policies.cpp
Verb new_policy_verb();  // new_policy.cpp
Verb gpus_verb();        // gpus.cpp
Verb schema_verb();      // schema.cpp
Verb plot_verb();        // plot.cpp
Verb metrics_verb();     // metrics.cpp
Verb completion_verb();  // completion.cpp

Verb validate_device_verb();   // validate_device_verb.cpp
Verb hold_card_memory_verb();  // the same; for the program itself, and in no list

/// The operands as given; never fewer than `least_operands`.
std::vector<std::string> operands(const Arguments& arguments);

}  // namespace vramlab
