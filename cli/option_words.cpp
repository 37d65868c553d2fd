#include "cli/option_words.hpp"

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

}  // namespace vramlab
