#include "lab/whatif/whatif.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "lab/parallel.hpp"
#include "lab/scenario/cards.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/snapshot/writer.hpp"

namespace vramlab {
namespace {

constexpr Bytes kPage = 2_MiB;  // physical granularity (R10.1)
// What a card that stands in for an unknown one has beside the limit. Expandable segments map whole pages and
// can pass the limit by one (R4.9); the card must not be what refuses them.
constexpr Bytes kBesideLimit = 1_GiB;

// What a plan may cost beside the replays; vramlab plan tries seven times as much. Above so many blocks only
// the first passes are made.
constexpr std::size_t kPlanWork = 200'000;
constexpr std::size_t kManyBlocks = 100'000;
constexpr std::size_t kMostPlannedBlocks = 300'000;  // above them even those take longer than all replays

// The recorded string is not parsed again: what the file says beside it counts.
AllocatorSettings settings_of(const std::string& conf, const ClientProgram& program) {
  AllocatorSettings settings;
  settings.torch = program.settings.torch;
  try {
    settings = conf == program.settings.text ? program.settings : parse_allocator_settings(conf, settings);
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      const std::string key = problem.where.substr(problem.where.rfind(' ') + 1);
      problem.where = "--alloc-conf " + conf;
      if (conf.find(',') != std::string::npos) problem.where += ": " + key;  // which of the keys
    }
    throw InputError(std::move(problems));
  }
  if (settings.backend != AllocatorBackend::native) {
    throw InputError("--alloc-conf " + conf,
                     "backend:cudaMallocAsync cannot be replayed: where the driver puts its blocks is not "
                     "known. --backend "
                     "cudaMallocAsync answers roughly.");
  }
  return settings;
}

// Less than this is what a replay may be off by where the whole history is known (R10.8).
constexpr double kReplayMargin = 0.01;

// Whether the file itself shows more reserved than a replay of what it tells of the program.
bool is_lower_bound(const ClientProgram& program) {
  if (!program.shown_reserved || program.settings.backend != AllocatorBackend::native) return false;
  const Bytes replayed = replay_program(program, {.settings = program.settings}).highest_reserved;
  const bool whole = program.initial_actions == 0 && program.has_history;
  const double margin = whole ? kReplayMargin * static_cast<double>(*program.shown_reserved) : 0;
  return static_cast<double>(replayed) + margin < static_cast<double>(*program.shown_reserved);
}

// The card of the recording: what it had for the allocator if it was full at a failure, else its size.
WhatIfCard recorded_card(const ClientProgram& program) {
  WhatIfCard card;
  const bool known = program.device_total || program.room || program.limit;
  card.name = known ? "as recorded" : "no limit";
  card.recorded = true;
  if (program.device_total) {
    card.capacity = program.device_total;
    card.context_assumed = std::ranges::none_of(gpu_catalogue(), [&](const Gpu& gpu) {
      return gpu.total == *program.device_total && !gpu.context_assumed();
    });
  }
  if (program.room) {
    if (!card.capacity) card.capacity = *program.room + card.context;
    const Bytes usable = *card.capacity - std::min(card.context, *card.capacity);
    card.others = usable - std::min(usable, *program.room);
  }
  return card;
}

// Without a share of its own, and with regions as they are needed.
BackendChoice growing(BackendChoice backend) {
  backend.share = 1;
  backend.preallocate = false;
  return backend;
}

ReplaySetup setup_of(const WhatIfRow& row, const AllocatorSettings& settings) {
  ReplaySetup setup;
  setup.settings = settings;
  setup.context = row.card.context;
  setup.total = row.never_full() ? (row.limit ? *row.limit + row.card.context + kBesideLimit : kNeverFull)
                                 : *row.card.capacity - row.card.others;
  setup.limit = row.least_limit();
  setup.backend = row.backend;
  // A share of a card that is never full says nothing.
  if (row.never_full()) setup.backend = growing(setup.backend);
  return setup;
}

/// One row on its way, with what is needed to fill it.
struct Job {
  const ClientProgram* program = nullptr;
  AllocatorSettings settings;
  WhatIfRow* row = nullptr;
  bool keep_peak = false;
  Holders* holders = nullptr;  ///< of the program's first row, which comes before all others
  std::vector<bool> gone{};    ///< its pins that are gone in this row, where it is the same card's
};

/// What comes of a size: all that a search for the smallest one asks.
struct Trial {
  bool serves_all = false;
  bool retried = false;
};

Trial replay_at(const Job& job, Bytes size) {
  ReplaySetup setup = setup_of(*job.row, job.settings);
  if (setup.limit) {
    setup.limit = size;
    setup.total = std::max(setup.total, size + setup.context + kBesideLimit);
  } else {
    setup.total = size + setup.context;
  }
  setup.probe_attempts = job.program->attempts > 0;
  setup.until_oom = true;
  const ProgramOutcome outcome = replay_program(*job.program, setup);
  return {outcome.serves_all(), outcome.stats.num_alloc_retries > 0};
}

// Smaller sizes are taken to be worse. That is not always so: a release at another moment can move everything
// after it. What comes out works; whether something still smaller works too is not known for certain.
std::optional<Bytes> bisect(Bytes most, const std::function<bool(Bytes)>& good) {
  Bytes high = round_up(most, kPage);
  if (!good(high)) {
    high =
        round_up(2 * most, kPage);  // an expandable request is refused by its size, not by its pages (R4.9)
    if (!good(high)) return std::nullopt;
  }
  Bytes low = 0;  // fails
  while (high - low > kPage) {
    const Bytes middle = round_up(low + (high - low) / 2, kPage);
    (good(middle) ? high : low) = middle;
  }
  return high;
}

// What the program needs where nothing limits it is looked for up to `most`. Both searches begin alike.
void find_smallest(const Job& job, Bytes most, bool without_retry) {
  std::map<Bytes, Trial> known;
  const auto trial = [&](Bytes size) -> const Trial& {
    const auto [at, is_new] = known.try_emplace(size);
    if (is_new) {
      at->second = replay_at(job, size);
      ++job.row->trials;
    }
    return at->second;
  };
  job.row->smallest = bisect(most, [&](Bytes size) { return trial(size).serves_all; });
  if (!without_retry) return;
  job.row->smallest_without_retry =
      bisect(most, [&](Bytes size) { return trial(size).serves_all && !trial(size).retried; });
}

// The largest request that failed in the recording, which its peak does not hold.
Bytes largest_attempt(const ClientProgram& program) {
  Bytes largest = 0;
  for (const ClientProgram::Failure& failure : program.failures) {
    largest = std::max(largest, program.actions[failure.action].bytes);
  }
  return std::min(largest, kNeverFull);
}

/// What a replay shows of the blocks' places.
struct ShownPlaces {
  std::vector<BlockPlace> places;
  std::vector<ReplayedAction> actions;
};

// Another replay stops at the moment of the pins, which only the first one shows.
void keep_holders(const Job& job, const ReplaySetup& setup, const ShownPlaces& shown,
                  const WhatIfQuestion& question, WhatIfKept& kept) {
  const ClientProgram& program = *job.program;
  const std::vector<Lifetime> lifetimes = lifetimes_of(program, &shown.places);
  *job.holders = holders_of(program, shown.actions, lifetimes, question.at);
  kept.peak =
      peak_memory(program, held_after(lifetimes, job.holders->at), job.holders->at, question.grouping);
  PlacedBlocks placed;
  placed.action = job.holders->pins_at;
  replay_program(program, setup, {.placed = &placed});
  add_pins(program, lifetimes, placed, *job.holders);
  if (!shown.actions.empty()) {
    const Bytes reserved = std::ranges::max(shown.actions, {}, &ReplayedAction::reserved).reserved;
    try_remedies(program, setup, lifetimes, reserved, question.threads, *job.holders);
  }
  if (question.maps) job.holders->placed = std::move(placed);
}

// One replay shows everything that is kept, and another one without any limit what a program would need that
// does not fit.
void fill(Job& job, const WhatIfQuestion& question) {
  const ClientProgram& program = *job.program;
  WhatIfRow& row = *job.row;
  WhatIfKept kept;
  SegmentSurvey survey;
  PassedHistory surveyed{[&](const TraceEntry& entry) { survey.add(entry); }};
  ShownPlaces shown;
  PlacedBlocks placed;
  ReplayKeeps keeps;
  const bool maps = question.maps && row.backend.is_native();
  if (maps) keeps.history = &surveyed;
  if (job.keep_peak) {
    keeps.places = &shown.places;
    keeps.actions = &shown.actions;
  } else if (job.holders != nullptr) {
    placed.action = job.holders->pins_at;
    keeps.placed = &placed;
  }
  if (question.snapshot) {
    keeps.at_end = [&](const CachingAllocator& allocator) {
      kept.snapshot = snapshot_of(allocator);
      kept.snapshot.frames = program.frames;
      if (!program.stacks.empty()) kept.snapshot.stacks = program.stacks;
    };
  }
  ReplaySetup setup = setup_of(row, job.settings);
  setup.probe_attempts = program.attempts > 0;
  row.outcome = replay_program(program, setup, keeps);
  setup.probe_attempts = false;
  kept.history = [&program, setup](const std::function<void(const TraceEntry&)>& see) {
    PassedHistory passed{see};
    replay_program(program, setup, {.history = &passed});
  };
  if (maps) {
    SegmentMapMaker maker{survey};
    kept.history([&](const TraceEntry& entry) { maker.add(entry); });
    kept.map = maker.finish();
  }
  if (!question.snapshot) kept.history = {};
  const bool fits = row.outcome.fits();
  const bool serves_all = row.outcome.serves_all();
  const bool searched = question.smallest || (!serves_all && row.room());
  if (searched || (job.keep_peak && !fits)) {
    ReplaySetup unlimited = setup_of(row, job.settings);
    unlimited.total = kNeverFull;
    unlimited.limit.reset();
    unlimited.backend = growing(unlimited.backend);
    ReplayKeeps free_keeps;
    if (job.keep_peak && !fits) {
      shown = {};
      setup = unlimited;
      free_keeps = {.places = &shown.places, .actions = &shown.actions};
    }
    const ProgramOutcome free_run = replay_program(program, unlimited, free_keeps);
    Bytes most = free_run.highest_reserved + largest_attempt(program);
    if (row.backend.kind == BackendKind::bfc) {  // has only its share
      most = static_cast<Bytes>(static_cast<double>(most) / row.backend.share);
    }
    if (searched) find_smallest(job, std::max(most, kPage), question.smallest);
  }
  if (job.keep_peak) {
    keep_holders(job, setup, shown, question, kept);
    if (!fits) {
      for (std::string* moment : {&job.holders->moment, &job.holders->pins_moment})
        *moment += ", without any limit";
    }
  }
  if (keeps.placed != nullptr && fits) job.gone = gone_pins(*job.holders, pins_of(placed));
  row.kept = std::make_shared<const WhatIfKept>(std::move(kept));
}

// The first rows of the programs beside their plans, then the others, which are held against them.
void fill_all(std::vector<Job>& jobs, std::vector<std::function<void()>> first,
              const WhatIfQuestion& question) {
  std::vector<std::function<void()>> others;
  for (Job& job : jobs) (job.keep_peak ? first : others).emplace_back([&] { fill(job, question); });
  for (const auto* turn : {&first, &others})
    for_each_index(turn->size(), question.threads, [&](std::size_t i) { (*turn)[i](); });
  for (const Job& job : jobs) {
    for (std::size_t pin = 0; !job.keep_peak && pin < job.gone.size(); ++pin) {
      if (job.gone[pin])
        job.holders->pins[pin].freed_by.push_back(job.row->conf.empty() ? "(default)" : job.row->conf);
    }
  }
}

// What the marks of a recording measured replaces a context that nobody measured for this program.
WhatIfCard with_outside(WhatIfCard card, const ClientProgram& program) {
  if (!program.outside || card.context_given) return card;
  if (card.recorded && program.room) return card;  // what the card had for the allocator is known as it is
  card.context = *program.outside;
  card.context_assumed = false;
  card.context_recorded = true;
  return card;
}

std::optional<Bytes> fraction_limit(const AllocatorSettings& settings, const WhatIfCard& card) {
  const double fraction = settings.per_process_memory_fraction;
  if (!(fraction < 1) || !card.capacity) return std::nullopt;
  return static_cast<Bytes>(fraction * static_cast<double>(*card.capacity));  // R9.1
}

// `settings`: those of each string of the question, and default ones for each backend.
std::vector<WhatIfRow> empty_rows(const ClientProgram& program, const WhatIfQuestion& question,
                                  const std::vector<AllocatorSettings>& settings, std::size_t rank) {
  const bool own = question.cards.empty();
  const bool lower_bound = is_lower_bound(program);
  std::vector<std::optional<Bytes>> limits = question.limits;
  if (limits.empty()) limits.push_back(own ? program.limit : std::nullopt);
  const std::vector<WhatIfCard> cards = own ? std::vector{recorded_card(program)} : question.cards;
  std::vector<WhatIfRow> rows;
  for (const WhatIfCard& asked_card : cards) {
    const WhatIfCard card = with_outside(asked_card, program);
    for (const std::optional<Bytes>& limit : limits) {
      const bool is_known =
          card.capacity && (!own || program.device_total);  // else it follows from a failure
      if (limit && is_known && !question.limits.empty()) {
        require_limit_on_card(*limit, *card.capacity, card.name);
      }
      for (std::size_t i = 0; i < settings.size(); ++i) {
        const bool native = i < question.confs.size();
        WhatIfRow row;
        if (!native) row.backend = question.backends[i - question.confs.size()];
        row.conf = native ? question.confs[i] : "backend:" + to_text(row.backend);
        row.recorded_conf = native && row.conf == program.settings.text;
        row.card = card;
        row.limit = limit;
        row.program = rank;
        row.fraction_limit = fraction_limit(settings[i], card);
        row.lower_bound = lower_bound;
        const bool same_limit = card.failed ? limit == card.failed_limit : question.limits.empty();
        row.failed_in_recording =
            row.recorded_conf && card.recorded && same_limit && (program.attempts > 0 || card.failed);
        const Bytes total = card.capacity.value_or(kNeverFull);
        if (total < card.context + card.others) {
          throw InputError(card.name, format_bytes(total) + " do not even hold the CUDA context (" +
                                          format_bytes(card.context) + ").");
        }
        row.usable = total - card.context - card.others;
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

// A rank that fails decides over one that does not, then the one that needs more.
bool is_worse(const WhatIfRow& a, const WhatIfRow& b) {
  if (a.fit() != b.fit()) return a.fit() < b.fit();
  const Bytes need_a = a.smallest.value_or(a.outcome.highest_reserved);
  const Bytes need_b = b.smallest.value_or(b.outcome.highest_reserved);
  return need_a > need_b;
}

// Settings worth trying on a program that was recorded under `settings`: those, the defaults, and one of
// each kind. Garbage collection only where a limit makes it act (R9.1).
std::vector<std::string> settings_worth_trying(const AllocatorSettings& settings, bool limited,
                                               bool on_windows) {
  std::vector<std::string> confs{settings.text};
  std::vector<std::string> others{"", "expandable_segments:True", "max_split_size_mb:64",
                                  "max_split_size_mb:256", "roundup_power2_divisions:8"};
  if (limited) others.emplace_back("garbage_collection_threshold:0.8");
  if (on_windows) std::erase(others, "expandable_segments:True");  // R9.5
  for (std::string& conf : others) {
    if (conf != settings.text) confs.push_back(std::move(conf));
  }
  return confs;
}

}  // namespace

const char* context_from(const WhatIfCard& card) {
  if (card.context_assumed) return "assumed";
  return card.context_recorded ? "recording" : card.context_given ? "given" : "measured";
}

void write_kept_snapshot(const WhatIfKept& kept, const ByteSink& sink) {
  SnapshotWriter writer{sink, kept.snapshot};
  writer.begin_device();
  kept.history([&](const TraceEntry& entry) { writer.add(entry); });
  AllocatorSettings settings = allocator_settings_of(kept.snapshot);
  settings.text = kept.snapshot.settings.conf.value_or("");
  writer.finish(settings);
}

Fit WhatIfRow::fit() const {
  if (failed_in_recording || !outcome.serves_all()) return Fit::no;
  return lower_bound ? Fit::open : Fit::yes;
}

std::optional<Bytes> WhatIfRow::least_limit() const {
  if (!limit || !fraction_limit) return limit ? limit : fraction_limit;
  return std::min(*limit, *fraction_limit);
}

std::optional<Bytes> WhatIfRow::room() const {
  const std::optional<Bytes> of_card = room_of_card();
  if (!of_card || !fraction_limit) return of_card ? of_card : fraction_limit;
  return std::min(*of_card, *fraction_limit);
}

std::optional<Bytes> WhatIfRow::room_of_card() const {
  if (never_full()) return limit;
  return limit ? std::min(*limit, usable) : usable;
}

WhatIfAnswer answer_whatif(const std::vector<ClientProgram>& programs, const WhatIfQuestion& asked) {
  WhatIfQuestion question = asked;
  if (question.confs.empty()) {
    const bool own_limit = question.cards.empty() && question.limits.empty() && programs.front().limit;
    const bool limited = own_limit || std::any_of(question.limits.begin(), question.limits.end(),
                                                  [](const auto& limit) { return limit.has_value(); });
    question.confs = settings_worth_trying(programs.front().settings, limited, programs.front().on_windows);
  }
  std::replace(question.confs.begin(), question.confs.end(), std::string{"recorded"},
               programs.front().settings.text);
  std::vector<std::vector<AllocatorSettings>> settings;  // by program
  WhatIfAnswer answer;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    settings.emplace_back();
    for (const std::string& conf : question.confs) {
      settings[i].push_back(settings_of(conf, programs[i]));
      if (programs[i].on_windows) settings[i].back().expandable_segments = false;  // a warning there (R9.5)
    }
    settings[i].resize(question.confs.size() + question.backends.size());
    answer.ranks.push_back(empty_rows(programs[i], question, settings[i], i));
  }
  if (question.peaks) answer.holders.resize(programs.size());
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    for (std::size_t row = 0; row < answer.ranks[i].size(); ++row) {
      // Pins are held against the other settings of the same card.
      const bool same_card = row < question.confs.size();
      jobs.push_back({&programs[i], settings[i][row % settings[i].size()], &answer.ranks[i][row],
                      question.peaks && row == 0,
                      question.peaks && same_card ? &answer.holders[i] : nullptr});
    }
  }
  if (question.snapshot && jobs.size() != 1) {
    throw InputError("--export", "takes one program under one setting on one card; these are " +
                                     std::to_string(answer.ranks.front().size()) + " rows of " +
                                     std::to_string(programs.size()) +
                                     " programs. Give one --alloc-conf and at most one card.");
  }
  answer.too_many_to_plan = question.least && std::ranges::any_of(programs, [](const ClientProgram& program) {
                              return program.blocks > kMostPlannedBlocks;
                            });
  std::vector<std::function<void()>> plans;
  if (question.least && !answer.too_many_to_plan) answer.least.resize(programs.size());
  for (std::size_t i = 0; i < answer.least.size(); ++i) {
    plans.emplace_back([&, i] {
      const bool many = programs[i].blocks > kManyBlocks;
      answer.least[i] = least_memory(programs[i], {.work = many ? 0 : kPlanWork});
    });
  }
  fill_all(jobs, std::move(plans), question);
  for (std::size_t row = 0; row < answer.ranks.front().size(); ++row) {
    const WhatIfRow* worst = &answer.ranks.front()[row];
    for (const auto& rank : answer.ranks) {
      if (is_worse(rank[row], *worst)) worst = &rank[row];
    }
    answer.rows.push_back(*worst);
  }
  return answer;
}

}  // namespace vramlab
