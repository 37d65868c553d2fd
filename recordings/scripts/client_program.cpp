#include "recordings/scripts/client_program.hpp"

#include <algorithm>
#include <array>

namespace vramlab {

const char* name_of(ClientAction::Kind kind) {
  constexpr std::array kNames{"alloc",    "free",          "record_stream", "finish",   "attempt",
                              "sync",     "empty_cache",   "reset_peak",    "settings", "pool_new",
                              "pool_del", "capture_begin", "capture_end",   "mark"};
  static_assert(kNames.size() == static_cast<std::size_t>(ClientAction::Kind::mark) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

PoolOptions pool_options(const ClientAction& pool_new) {
  const auto kind = static_cast<PoolKind>(pool_new.detail);
  PoolOptions options;
  options.use_on_oom = kind == PoolKind::use_on_oom;
  options.no_split = kind == PoolKind::no_split;
  return options;
}

std::string mark_after(const ClientProgram& program, std::size_t action) {
  for (std::size_t i = action; i < program.actions.size(); ++i) {
    if (program.actions[i].kind != ClientAction::Kind::mark) continue;
    // Recorded labels go on with what came of the step: " ok 34.2ms", or " OOM " and the whole message.
    const std::string& text = program.texts[program.actions[i].detail];
    return text.substr(0, std::min({text.find(" ok "), text.find(" OOM"), std::size_t{24}}));
  }
  return "";
}

}  // namespace vramlab
