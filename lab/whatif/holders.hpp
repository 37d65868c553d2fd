// Who holds the memory of a program: by what it was for, over its whole history, and the idle memory with
// what keeps it from being given back.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lab/json.hpp"
#include "recordings/lifetimes/pins.hpp"
#include "recordings/lifetimes/remedies.hpp"
#include "recordings/lifetimes/uses.hpp"
#include "recordings/replay/lifetimes.hpp"
#include "recordings/replay/program_replay.hpp"
#include "report/table.hpp"

namespace vramlab {

/// Blocks of one category. Bytes are those of the blocks, at least what was requested.
struct CategoryShare {
  Category category{};
  Bytes bytes = 0;  ///< at the moment asked for
  Bytes most = 0;   ///< at any moment
  std::uint64_t blocks = 0;
  Evidence how = Evidence::rest;  ///< of most of its bytes over the history

  [[nodiscard]] bool inferred() const { return how > Evidence::annotation; }
};

/// Another way of the program, replayed under the same settings.
struct TriedRemedy {
  Remedy remedy{};
  Bytes held = 0;      ///< idle memory that the pin's blocks hold there, at the same place
  Bytes reserved = 0;  ///< its peak
  bool frees = false;  ///< as settings do, nothing fails, and the peak is not 1 % higher
};

/// Idle memory with what is known of the oldest of the blocks that hold it.
struct HeldIdle {
  Pin pin;
  std::vector<std::string> freed_by;  ///< settings under whose replay it is gone at the same place
  std::vector<TriedRemedy> tried;     ///< other ways of the program; only of the first pins
  std::optional<Category> category;
  std::vector<std::string> stack;  ///< of its allocation, as shown_frames(); empty if none was recorded
  std::string since;               ///< the stretch it was made in: "seq233", "action 312", "before recording"
  std::size_t since_action = 0;
};

/// The history, made smaller: of each stretch the moments at which most was allocated and reserved.
struct CategoryTimeline {
  std::vector<std::size_t> actions;  ///< after which the figures of the same place are, ascending
  std::array<std::vector<Bytes>, kCategoryNames.size()> allocated;  ///< by category
  std::vector<Bytes> reserved;
  std::vector<std::pair<std::size_t, std::string>> marks;  ///< action and name
  std::vector<std::pair<std::size_t, Bytes>> failures;     ///< requests that failed: action, bytes asked for
};

struct Holders {
  std::size_t at = 0;  ///< action after which the categories are
  std::string moment;  ///< in words: "the peak (in seq233)", "the end of seq233"
  Bytes allocated = 0;
  std::uint64_t blocks = 0;
  std::vector<CategoryShare> categories;  ///< those that held anything at any moment; sum up to `allocated`
  std::size_t steps = 0;                  ///< of training that were found
  std::vector<BlockUse> uses;             ///< by program block

  // The idle memory: after this action, the peak of reserved memory if no moment was asked for.
  std::size_t pins_at = 0;
  std::string pins_moment;
  Bytes reserved = 0;  ///< then
  Bytes idle = 0;      ///< of that, what the pins add up to
  std::vector<HeldIdle> pins;
  PlacedBlocks placed;  ///< then, where maps are kept
  CategoryTimeline timeline;
};

/// The moment that `--at` names: the end of a stretch by its mark (where several have one name, NAME#2 is the
/// second), "failure" for the first failed request of the recording, or "peak". Empty for "peak" and for no
/// name. Throws InputError, with the names there are, for another one.
std::optional<std::size_t> moment_of(const ClientProgram& program, const std::string& name);

/// All but the pins, from what a replay kept.
Holders holders_of(const ClientProgram& program, const std::vector<ReplayedAction>& replayed,
                   const std::vector<Lifetime>& lifetimes, const std::string& at);

/// Adds the pins at their moment.
void add_pins(const ClientProgram& program, const std::vector<Lifetime>& lifetimes,
              const PlacedBlocks& placed, Holders& holders);

/// Tries other ways of the program, one after the other, for the first pins, as many as a bounded number of
/// replayed actions allows. `setup` and `reserved` are the replay's with the pins, and the peak there.
void try_remedies(const ClientProgram& program, const ReplaySetup& setup,
                  const std::vector<Lifetime>& lifetimes, Bytes reserved, unsigned threads, Holders& holders);

/// What the program holds after an action, in the order of the allocations.
std::vector<HeldBlock> held_after(const std::vector<Lifetime>& lifetimes, std::size_t action);

/// Whether each pin of `base` is gone in another replay, at the same place of the program: its blocks hold
/// less than a tenth of that idle memory there, and less is idle in all.
std::vector<bool> gone_pins(const Holders& base, const std::vector<Pin>& other);

// For people and programs.

Table categories_table(const Holders& holders);
/// How many steps were found, and what is inferred.
std::string categories_sentence(const Holders& holders);
/// The first `most` pins.
Table pins_table(const Holders& holders, std::size_t most);
std::string pins_sentence(const Holders& holders);
/// For which pins other ways of the program were tried, and what they are called; empty if for none.
std::string remedies_sentence(const Holders& holders);

/// Adds "categories", "pins" and "idle", and "timeline" if asked for.
void add_holders(Json& json, const Holders& holders, bool timeline);

}  // namespace vramlab
