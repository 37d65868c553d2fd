// The verbs by name: how the words of one are parsed, and how it ends.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <iterator>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {
namespace {

std::string usage(const Verb& verb) {
  return "usage: vramlab " + verb.name + (verb.operands.empty() ? "" : " " + verb.operands) + " [options]";
}

Arguments parse(const Verb& verb, const std::vector<std::string>& words) {
  Options all = options_of(verb);
  Options hidden;
  hidden.add_options()("operand", po::value<std::vector<std::string>>()->default_value({}, ""));
  all.add(hidden);
  po::positional_options_description positions;
  positions.add("operand", -1);
  Arguments arguments;
  po::store(po::command_line_parser(words)
                .options(all)
                .positional(positions)
                .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                .run(),
            arguments);
  if (!arguments.contains("help")) po::notify(arguments);  // refuses what lacks a required option
  return arguments;
}

void check_operands(const Verb& verb, const Arguments& arguments) {
  const std::size_t given = operands(arguments).size();
  if (given >= verb.count.least && given <= verb.count.most) return;
  throw InputError("", usage(verb) + " (vramlab help " + verb.name + " explains them)");
}

// The library names the option; we add which ones there are.
std::string explain(const po::error& error, const Verb& verb) {
  std::string text = std::string{error.what()} + ".";
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error)) {
    std::vector<std::string> names;
    const Options options = options_of(verb);  // the loop must not outlive the temporary
    for (const auto& option : options.options()) names.push_back("--" + option->long_name());
    text = unknown->get_option_name() + " is not an option of " + verb.name + "." +
           suggest_name(unknown->get_option_name(), names);
  }
  return text;
}

// Those that read no file of the user's.
constexpr const char* kWithoutFiles[] = {"policies", "new-policy", "gpus",      "models",
                                         "schema",   "metrics",    "completion"};

bool reads_files(const Verb& verb) {
  return std::ranges::find(kWithoutFiles, verb.name) == std::end(kWithoutFiles);
}

std::optional<InflationLimit> chosen_inflation(const Arguments& arguments) {
  const std::string text = text_of(arguments, "max-inflated");
  if (text.empty()) return std::nullopt;
  const auto size = parse_bytes(text);
  if (!size || *size == 0) {
    throw InputError("--max-inflated",
                     '"' + text + "\" is not a size. Write 8GiB, 8192MiB or a number of bytes.");
  }
  return std::optional<InflationLimit>{std::in_place, *size};
}

// The library's caller has its own standard input; `explain` tells by "-" that nothing was named.
void read_standard_input(const Verb& verb, Arguments& arguments) {
  if (!arguments.contains("operand") || verb.name == "explain") return;
  auto& words = arguments.at("operand").as<std::vector<std::string>>();
  std::ranges::replace(words, "-", "/dev/stdin");
}

// Memory that runs out is no fault of the program: something that was asked for is too large.
[[noreturn]] void say_memory_ran_out(const Arguments& arguments) {
  std::string files;
  for (const std::string& file : operands(arguments)) files += (files.empty() ? "" : ", ") + file;
  throw InputError(files,
                   "is too large for the memory that this program may have. Give it more, or ask for "
                   "less: fewer iterations, no report, a smaller file.");
}

}  // namespace

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const VerbGroup& group : verb_groups()) {
    for (const Verb& verb : group.verbs) {
      if (verb.name == name) return verb;
      names.push_back(verb.name);
    }
  }
  throw InputError("", "\"" + name + "\" is not a verb of vramlab." + suggest_name(name, names) +
                           " (vramlab help lists them)");
}

std::string help_of(const Verb& verb) {
  std::ostringstream text;
  text << verb.name << ": " << verb.summary << "\n\n"
       << usage(verb) << "\n\n"
       << options_of(verb) << "\nexample: " << verb.example
       << "\n\nexit codes: 0 done, 1 an expectation failed, 2 bad input or usage, 3 internal error,\n"
          "130 stopped by the user\n";
  return text.str();
}

int run_verb(const std::vector<std::string>& words, LibraryCall* call,
             const std::shared_ptr<Workers>& ranks) {
  const Verb& verb = find_verb(words.front());
  Arguments arguments;
  try {
    arguments = parse(verb, {words.begin() + 1, words.end()});
    if (arguments.contains("help")) {
      print_to(call, help_of(verb));
      return kDone;
    }
    check_operands(verb, arguments);
    if (call == nullptr) read_standard_input(verb, arguments);
    const auto inflation = chosen_inflation(arguments);
    Output output{arguments, call, ranks};
    return verb.run(arguments, output);
  } catch (const po::error& error) {
    throw InputError("", explain(error, verb));
  } catch (const std::bad_alloc&) {
    say_memory_ran_out(arguments);
  } catch (const std::length_error&) {  // of one piece, where addresses have 32 bits
    say_memory_ran_out(arguments);
  }
}

Ending ending_of(const std::function<int()>& work) {
  try {
    return {work(), {}};
  } catch (const InputError& error) {
    return {kBadInput, std::string{error.what()} + '\n'};
  } catch (const std::filesystem::filesystem_error& error) {
    return {kBadInput, error.path1().string() + ": " + error.code().message() + ".\n"};
  } catch (const std::bad_alloc&) {
    return {kBadInput, "there is too little memory for this.\n"};
  } catch (const std::exception& error) {
    return {kInternalError, std::string{"internal error: "} + error.what() +
                                "\nThis is a fault of vramlab; please report it.\n"};
  }
}

Options options_of(const Verb& verb) {
  Options options{"options"};
  verb.add_options(options);
  if (reads_files(verb)) {
    options.add_options()(
        "max-inflated", text_value("SIZE"),
        "what one compressed file may unpack to (default: 4GiB; 512MiB if it is read whole)");
  }
  options.add_options()("help", "print this");
  return options;
}

std::vector<Verb> verbs() {
  std::vector<Verb> all;
  for (const VerbGroup& group : verb_groups()) all.insert(all.end(), group.verbs.begin(), group.verbs.end());
  return all;
}

std::vector<std::string> operands(const Arguments& arguments) { return texts_of(arguments, "operand"); }

std::string text_of(const Arguments& arguments, const char* option) {
  return arguments.contains(option) ? arguments[option].as<std::string>() : "";
}

std::vector<std::string> texts_of(const Arguments& arguments, const char* option) {
  if (!arguments.contains(option)) return {};
  return arguments[option].as<std::vector<std::string>>();
}

po::typed_value<std::string>* text_value(const char* shown) {
  return po::value<std::string>()->default_value("")->value_name(shown);
}

}  // namespace vramlab
