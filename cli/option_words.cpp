#include "cli/option_words.hpp"

#include <fmt/format.h>

namespace vramlab {

std::vector<OptionWord> option_words(const Verb& verb) {
  namespace po = boost::program_options;
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

namespace {

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

}  // namespace

std::string man_page(const std::string& version) {
  std::string text = fmt::format(
      ".TH VRAMLAB 1 \"\" \"vramlab {}\" \"User Commands\"\n"
      ".SH NAME\n"
      "vramlab \\- replays memory policies and PyTorch's caching allocator on a simulated card\n"
      ".SH SYNOPSIS\n"
      ".B vramlab\n"
      ".I VERB\n"
      "[\\fIoptions\\fR]\n"
      ".SH VERBS\n",
      version);
  for (const Verb& verb : verbs()) text += verb_text(verb);
  return text +
         ".SH EXIT STATUS\n"
         "0 done; 1 an expectation or a verification failed; 2 bad input or usage; 3 internal error; 130 "
         "stopped "
         "by the user.\n"
         ".SH SEE ALSO\n"
         "\\fBvramlab help\\fR \\fIVERB\\fR; the documents in docs/ of the source.\n";
}

}  // namespace vramlab
