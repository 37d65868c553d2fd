// What fits on a card by the rules of the queue, and how that is said.
#pragma once

#include <optional>
#include <string>

#include "policies/admitter.hpp"
#include "policies/queue_options.hpp"

namespace vramlab {

/// Bytes taken on `card` by the accounting chosen; may exceed the card's total.
Bytes taken_bytes(const QueueOptions& options, const CardView& card);

/// Bytes `card` can take; empty if it has as many jobs as it may (P3.2).
std::optional<Bytes> available_bytes(const QueueOptions& options, const CardView& card);

/// P3.2: out of memory if less than the margin is free, busy if more than 90 % are taken.
CardStatus card_status(const QueueOptions& options, const CardView& card);

/// "available", "busy", "out of memory"
std::string_view status_name(CardStatus status);

/// Whether the demand could ever fit a card of the cluster that is otherwise empty, at its smallest batch
/// where the policy may shrink it. `never` then holds both figures in words (K4-04, K4-05).
std::optional<std::string> never_fits(const QueueOptions& options, const JobDemand& demand,
                                      const ClusterView& cluster);

/// Why `demand` does not start now, with the figures: what it needs, and what the freest card offers.
std::string why_it_waits(const JobDemand& demand, const ClusterView& cluster);

}  // namespace vramlab
