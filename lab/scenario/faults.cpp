#include "lab/scenario/faults.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "lab/scenario/cards.hpp"

namespace vramlab {
namespace {

constexpr double kLongestRun = 1e6;     // iterations
constexpr double kLongestQueue = 1000;  // steps; no loader fetches further ahead

const Record<Leak>& leak_table() {
  using L = Leak;
  static const Record<L> table{
      {"bytes_per_step", &L::per_step, "", 0, kLargestCard, "what every step leaves behind", kRequired},
      {"from", &L::from, "", 1, kLongestRun, "first iteration that leaks"},
      {"to", &L::to, "", 1, kLongestRun, "last iteration that leaks (default: the last of the run)"},
  };
  return table;
}

const Record<Restart>& restart_table() {
  using R = Restart;
  static const Record<R> table{
      {"after", &R::after, "", 1, kLongestRun, "the iteration it dies after", kRequired},
      {"checkpoint_every", &R::checkpoint_every, "", 1, kLongestRun, "iterations between checkpoints"},
      {"takes_s", &R::takes, "", 0, kLongestTime, "seconds until the next step begins"},
  };
  return table;
}

std::vector<Row<Faults>> all_rows() {
  using F = Faults;
  static const Record<F> search{
      {"bytes", &F::search, "", 0, kLargestCard, "how much more, from its beginning to its end", kRequired},
  };
  static const Record<F> state{
      {"bytes", &F::optimizer_state, "", 0, kLargestCard, "how much", kRequired},
  };
  static const Record<F> outliers{
      {"bytes", &F::outlier, "", 0, kLargestCard, "how much more, from the step's beginning to its end",
       kRequired},
      {"chance", &F::outlier_chance, "", 0, 1, "of a step to have one", kRequired},
  };
  static const Record<F> errors{
      {"chance", &F::error_chance, "", 0, 1, "of a step to end so", kRequired},
  };
  static const Record<F> readings{
      {"delay", &F::reading_delay, "", 0, kLongestQueue, "steps by which a reading is late"},
      {"missing", &F::missing_readings, "", 0, 1, "chance of a reading to be missing; the last one stays"},
  };
  return {
      {"leak", object_of(&F::leak, leak_table()), "", 0, 0, "memory that is never given back"},
      {"search", group_of(search), "", 0, 0, "the first step at parameters new to the process needs more"},
      {"optimizer_state", group_of(state), "", 0, 0, "the first step of a process makes state that stays"},
      {"outliers", group_of(outliers), "", 0, 0, "some steps have a sample that needs more"},
      {"errors", group_of(errors), "", 0, 0,
       "some steps end in a CUDA error that is not OOM, and their work is lost"},
      {"apply_delay", &F::apply_delay, "", 0, kLongestQueue,
       "steps that still run at the old parameters after a change"},
      {"readings", group_of(readings), "", 0, 0, "what the policy sees of memory"},
      {"restart", object_of(&F::restart, restart_table()), "", 0, 0,
       "the process dies once and goes on from its checkpoint"},
  };
}

// All but those of these keys.
Record<Faults> table_without(std::initializer_list<std::string_view> keys) {
  std::vector<Row<Faults>> rows = all_rows();
  std::erase_if(rows, [&](const Row<Faults>& row) {
    return std::find(keys.begin(), keys.end(), row.key) != keys.end();
  });
  return Record<Faults>{rows};
}

}  // namespace

const Record<Faults>& faults_table(FaultsOf kind) {
  static const Record<Faults> training = table_without({});
  static const Record<Faults> epoch = table_without({"apply_delay", "restart"});
  static const Record<Faults> search =
      table_without({"optimizer_state", "apply_delay", "readings", "restart"});
  return kind == FaultsOf::training ? training : kind == FaultsOf::epoch ? epoch : search;
}

std::vector<Unmet> unmet_faults(const Faults& faults, std::int64_t iterations) {
  std::vector<Unmet> unmet;
  const auto late = [&](bool is_there, const char* key, std::int64_t iteration) {
    if (!is_there || iteration <= iterations) return;
    unmet.push_back({std::string{"/faults/"} + key,
                     fmt::format("comes at iteration {}, and the run has {}", iteration, iterations)});
  };
  const auto chance = [&](bool is_there, const char* key, bool (Faults::*meets)(std::int64_t) const) {
    if (!is_there) return;
    for (std::int64_t i = 1; i <= iterations; ++i) {
      if ((faults.*meets)(i)) return;
    }
    unmet.push_back({std::string{"/faults/"} + key,
                     fmt::format("meets none of the run's {} iterations by its chance", iterations)});
  };
  late(faults.leak.per_step > 0, "leak", faults.leak.from);
  late(faults.restart.after > 0, "restart", faults.restart.after);
  chance(faults.outlier > 0, "outliers", &Faults::has_outlier);
  chance(faults.error_chance > 0, "errors", &Faults::has_error);
  chance(faults.missing_readings > 0, "readings", &Faults::reading_is_missing);
  return unmet;
}

std::vector<Unmet> unmet_others(const std::vector<OtherProcess>& others, SimTime end) {
  std::vector<Unmet> unmet;
  for (const OtherProcess& one : others) {
    if (one.from <= end) continue;
    const std::string card = one.card == 0 ? "/device" : fmt::format("/more_devices/{}", one.card - 1);
    unmet.push_back(
        {card + "/others", fmt::format("the process that comes at {} s: the run ends at {} s",
                                       shortest_text(to_seconds(one.from)), shortest_text(to_seconds(end)))});
  }
  return unmet;
}

Faults read_faults(const std::optional<Faults>& section, std::uint64_t seed, FileProblems& problems) {
  Faults faults = section.value_or(Faults{});
  faults.seed = seed;
  if (faults.leak.to < faults.leak.from) problems.add("/faults/leak", "\"to\" is before \"from\".");
  return faults;
}

}  // namespace vramlab
