// vramlab completion: the shell completes verbs and options, from the same tables as the help.
#include <fmt/format.h>

#include "cli/option_words.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;

std::string verb_list() {
  std::string names;
  for (const Verb& verb : verbs()) names += verb.name + ' ';
  return names + "help";
}

std::string bash_script() {
  std::string text =
      "# bash completion of vramlab\n"
      "_vramlab() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} options=\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      verb_list() +
      " --version' -- \"$cur\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const Verb& verb : verbs()) {
    std::string options;
    for (const OptionWord& word : option_words(verb)) {
      if (!word.long_name.empty()) options += (options.empty() ? "--" : " --") + word.long_name;
      if (!word.short_name.empty()) options += (options.empty() ? "-" : " -") + word.short_name;
    }
    text += "    " + verb.name + ") options='" + options + "' ;;\n";
  }
  return text + "    help) COMPREPLY=($(compgen -W '" + verb_list() +
         "' -- \"$cur\")); return ;;\n"
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
         "  else\n"
         "    compopt -o filenames 2>/dev/null\n"
         "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
         "  fi\n"
         "}\n"
         "complete -F _vramlab vramlab\n";
}

// Inside '…' only the quote itself ends the text; _arguments reads [ ] and : too.
std::string quoted(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (special.find(c) != std::string::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh_script() {
  std::string text =
      "#compdef vramlab\n"
      "_vramlab() {\n"
      "  local -a verbs=(\n";
  for (const Verb& verb : verbs()) text += fmt::format("    '{}:{}'\n", verb.name, quoted(verb.summary, ":"));
  text +=
      "    'help:options, an example and the exit codes of a verb'\n"
      "  )\n"
      "  if ((CURRENT == 2)); then\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  local verb=$words[2]\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $verb in\n";
  for (const Verb& verb : verbs()) {
    text += "    " + verb.name + ")\n      _arguments \\\n";
    for (const OptionWord& word : option_words(verb)) {
      const std::string about = fmt::format("[{}]", quoted(word.about, "[]:\\"));
      const std::string takes =
          word.value.empty() ? "" : fmt::format(":{}:_files", quoted(word.value, "[]:\\"));
      const auto add = [&](const std::string& name) {
        text += "        '*" + name + about + takes + "' \\\n";
      };
      if (!word.long_name.empty()) add("--" + word.long_name + (word.value.empty() ? "" : "="));
      if (!word.short_name.empty()) add("-" + word.short_name + (word.value.empty() ? "" : "+"));
    }
    text += "        '*:file:_files' ;;\n";
  }
  return text +
         "    help) _describe verb verbs ;;\n"
         "  esac\n"
         "}\n"
         "_vramlab \"$@\"\n";
}

std::string fish_script() {
  std::string text = "# fish completion of vramlab\n";
  const std::string first = "complete -c vramlab -n __fish_use_subcommand -f -a ";
  for (const Verb& verb : verbs())
    text += fmt::format("{}{} -d '{}'\n", first, verb.name, quoted(verb.summary, "\\"));
  text += first + "help -d 'options, an example and the exit codes of a verb'\n";
  for (const Verb& verb : verbs()) {
    for (const OptionWord& word : option_words(verb)) {
      text += "complete -c vramlab -n '__fish_seen_subcommand_from " + verb.name + "'";
      if (!word.long_name.empty()) text += " -l " + word.long_name;
      if (!word.short_name.empty()) text += " -s " + word.short_name;
      text += fmt::format("{} -d '{}'\n", word.value.empty() ? "" : " -r", quoted(word.about, "\\"));
    }
  }
  return text;
}

void add_options(Options& options) {
  options.add_options()("output,o", po::value<std::string>()->default_value("")->value_name("FILE"),
                        "write it to a file (default: standard output)");
  add_output_options(options);
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const std::string what = operands(arguments).front();
  const std::string text = what == "man" ? man_page(VRAMLAB_VERSION) : completion_script(what);
  const auto file = arguments["output"].as<std::string>();
  if (file.empty()) {
    output.line(text.substr(0, text.size() - 1));
  } else {
    write_file(file, text);
    output.wrote(file);
  }
  output.json({{"kind", what}, {"text", text}});
  return kDone;
}

}  // namespace

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script();
  if (shell == "zsh") return zsh_script();
  if (shell == "fish") return fish_script();
  throw InputError("", "\"" + shell + "\" is none of bash, zsh, fish and man.");
}

Verb completion_verb() {
  return {.name = "completion",
          .summary = "completion for bash, zsh or fish, or the man page",
          .operands = "bash|zsh|fish|man",
          .example = "vramlab completion bash -o vramlab.bash",
          .least_operands = 1,
          .most_operands = 1,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
