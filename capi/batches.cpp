// Composers and searchers behind C functions.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/description.hpp"
#include "policies/contract/batch_sessions.hpp"

namespace vramlab {
namespace {

constexpr const char* kSavedComposer = "composer-session-1";
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

std::vector<std::string> task_names(const Json& json) {
  if (!json.contains("tasks")) return {"samples"};
  const Json& tasks = json["tasks"];
  const bool texts = tasks.is_array() && !tasks.empty() && tasks.size() <= kMostTasks &&
                     std::ranges::all_of(tasks, [](const Json& task) { return task.is_string(); });
  if (texts) return tasks.get<std::vector<std::string>>();
  throw InputError("/tasks", "must be a list of 1 to " + std::to_string(kMostTasks) + " names.");
}

std::vector<Sample> checked_samples(const vramlab_sample* samples, std::uint64_t count, std::size_t tasks) {
  require(samples, "the list of samples");
  if (count < 1 || count > std::numeric_limits<SampleId>::max()) {
    throw InputError("", "a data set has 1 to 2^32 - 1 samples, not " + std::to_string(count) + ".");
  }
  std::vector<Sample> checked;
  checked.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const vramlab_sample& one = samples[i];
    const auto refuse = [&](const char* key, std::int64_t found, const std::string& allowed) {
      throw InputError("/samples/" + std::to_string(i) + "/" + key,
                       "is " + std::to_string(found) + ". Allowed: " + allowed + ".");
    };
    if (one.task >= tasks) refuse("task", one.task, "0 to " + std::to_string(tasks - 1));
    if (one.images < 0) refuse("images", one.images, "0 and more");
    if (one.length < 0 || one.length > kMostTokens) refuse("length", one.length, "0 to 2^40");
    if (one.tokens < 1 || one.tokens > kMostTokens) refuse("tokens", one.tokens, "1 to 2^40");
    checked.push_back({one.task, one.images, one.length, one.tokens});
  }
  return checked;
}

EpochData epoch_data(const Json& json, std::span<const Sample> samples) {
  const std::int64_t target = whole_number_or(json, "target_batch", 0);
  if (target < 0) throw InputError("/target_batch", "is below 0. 0 = each batch is an effective batch.");
  return {.samples = samples,
          .target_batch = target,
          .seed = static_cast<std::uint64_t>(whole_number_or(json, "seed", 1)),
          .shuffle = flag_or(json, "shuffle", true),
          .packs = flag_or(json, "packs", false)};
}

std::int64_t count_of(const Json& json, const char* key) {
  const std::int64_t count = whole_number(json, key, "");
  if (count < 0) throw InputError(std::string{"/"} + key, "is below 0.");
  return count;
}

ComposerState composer_state(const Json& json) {
  return {.position = {.seed = static_cast<std::uint64_t>(whole_number(json, "seed", "")),
                       .epoch = whole_number(json, "epoch", ""),
                       .position = static_cast<std::size_t>(count_of(json, "position")),
                       .waiting = numbers_of<SampleId>(json, "waiting")},
          .effective = count_of(json, "effective"),
          .micro_batches = count_of(json, "micro_batches"),
          .micro_steps = count_of(json, "micro_steps"),
          .failed_in_a_row = count_of(json, "failed_in_a_row"),
          .composer = numbers_of<double>(json, "composer")};
}

std::string text_of_state(const ComposerState& state, std::size_t samples) {
  const Json json{{"saved", kSavedComposer},
                  {"samples", samples},
                  {"seed", static_cast<std::int64_t>(state.position.seed)},
                  {"epoch", state.position.epoch},
                  {"position", state.position.position},
                  {"waiting", state.position.waiting},
                  {"effective", state.effective},
                  {"micro_batches", state.micro_batches},
                  {"micro_steps", state.micro_steps},
                  {"failed_in_a_row", state.failed_in_a_row},
                  {"composer", state.composer}};
  return json.dump();
}

constexpr std::initializer_list<const char*> kActions{"probe", "found", "none_fits", "give_up"};
constexpr std::initializer_list<const char*> kOutcomes{"ok", "oom", "held", "failed"};
Probe probe_of(const Json& json) {
  Probe probe{.batch = whole_number(json, "batch", ""),
              .outcome = value_of<ProbeOutcome>(text_of(json, "outcome"), kOutcomes, "/outcome"),
              .phase = text_of(json, "phase"),
              .error = text_of(json, "error")};
  if (!json.contains("cards") || !json["cards"].is_array() || json["cards"].empty()) {
    throw InputError("/cards", "must be a list with what was read of each card.");
  }
  for (const Json& card : json["cards"]) {
    const std::string where = "/cards/" + std::to_string(probe.cards.size());
    const auto bytes = [&](const char* key) { return bytes_or(card, key, 0, where); };
    if (bytes("total") == 0) throw InputError(where + "/total", "must say what may be used, above 0.");
    probe.cards.push_back({.start = bytes("start"),
                           .free = bytes("free"),
                           .peak = bytes("peak"),
                           .peak_reserved = bytes("peak_reserved"),
                           .current = bytes("current"),
                           .total = bytes("total")});
  }
  return probe;
}

std::string answer_text(const SearcherAnswer& answer, const ProbeDepth& depth) {
  return Json{{"action", word_for(answer.action, kActions)},
              {"batch", answer.batch},
              {"extrapolated", answer.extrapolated},
              {"reason", answer.reason},
              {"steps", depth.steps},
              {"all_phases", depth.all_phases},
              {"varied_steps", depth.varied_steps},
              {"varied_starts", depth.varied_starts},
              {"share", depth.share},
              {"largest_good", answer.largest_good},
              {"by_option", answer.by_option}}
      .dump();
}

}  // namespace
}  // namespace vramlab

