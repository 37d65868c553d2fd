// The card that an out-of-memory message describes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lab/whatif/whatif.hpp"

namespace vramlab {

/// Card, limit, and what context and other processes took, from the first message in a text. What the message
/// does not print is assumed, and the card's notes say so.
struct OomCard {
  WhatIfCard card;
  std::optional<Bytes> limit;
};

/// Throws InputError, naming `file`, for a text without a message or a message that does not print the card's
/// size.
OomCard read_oom_card(std::string_view text, const std::string& file);

}  // namespace vramlab
