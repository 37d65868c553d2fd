#include <fmt/format.h>

#include "cli/option_words.hpp"

namespace vramlab {
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