struct vramlab_composer {
  std::vector<std::string> tasks;
  std::unique_ptr<vramlab::Composer> composer;
  vramlab::EpochData data;
  std::vector<vramlab::Sample> samples;
  std::optional<vramlab::ComposerSession> session;
  vramlab::BatchLimits limits;
  vramlab::Bytes total = 0;  // that the program may use, as it said last; 0 = it did not yet
  std::int64_t epoch = 0;
  vramlab::ComposerAnswer answer;  // the last one
  std::string text;
};

struct vramlab_searcher {
  std::unique_ptr<vramlab::Searcher> policy;
  std::optional<vramlab::SearchSession> session;
  std::string text;
};

namespace {

using vramlab::guarded;
using vramlab::InputError;
using vramlab::parse_object;
using vramlab::require;
using vramlab::text_from;

void begin(vramlab_composer& composer, std::vector<vramlab::Sample> samples) {
  composer.session.reset();
  composer.samples = std::move(samples);
  composer.data.samples = composer.samples;
  composer.session.emplace(*composer.composer, composer.data);
  composer.session->set_limits(composer.limits);
  composer.epoch = 0;
}

void require_on_card(vramlab::Bytes budget, vramlab::Bytes total) {
  if (total == 0 || budget <= total) return;
  throw InputError("budget", vramlab::exact_size_text(budget) + " is more than the program may use, " +
                                 vramlab::exact_size_text(total) + ".");
}

}  // namespace

vramlab_composer* vramlab_composer_create(const char* json, const vramlab_sample* samples, uint64_t count) {
  vramlab_composer* result = nullptr;
  guarded([&] {
    const vramlab::Json described = parse_object(json, "the composer's description");
    auto made = std::make_unique<vramlab_composer>();
    made->tasks = vramlab::task_names(described);
    const auto choice =
        vramlab::read_choice(described, {"tasks", "target_batch", "seed", "shuffle", "packs"});
    made->composer = vramlab::policies_for(described)->composers.make(choice, made->tasks);
    made->data = vramlab::epoch_data(described, {});
    begin(*made, vramlab::checked_samples(samples, count, made->tasks.size()));
    result = made.release();
  });
  return result;
}

void vramlab_composer_destroy(vramlab_composer* composer) { delete composer; }

int vramlab_composer_samples(vramlab_composer* composer, const vramlab_sample* samples, uint64_t count) {
  return guarded([&] {
    require(composer, "the composer");
    auto checked = vramlab::checked_samples(samples, count, composer->tasks.size());
    if (composer->session->running() > 0) {
      throw InputError("", "batches of the data set before still run. Tell how they ended.");
    }
    composer->session->end_epoch();
    begin(*composer, std::move(checked));
  });
}

int vramlab_composer_begin_epoch(vramlab_composer* composer, int64_t epoch, int64_t* effective) {
  return guarded([&] {
    require(composer, "the composer");
    if (epoch < 0) throw InputError("epoch", "is below 0.");
    const std::int64_t last = composer->session->end_epoch();
    composer->session->begin_epoch(epoch);
    composer->epoch = epoch;
    if (effective != nullptr) *effective = last;
  });
}

int vramlab_composer_next(vramlab_composer* composer, const vramlab_step* reading, vramlab_batch* batch) {
  return guarded([&] {
    require(composer, "the composer");
    require(batch, "the place for the batch");
    const auto observation = vramlab::observation_of(reading, 1, vramlab::CardsRule::fullest);
    require_on_card(composer->limits.budget.value_or(0), observation.memory.total);
    composer->total = observation.memory.total;
    if (composer->session->left() == 0) {
      *batch = {.action = VRAMLAB_BATCH_EPOCH_OVER};
      return;
    }
    const bool accumulates = composer->session->accumulates();
    composer->answer = composer->session->next(observation);
    const vramlab::ComposerAnswer& answer = composer->answer;
    constexpr int32_t kCodes[]{VRAMLAB_BATCH_RUN, VRAMLAB_BATCH_CLEAN_UP, VRAMLAB_BATCH_GIVE_UP};
    const bool runs = answer.action == vramlab::ComposerAnswer::Action::run;
    *batch = {.action = kCodes[static_cast<std::size_t>(answer.action)],
              .oversize = answer.oversize,
              .checkpointing = answer.checkpointing,
              .accumulates = accumulates,
              .samples = runs ? answer.batch.data() : nullptr,
              .count = runs ? answer.batch.size() : 0,
              .predicted = answer.predicted.likely,
              .predicted_at_most = answer.predicted.at_most};
  });
}

