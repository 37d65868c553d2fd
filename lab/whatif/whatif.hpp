// What-if questions: one program under several allocator settings, cards and limits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/page/drawing.hpp"
#include "lab/whatif/holders.hpp"
#include "lab/whatif/least.hpp"
#include "lab/whatif/peak_memory.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/client_program.hpp"
#include "recordings/snapshot/torch_snapshot.hpp"

namespace vramlab {

/// A card the program is put on.
struct WhatIfCard {
  std::string name;  ///< for people: "rtx-4090-24gb", "a card of 24.0 GiB", "as recorded", "no limit"
  std::string gpu;   ///< id in the catalogue; empty if none was named
  std::optional<Bytes> capacity;  ///< its total; empty = never full
  Bytes context = kContextBytes;
  bool context_assumed = true;        ///< not measured on this card
  bool context_given = false;         ///< by whoever asks: it holds, whatever the recording's marks measured
  bool context_recorded = false;      ///< those marks measured it: with libraries and NCCL
  Bytes others = 0;                   ///< taken by other processes
  bool recorded = false;              ///< the card of the recording, by itself or by its message
  bool failed = false;                ///< a message says that the program ran out of memory there
  std::optional<Bytes> failed_limit;  ///< the limit of that message
  std::vector<std::string> notes{};   ///< what must be known of its figures
};

/// Where the context comes from: "given", "recording", "measured" on such a card, or "assumed".
const char* context_from(const WhatIfCard& card);

/// Whether a program fits: `open` where nothing of it fails, and the recording does not tell all of it.
enum class Fit : std::uint8_t { no, open, yes };

struct WhatIfQuestion {
  std::vector<std::string> confs;  ///< settings, "recorded" = the first program's; empty = those worth trying
  std::vector<WhatIfCard> cards;   ///< empty = the recording's own, with its limit
  std::vector<std::optional<Bytes>> limits;  ///< empty = none
  std::vector<BackendChoice> backends;       ///< other allocators to try, a row each behind those of `confs`
  bool smallest = false;                     ///< look for the smallest sizes too
  // What to keep of the replays beside their outcomes.
  bool peaks = false;     ///< of the first row of each program: what was held at its peak, and by what
  std::string at;         ///< the moment of that, as moment_of() takes it; empty = the peaks
  Grouping grouping;      ///< of that by stacks
  bool maps = false;      ///< of every row: the address space over its history
  bool snapshot = false;  ///< of the only row: what write_kept_snapshot writes
  bool least = false;  ///< of every program of at most 300,000 blocks: a plan, as far as a little work gets
  unsigned threads = 1;
};

/// What a row's replay showed beside its outcome, as far as the question asked for it.
struct WhatIfKept {
  PeakMemory peak;  ///< without any limit if the program does not fit
  SegmentMap map;
  TorchSnapshot snapshot;  ///< its segments, stacks and frames
  /// The snapshot's history, entry by entry, by a replay of its own: the program must still be there. Times
  /// are numbers of actions.
  std::function<void(const std::function<void(const TraceEntry&)>&)> history;
};

/// Writes what was kept of a row as a memory snapshot; of its history only some 64 KiB are in memory.
void write_kept_snapshot(const WhatIfKept& kept, const ByteSink& sink);

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
  std::size_t trials = 0;               ///< replays that looking for these two took
  BackendChoice backend{};              ///< what serves the program; not native: `conf` is empty
  std::size_t program = 0;              ///< the rank it is of
  std::optional<Bytes> fraction_limit;  ///< of per_process_memory_fraction in `conf`, on this card
  bool lower_bound = false;          ///< the file itself shows more reserved than the replay of its history
  bool failed_in_recording = false;  ///< these are its settings and its card, and there requests failed
  std::shared_ptr<const WhatIfKept> kept;

  [[nodiscard]] bool never_full() const { return !card.capacity; }
  /// Nothing that the recording asked for may fail: neither what succeeded in it nor what did not.
  [[nodiscard]] Fit fit() const;
  /// The most that the allocator may reserve, by `limit` and by the fraction; empty = no limit.
  [[nodiscard]] std::optional<Bytes> least_limit() const;
  /// What the allocator can have at most; empty = anything.
  [[nodiscard]] std::optional<Bytes> room() const;
  [[nodiscard]] std::optional<Bytes> room_of_card() const;  ///< the same without the fraction in `conf`
};

struct WhatIfAnswer {
  std::vector<std::vector<WhatIfRow>> ranks;  ///< by program; the same combinations in the same order
  std::vector<WhatIfRow> rows;                ///< for each combination the rank that decides
  std::vector<Holders> holders;               ///< by program, of its first row; where peaks are kept
  std::vector<LeastMemory> least;             ///< by program, where asked for
  bool too_many_to_plan =
      false;               ///< a plan was asked for, and left out because a program has too many blocks
  bool predicted = false;  ///< of models at other parameters: no such program ever ran
};

/// Replays all combinations; equal at any number of threads. For rows that do not fit, the smallest size is
/// looked for too. Every row is replayed once, apart from that search. Throws InputError naming a bad
/// settings string, a card smaller than its context, or a snapshot asked for of more than one row.
WhatIfAnswer answer_whatif(const std::vector<ClientProgram>& programs, const WhatIfQuestion& question);

/// Card, limit, and what context and other processes took, from the first out-of-memory message in a text.
/// What the message does not print is assumed, and the card's notes say so.
struct OomCard {
  WhatIfCard card;
  std::optional<Bytes> limit;
};

/// Throws InputError, naming `file`, for a text without a message or a message that does not print the card's
/// size.
OomCard read_oom_card(std::string_view text, const std::string& file);

}  // namespace vramlab
