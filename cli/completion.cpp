// vramlab completion: the shell completes verbs and options, and the man page lists them, from the same
// tables as the help.
#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"

namespace vramlab {
namespace {

/// One option of a verb.
struct OptionWord {
  std::string long_name;   ///< without dashes; empty if it has none
  std::string short_name;  ///< one letter; empty if it has none
  std::string value;       ///< what it takes, as the help names it; empty for a switch
  std::string about;
};

// In the order of the help, --help included.
std::vector<OptionWord> option_words(const Verb& verb) {
  std::vector<OptionWord> words;
  const Options options = options_of(verb);
  for (const auto& option : options.options()) {
    OptionWord word;
    // The library keeps an option without a long name under its short one, with the dash.
    const std::string shorter = option->canonical_display_name(po::command_line_style::allow_dash_for_short);
    if (shorter.size() == 2 && shorter[0] == '-') word.short_name = shorter.substr(1);
    if (option->long_name().size() > 1 && option->long_name()[0] != '-') word.long_name = option->long_name();
    if (option->semantic()->max_tokens() > 0) {
      word.value = option->format_parameter();
      word.value = word.value.substr(0, word.value.find(" ("));
    }
    word.about = option->description();
    words.push_back(std::move(word));
  }
  return words;
}

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

// A line that begins with . or ' is a command to roff, and \ and - mean more than themselves.
std::string roff(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
      out += c;
    }
  }
  return out;
}

std::string options_text(const Verb& verb) {
  std::string text;
  for (const OptionWord& word : option_words(verb)) {
    std::vector<std::string> names;
    if (!word.short_name.empty()) names.push_back(fmt::format("\\fB\\-{}\\fR", roff(word.short_name)));
    if (!word.long_name.empty()) names.push_back(fmt::format("\\fB\\-\\-{}\\fR", roff(word.long_name)));
    const std::string value = word.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(word.value));
    text += fmt::format(".TP\n{}{}\n{}\n", fmt::join(names, ", "), value, roff(word.about));
  }
  return text;
}

std::string verb_text(const Verb& verb) {
  return fmt::format(".SS \"vramlab {}{}{}\"\n{}.\n{}.PP\nExample: \\fB{}\\fR\n", roff(verb.name),
                     verb.operands.empty() ? "" : " ", roff(verb.operands), roff(verb.summary),
                     options_text(verb), roff(verb.example));
}

// Section 1, in roff.
std::string man_page() {
  std::string text =
      ".TH VRAMLAB 1 \"\" \"vramlab " VRAMLAB_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\n"
      "vramlab \\- replays memory policies and PyTorch's caching allocator on a simulated card\n"
      ".SH SYNOPSIS\n"
      ".B vramlab\n"
      ".I VERB\n"
      "[\\fIoptions\\fR]\n"
      ".SH VERBS\n";
  for (const Verb& verb : verbs()) text += verb_text(verb);
  return text +
         ".SH EXIT STATUS\n"
         "0 done; 1 an expectation or a verification failed; 2 bad input or usage; 3 internal error; 130 "
         "stopped by the user.\n"
         ".SH SEE ALSO\n"
         "\\fBvramlab help\\fR \\fIVERB\\fR; the documents in docs/ of the source.\n";
}

std::string page_or_script(const std::string& what) {
  if (what == "man") return man_page();
  if (what == "bash") return bash_script();
  if (what == "zsh") return zsh_script();
  if (what == "fish") return fish_script();
  throw InputError("", "\"" + what + "\" is none of bash, zsh, fish and man.");
}

void add_completion_options(Options& options) {
  options.add_options()("output,o", text_value("FILE"), "write it to a file (default: standard output)");
  add_output_options(options);
}

int run_completion(const Arguments& arguments, Output& output) {
  const std::string what = operands(arguments).front();
  const std::string text = page_or_script(what);
  output.write(text_of(arguments, "output"), text);
  output.json({{"kind", what}, {"text", text}});
  return kDone;
}

}  // namespace

Verb completion_verb() {
  return {.name = "completion",
          .summary = "completion for bash, zsh or fish, or the man page",
          .operands = "bash|zsh|fish|man",
          .count = {1, 1},
          .example = "vramlab completion bash -o vramlab.bash",
          .add_options = add_completion_options,
          .run = run_completion};
}

}  // namespace vramlab
