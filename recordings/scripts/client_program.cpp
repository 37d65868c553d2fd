#include "recordings/scripts/client_program.hpp"

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

}  // namespace vramlab
