#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/whatif/whatif.hpp"
#include "recordings/logs/oom_message.hpp"

namespace vramlab {
namespace {

Bytes or_zero(const std::optional<PrintedSize>& size) { return size ? size->bytes : 0; }

Bytes less(Bytes from, Bytes what) { return from - std::min(from, what); }

// What PyTorch had reserved; empty where the message does not say.
std::optional<Bytes> reserved_in(const OomMessage& message) {
  if (message.reserved) return message.reserved->bytes;
  if (!message.allocated || !message.idle) return std::nullopt;
  return message.allocated->bytes + message.idle->bytes;
}

// Context and other processes. Where the message lists processes, both are printed; else what is neither free
// nor reserved is shared out: a context as assumed, and the rest is others'.
void share_out(const OomMessage& message, WhatIfCard& card) {
  const std::optional<Bytes> reserved = reserved_in(message);
  const Bytes taken = less(*card.capacity, or_zero(message.free));
  if (message.own_process && reserved) {
    card.context = less(message.own_process->bytes, *reserved);
    card.context_assumed = false;
    card.others = message.free ? less(taken, message.own_process->bytes) : 0;
    if (card.others > 0) {
      card.notes.push_back(format_bytes(card.others) +
                           " of the card are other processes', as the message has it.");
    }
  } else if (message.free && reserved) {
    const Bytes outside = less(taken, *reserved);
    card.context = std::min(card.context, outside);
    card.others = outside - card.context;
    if (card.others > 0) {
      card.notes.push_back(fmt::format(
          "{} of the card are neither free nor PyTorch's; {} of it are taken for the context (assumed), the "
          "rest for other processes or libraries.",
          format_bytes(outside), format_bytes(card.context)));
    }
  } else {
    card.notes.push_back(
        "The message does not tell what is free and what PyTorch reserved: other processes are taken to hold "
        "nothing (assumed).");
  }
  card.context_given = true;
}

}  // namespace

OomCard read_oom_card(std::string_view text, const std::string& file) {
  const OomMessage message = parse_oom_message(text);
  if (message.layout == OomLayout::none) {
    throw InputError(file, "holds no out-of-memory message. Give --oom the text that PyTorch printed.");
  }
  if (!message.total) {
    throw InputError(file,
                     "the message does not print the card's size. Give the card with --gpu or --capacity.");
  }
  OomCard found;
  found.card.name = "the card of the message";
  found.card.capacity = message.total->bytes;
  found.card.recorded = true;
  found.card.failed = true;
  if (message.tried) {
    found.card.notes.push_back(
        "The program ran out of memory there, as the message says: " + message.tried->text + " asked for" +
        (message.free ? ", " + message.free->text + " free." : "."));
  }
  if (message.allowed) found.limit = found.card.failed_limit = message.allowed->bytes;
  found.card.notes.push_back("The card's figures are those of the message, which rounds them: to " +
                             format_bytes(message.total->high - message.total->low) + " for its size.");
  share_out(message, found.card);
  return found;
}

}  // namespace vramlab
