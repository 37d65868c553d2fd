// The options of a verb as the shell completion and the man page need them.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.hpp"

namespace vramlab {

/// One option of a verb.
struct OptionWord {
  std::string long_name;   ///< without dashes; empty if it has none
  std::string short_name;  ///< one letter; empty if it has none
  std::string value;       ///< what it takes, as the help names it; empty for a switch
  std::string about;
};

/// All options of `verb` in the order of its help, --help included.
std::vector<OptionWord> option_words(const Verb& verb);

/// The options of `verb`, as they are parsed (main.cpp).
Options options_of(const Verb& verb);

/// A script that completes verbs, options and files: "bash", "zsh" or "fish". Throws InputError for another.
std::string completion_script(const std::string& shell);

/// The man page, section 1, in roff.
std::string man_page(const std::string& version);

}  // namespace vramlab
