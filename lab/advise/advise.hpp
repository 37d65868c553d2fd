// What to change in a recorded model so that it needs less memory, and what that costs in time: parts that
// are computed again in backward, activations and optimizer state in host memory.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lab/advise/units.hpp"
#include "lab/json.hpp"
#include "lab/model/measured_grid.hpp"
#include "lab/page/sections.hpp"
#include "recordings/replay/program_replay.hpp"
#include "report/table.hpp"

namespace vramlab {

/// A figure, and where it comes from: "measured", "given", "assumed", …
struct SourcedFigure {
  double value = 0;
  std::string from;
};

/// The ways that may be combined.
enum class Way : std::uint8_t { recompute, offload, optimizer, parts };
inline constexpr std::array<std::string_view, 4> kWayNames{"recompute", "offload", "optimizer", "parts"};

/// A step done in parts of its batch whose gradients add up: "batch" in parts of 2.
struct StepParts {
  std::string name;       ///< of the parameter
  std::int64_t size = 0;  ///< of a part, the last may be smaller; 0 = the step is done whole
};

struct AdviceQuestion {
  AllocatorSettings settings;
  std::string card;               ///< for people: "a card of 12.0 GiB"; empty = none is asked for
  std::optional<Bytes> total;     ///< of it
  Bytes context = kContextBytes;  ///< taken on it outside the allocator
  bool context_assumed = true;
  std::optional<Bytes> limit;                 ///< most that the allocator may reserve
  std::vector<Way> ways;                      ///< empty = all
  std::optional<SourcedFigure> step_seconds;  ///< of the step with the peak; without it nothing is offloaded
  SourcedFigure host_bandwidth;  ///< bytes per second between card and host memory, one direction
  unsigned threads = 1;

  /// What the allocator can have; empty = anything.
  [[nodiscard]] std::optional<Bytes> usable() const;
  [[nodiscard]] bool allows(Way way) const;
};

/// What is known of a unit, in the pass that has the program's peak, or else in the one where it saves most.
struct UnitFigures {
  ModelUnit unit;
  Bytes saved = 0;         ///< that is gone from its forward to its backward if it is computed again
  Bytes inputs = 0;        ///< that have to be kept for that
  Bytes most = 0;          ///< that it holds of its own while it runs again
  Bytes copied = 0;        ///< to host memory if it is offloaded, and back again
  std::size_t copies = 0;  ///< in one direction
  Bytes host = 0;    ///< pinned host memory if it is offloaded: PyTorch rounds each block to a power of two
  double share = 0;  ///< of the step's time that running it again takes
};

/// One choice, replayed.
struct AdvicePoint {
  std::vector<std::size_t> recomputed;  ///< in Advice::units
  std::vector<std::size_t> offloaded;
  bool optimizer_in_host = false;
  StepParts part;  ///< what the rest is about is done in each of them
  Bytes host_bytes = 0;
  double time_ratio = 1;     ///< of the step to that without any change
  double least_ratio = 1;    ///< no choice with a modelled peak this low costs less
  bool exact = true;         ///< it is that
  ProgramOutcome outcome;    ///< without a limit, or on the card if it needs more than there is
  Bytes peak_allocated = 0;  ///< without any limit
  Bytes peak_reserved = 0;   ///< without any limit
  std::optional<bool> fits;  ///< on the card that was asked for
};

struct Advice {
  CallSource source = CallSource::none;
  std::size_t passes = 0;
  std::vector<std::string> places;  ///< of the units
  std::vector<UnitFigures> units;
  Bytes optimizer_state = 0;
  bool solver = false;              ///< CBC chose
  std::vector<AdvicePoint> front;   ///< by time; the first is the program as it is
  std::optional<std::size_t> best;  ///< the cheapest that fits
  std::vector<std::string> notes;   ///< what is assumed, and what cannot be known
};

/// Replays every point before it is returned; equal at any number of threads. Throws InputError where the
/// card is smaller than its context.
Advice advise(const ClientProgram& program, const AdviceQuestion& question);

/// A program, and what its step is of the one that is asked about.
struct ProgramVariant {
  ClientProgram program;
  StepParts part;
  double time_ratio = 1;                      ///< of its step to that of the first variant
  std::optional<SourcedFigure> step_seconds;  ///< of its step
};

/// The same of the first variant, and, where that does not fit, of all of them together. At least one.
Advice advise(const std::vector<ProgramVariant>& variants, const AdviceQuestion& question);

/// How long the step with the most memory took: in a second pass of the recorder (`times`, with the marks
/// beside the snapshot), else by the history's own times. Empty where neither says.
std::optional<SourcedFigure> step_time(const ClientProgram& program, const std::filesystem::path& file,
                                       const MeasuredGrid* times);

// For people and programs.

std::vector<std::string> advice_verdict(const Advice& advice, const AdviceQuestion& question);
Table front_table(const Advice& advice, const AdviceQuestion& question);
/// The places with their repeats.
Table units_table(const Advice& advice);
/// What to write for a point, a line each.
std::vector<std::string> pytorch_lines(const Advice& advice, const AdvicePoint& point);
Json advice_json(const Advice& advice, const AdviceQuestion& question);
/// A section of the page: the front as a curve, and its table.
Json advice_section(const Advice& advice, const AdviceQuestion& question, const std::string& title);

}  // namespace vramlab
