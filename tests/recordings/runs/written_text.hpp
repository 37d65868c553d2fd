// What the writers of traces put into a sink, as one text.
#pragma once

#include <string>
#include <string_view>

namespace vramlab {

/// `write` with `arguments` and then a sink.
template <class Write, class... Arguments>
std::string text_of(const Write& write, const Arguments&... arguments) {
  std::string text;
  write(arguments..., [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace vramlab
