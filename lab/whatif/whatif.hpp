// What-if questions: one program under several allocator settings, cards and limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"

namespace vramlab {

/// A card the program is put on.
struct WhatIfCard {
  std::string name;  ///< for people: "rtx-4090-24gb", "a card of 24.0 GiB", "as recorded", "no limit"
  std::string gpu;   ///< id in the catalogue; empty if none was named
  std::optional<Bytes> capacity;  ///< its total; empty = never full
  Bytes context = kContextBytes;
  bool context_assumed = true;  ///< not measured on this card
  Bytes others = 0;             ///< taken by other processes
};

struct WhatIfQuestion {
  std::vector<std::string> confs;            ///< settings strings; empty = those worth trying
  std::vector<WhatIfCard> cards;             ///< empty = the recording's own, with its limit
  std::vector<std::optional<Bytes>> limits;  ///< empty = none
  bool smallest = false;                     ///< look for the smallest sizes too
  unsigned threads = 1;
};

/// One program under one combination.
struct WhatIfRow {
  std::string conf;
  bool recorded_conf = false;  ///< the settings the recording was made under
  WhatIfCard card;
  std::optional<Bytes> limit;
  Bytes usable = 0;  ///< total − context − others; kNeverFull − context for a card that is never full
  ProgramOutcome outcome;
  /// Smallest usable size (or limit, where one is set) without a failure, and without a retry either; found
  /// by bisection to 2 MiB. Empty if not looked for, or if no size works.
  std::optional<Bytes> smallest;
  std::optional<Bytes> smallest_without_retry;
  std::size_t program = 0;  ///< the rank it is of

  [[nodiscard]] bool never_full() const { return !card.capacity; }
  /// What the allocator can have at most; empty = anything.
  [[nodiscard]] std::optional<Bytes> room() const;
};

struct WhatIfAnswer {
  std::vector<std::vector<WhatIfRow>> ranks;  ///< by program; the same combinations in the same order
  std::vector<WhatIfRow> rows;                ///< for each combination the rank that decides
  bool predicted = false;                     ///< of models at other parameters: no such program ever ran
};

/// Settings worth trying on a program that was recorded under `settings`: those, the defaults, and one of
/// each kind. Garbage collection only where a limit makes it act (R9.1).
std::vector<std::string> settings_worth_trying(const AllocatorSettings& settings, bool limited);

/// Replays all combinations; equal at any number of threads. For rows that do not fit, the smallest size is
/// looked for too. Throws InputError naming a bad settings string or a card smaller than its context.
WhatIfAnswer answer_whatif(const std::vector<ClientProgram>& programs, const WhatIfQuestion& question);

/// What a row was replayed under.
ReplaySetup setup_of(const WhatIfRow& row);

/// The name of the mark in whose stretch an action lies: the next one after it. Empty if there is none.
std::string mark_after(const ClientProgram& program, std::size_t action);

}  // namespace vramlab
