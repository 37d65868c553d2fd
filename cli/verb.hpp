// What a verb of the program is: its options, its help, and what it does.
#pragma once

#include <functional>
#include <memory>
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

namespace po = boost::program_options;
using Options = po::options_description;
using Arguments = po::variables_map;

class Output;
class Workers;
struct LibraryCall;

/// How many operands a verb takes.
struct OperandCount {
  std::size_t least = 0;
  std::size_t most = 0;
};

/// One verb. Its options table gives parsing and help alike.
struct Verb {
  std::string name;
  std::string summary;     ///< one line
  std::string operands{};  ///< as shown in the usage line: "SCENARIO..."
  OperandCount count{};    ///< of operands
  std::string example;     ///< one command that works in the source tree
  void (*add_options)(Options&) = nullptr;
  int (*run)(const Arguments&, Output&) = nullptr;  ///< returns an ExitCode; throws InputError
  bool has_tasks = false;  ///< that ranks of an MPI job can do (cli/output/tasks.hpp)
};

/// The verbs for those who have one thing in hand.
struct VerbGroup {
  std::string have;  ///< "a policy, or the choice between several"
  std::vector<Verb> verbs;
};

/// All verbs, in the order of the help.
const std::vector<VerbGroup>& verb_groups();
std::vector<Verb> verbs();

/// What `vramlab help` prints.
std::string help();

Verb compare_verb();     // compare.cpp
Verb run_verb();         // run.cpp
Verb check_verb();       // check.cpp
Verb verify_verb();      // verify.cpp
Verb whatif_verb();      // whatif.cpp
Verb advise_verb();      // advise.cpp
Verb plan_verb();        // plan.cpp
Verb fit_verb();         // fit.cpp
Verb predict_verb();     // predict.cpp
Verb matrix_verb();      // matrix.cpp
Verb merge_verb();       // merge.cpp
Verb models_verb();      // models.cpp
Verb find_batch_verb();  // find_batch.cpp
Verb estimate_verb();    // estimate.cpp
Verb explain_verb();     // explain.cpp
Verb diff_verb();        // diff.cpp
Verb judge_verb();       // judge.cpp
Verb policies_verb();    // policies.cpp
Verb new_policy_verb();  // new_policy.cpp
Verb gpus_verb();        // gpus.cpp
Verb schema_verb();      // schema.cpp
Verb plot_verb();        // plot.cpp
Verb metrics_verb();     // metrics.cpp
Verb completion_verb();  // completion.cpp

Verb validate_device_verb();  // card_options.cpp

/// The one called `name`. Throws InputError.
const Verb& find_verb(const std::string& name);

/// What `vramlab help VERB` prints.
std::string help_of(const Verb& verb);

/// Runs the verb that the first of `words` names, for the program, alone or with `ranks`, or for `call`.
/// Returns an ExitCode; throws InputError, and what else the verb throws.
int run_verb(const std::vector<std::string>& words, LibraryCall* call = nullptr,
             const std::shared_ptr<Workers>& ranks = nullptr);

/// An ExitCode, and what is to be said on standard error: empty where nothing failed.
struct Ending {
  int code = kDone;
  std::string error;
};

/// What `work` comes to. Throws nothing.
Ending ending_of(const std::function<int()>& work);

/// The options of `verb`, as they are parsed.
Options options_of(const Verb& verb);

/// The operands as given; never fewer than the verb's least.
std::vector<std::string> operands(const Arguments& arguments);

/// What was given for an option of text, and for one that may be repeated; empty if nothing was.
std::string text_of(const Arguments& arguments, const char* option);
std::vector<std::string> texts_of(const Arguments& arguments, const char* option);

/// The value of an option of text: empty by default, and called `shown` in the help.
po::typed_value<std::string>* text_value(const char* shown);

}  // namespace vramlab
