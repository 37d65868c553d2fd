#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/epoch/spec.hpp"
#include "lab/parallel.hpp"

namespace vramlab {
namespace {

constexpr std::int64_t kLimitSteps =
    192;  // of each tuner's range, at most: a whole epoch is run for each value

/// A composer whose batches have a limit that stays, somewhere in the range of a tuner.
struct Limited {
  const PolicyEntry* composer = nullptr;
  BatchTuner limit;  ///< its start is still to be set

  [[nodiscard]] std::int64_t values() const {
    const Parameter& range = limit.tuning.space.parameters.front();
    return std::min(range.high - range.low, kLimitSteps) + 1;
  }
  /// The place from 0 on, evenly over the range.
  [[nodiscard]] BatchTuner at(std::int64_t place) const {
    const Parameter& range = limit.tuning.space.parameters.front();
    BatchTuner fixed = limit;
    fixed.tuning.start = {values() == 1 ? range.low
                                        : range.low + (range.high - range.low) * place / (values() - 1)};
    return fixed;
  }
  [[nodiscard]] std::string text(std::int64_t place) const {
    const std::int64_t value = at(place).tuning.start.front();
    return limit.tuning.moves == BatchTuning::Moves::budget
               ? " with a budget of " + format_bytes(static_cast<Bytes>(value) * 1_MiB)
               : fmt::format(" with at most {} samples in a batch", value);
  }
};

bool same_composer(const PolicyChoice& one, const PolicyChoice& other) {
  const auto values = [](const PolicyChoice& choice) {
    std::map<std::string, OptionValue> all;  // wherever they were given
    for (const OptionEntry& option : choice.options.entries()) all[option.key] = option.value;
    return all;
  };
  return one.use == other.use && one.profile == other.profile && values(one) == values(other);
}

// Each composer beside a tuner, once for each range of one.
std::vector<Limited> limited_composers(const EpochScenario& scenario) {
  std::vector<Limited> all;
  for (const PolicyEntry& entry : scenario.policies) {
    const auto found = scenario.tuners.find(entry.label);
    if (found == scenario.tuners.end()) continue;
    const BatchTuning& tuning = found->second.tuning;
    const bool known = std::ranges::any_of(all, [&](const Limited& one) {
      return same_composer(one.composer->choice, entry.choice) && one.limit.tuning.moves == tuning.moves &&
             one.limit.tuning.space == tuning.space;
    });
    if (known) continue;
    all.push_back(
        {&entry, {.choice = {.use = "fixed", .profile = {}, .options = {}, .where = {}}, .tuning = tuning}});
  }
  return all;
}

// As this kind ranks its policies. Empty for a run with an OOM, or that ended early.
FixedRank rank_of_run(EpochScenario scenario, const PolicyEntry& composer,
                      const std::optional<BatchTuner>& limit) {
  const PolicyEntry entry{"oracle", composer.choice};
  if (limit) scenario.tuners["oracle"] = *limit;
  const EpochResult result = run_composer(scenario, entry);
  const Figures figures{result.metrics};
  if (!result.run.ended_early.empty() || figures["ooms"] > 0 || result.run.phases.ooms > 0)
    return std::nullopt;
  return std::vector{figures["untrained_samples"],
                     -figures[scenario.model->timed() ? "samples_per_s" : "budget_use"]};
}

EpochOracle named_oracle(const PolicyEntry& composer, std::optional<BatchTuner> limit,
                         std::string limit_text) {
  EpochOracle oracle{{"oracle", composer.choice}, std::move(limit), {}};
  oracle.note.choice =
      (composer.choice.profile.empty() ? composer.choice.use : composer.choice.profile) + limit_text;
  oracle.note.fixed = {{"composer", composer.choice.use}, {"profile", composer.choice.profile}};
  return oracle;
}

}  // namespace

std::optional<EpochOracle> find_epoch_oracle(const EpochScenario& scenario, unsigned threads) {
  if (scenario.tuners.empty() || (scenario.setup.make_performer && !scenario.model->timed()))
    return std::nullopt;
  EpochScenario simulated = scenario;
  simulated.setup.make_performer = nullptr;
  simulated.tuners.clear();
  const std::vector<Limited> limited = limited_composers(scenario);
  std::int64_t most = 1;
  for (const Limited& one : limited) most = std::max(most, one.values());
  std::atomic<std::int64_t> runs = 0;
  const auto best = best_fixed_choice({{.count = std::ssize(limited), .in_order = false}, {.count = most}},
                                      threads, [&](const FixedPlaces& places) -> FixedRank {
                                        const Limited& one = limited[static_cast<std::size_t>(places[0])];
                                        if (places[1] >= one.values())
                                          return std::nullopt;  // a shorter range than another's
                                        ++runs;
                                        return rank_of_run(simulated, *one.composer, one.at(places[1]));
                                      });

  std::vector<const PolicyEntry*> plain;
  for (const PolicyEntry& entry : scenario.policies) {
    if (!scenario.tuners.contains(entry.label)) plain.push_back(&entry);
  }
  std::vector<FixedRank> ranks(plain.size());
  for_each_index(plain.size(), threads,
                 [&](std::size_t i) { ranks[i] = rank_of_run(simulated, *plain[i], std::nullopt); });
  std::optional<EpochOracle> oracle;
  FixedRank rank;
  if (best) {
    const Limited& one = limited[static_cast<std::size_t>(best->places[0])];
    oracle = named_oracle(*one.composer, one.at(best->places[1]), one.text(best->places[1]));
    rank = best->rank;
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (!ranks[i] || (rank && *ranks[i] >= *rank)) continue;
    oracle = named_oracle(*plain[i], std::nullopt, "");
    oracle->note.choice = plain[i]->label + " as it is";
    rank = ranks[i];
  }
  if (!oracle) return std::nullopt;
  oracle->note.runs = runs + std::ssize(plain);
  oracle->note.tried_all = !best || best->tried_all;
  return oracle;
}

}  // namespace vramlab