int vramlab_composer_limits(vramlab_composer* composer, uint64_t budget, int64_t most_samples) {
  return guarded([&] {
    require(composer, "the composer");
    vramlab::BatchLimits limits;
    if (budget > 0) {
      limits.budget = vramlab::checked_size(budget, "budget");
      require_on_card(budget, composer->total);
      if (!composer->composer->obeys_budget()) {
        throw InputError("budget",
                         "this composer obeys none, as it foresees no memory. Limit the samples of a batch.");
      }
    }
    if (most_samples < 0) {
      throw InputError("most_samples",
                       "is " + std::to_string(most_samples) + ". Allowed: 1 and more; 0 = no limit.");
    }
    if (most_samples > 0) limits.most_samples = most_samples;
    composer->limits = limits;
    composer->session->set_limits(limits);
  });
}

int vramlab_composer_told(vramlab_composer* composer, const uint32_t* samples, uint64_t count,
                          const vramlab_batch_end* end, vramlab_batch_next* next) {
  return guarded([&] {
    require(composer, "the composer");
    require(samples, "the list of samples");
    require(end, "the end of the batch");
    require(next, "the place for what is next");
    if (end->total == 0 || end->peak > end->total) {
      throw InputError("peak", "is " + std::to_string(static_cast<std::int64_t>(end->peak)) + " of " +
                                   std::to_string(end->total) + " bytes that may be used.");
    }

    const auto made = composer->session->told(
        {samples, count}, {.result = vramlab::step_result(end->oom, "oom"),
                           .rise = vramlab::checked_size(end->rise, "rise"),
                           .typical = end->typical != 0,
                           .usage = static_cast<double>(end->peak) / static_cast<double>(end->total)});
    const bool gives_up = composer->session->failed_in_a_row() >= vramlab::kMostFailedBatchesInARow;
    if (gives_up) {
      composer->answer.reason =
          std::to_string(composer->session->failed_in_a_row()) + " batches in a row ran out of memory";
    }
    *next = {made.steps, gives_up, made.effective, made.skipped};
  });
}

int vramlab_composer_left(const vramlab_composer* composer, uint64_t* left, int64_t* epoch) {
  return guarded([&] {
    require(composer, "the composer");
    if (left != nullptr) *left = composer->session->left();
    if (epoch != nullptr) *epoch = composer->epoch;
  });
}

const char* vramlab_composer_reason(const vramlab_composer* composer) {
  return composer == nullptr ? "" : composer->answer.reason.c_str();
}

const char* vramlab_composer_statistics(vramlab_composer* composer) {
  return text_from(composer, "the composer", [&] { return vramlab::statistics_text(*composer->composer); });
}

const char* vramlab_composer_save(vramlab_composer* composer) {
  return text_from(composer, "the composer", [&] {
    return vramlab::text_of_state(composer->session->save(), composer->samples.size());
  });
}

int vramlab_composer_load(vramlab_composer* composer, const char* saved) {
  return guarded([&] {
    require(composer, "the composer");
    const vramlab::Json json = parse_object(saved, "the saved composer");
    const bool ours = vramlab::text_of(json, "saved") == vramlab::kSavedComposer;
    if (!ours ||
        vramlab::whole_number(json, "samples", "") != static_cast<std::int64_t>(composer->samples.size())) {
      throw InputError("", "this is not a saved composer of a data set with " +
                               std::to_string(composer->samples.size()) +
                               " samples. Give the text that was saved, unchanged.");
    }
    const vramlab::ComposerState state = vramlab::composer_state(json);
    composer->session->restore_books(state);
    composer->composer->restore(state.composer);
    composer->epoch = state.position.epoch;
  });
}

vramlab_searcher* vramlab_searcher_create(const char* json) {
  vramlab_searcher* result = nullptr;
  guarded([&] {
    const vramlab::Json described = parse_object(json, "the searcher's description");
    auto made = std::make_unique<vramlab_searcher>();
    const auto choice = vramlab::read_choice(described, {"low", "high"});
    made->policy = vramlab::policies_for(described)->searchers.make(choice);
    made->session.emplace(*made->policy, vramlab::whole_number_or(described, "low", 1),
                          vramlab::whole_number(described, "high", ""));
    result = made.release();
  });
  return result;
}

void vramlab_searcher_destroy(vramlab_searcher* searcher) { delete searcher; }

const char* vramlab_searcher_next(vramlab_searcher* searcher, const vramlab_step* reading) {
  return text_from(searcher, "the searcher", [&] {
    auto observation = vramlab::observation_of(reading, 1, vramlab::CardsRule::fullest);
    observation.iteration = observation.reading = searcher->session->probes();
    const auto answer = searcher->session->next(observation);
    return vramlab::answer_text(answer, searcher->policy->depth());
  });
}

int vramlab_searcher_told(vramlab_searcher* searcher, const char* json) {
  return guarded([&] {
    require(searcher, "the searcher");
    searcher->session->told(vramlab::probe_of(parse_object(json, "the probe")));
  });
}
