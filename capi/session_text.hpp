// A policy session from JSON text, and its books as JSON text.
#pragma once

#include <memory>
#include <string>

#include "policies/contract/session.hpp"

namespace vramlab {

/// Makes the session that `text` describes (capi/vramlab_policy.h). Throws InputError with every fault of it.
std::unique_ptr<TunerSession> session_from_text(const std::string& text);

std::string adjustments_text(const TunerSession& session);
std::string statistics_text(const TunerSession& session);

}  // namespace vramlab
