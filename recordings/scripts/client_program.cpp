#include "recordings/scripts/client_program.hpp"

#include <algorithm>

namespace vramlab {

const char* name_of(ClientAction::Kind kind) {
  switch (kind) {
    case ClientAction::Kind::alloc:
      return "alloc";
    case ClientAction::Kind::free:
      return "free";
    case ClientAction::Kind::record_stream:
      return "record_stream";
    case ClientAction::Kind::finish:
      return "finish";
    case ClientAction::Kind::attempt:
      return "attempt";
    case ClientAction::Kind::sync:
      return "sync";
    case ClientAction::Kind::empty_cache:
      return "empty_cache";
    case ClientAction::Kind::reset_peak:
      return "reset_peak";
    case ClientAction::Kind::settings:
      return "settings";
    case ClientAction::Kind::pool_new:
      return "pool_new";
    case ClientAction::Kind::pool_del:
      return "pool_del";
    case ClientAction::Kind::capture_begin:
      return "capture_begin";
    case ClientAction::Kind::capture_end:
      return "capture_end";
    case ClientAction::Kind::mark:
      return "mark";
  }
  return "";
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
