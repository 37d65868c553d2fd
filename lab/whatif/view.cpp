#include "lab/whatif/view.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "lab/whatif/recording.hpp"
#include "sim/memory/oom_report.hpp"
#include "sim/memory/others/backends.hpp"

namespace vramlab {
namespace {

// Replays of plain segments without recorded addresses are good to about 1 % of peak reserved (R10.8); less
// than that is not a difference.
constexpr double kNoDifference = 0.01;
constexpr double kClearlyWorse = 0.1;

using Rows = std::span<const WhatIfRow>;

Bytes reserved(const WhatIfRow& row) { return row.outcome.highest_reserved; }

/// The rows of each card and limit; they follow each other. Those of other allocators, which come last, are
/// no advice on settings.
std::vector<Rows> groups(const WhatIfAnswer& answer) {
  const Rows rows = answer.rows;
  std::vector<Rows> found;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first;
    while (end < rows.size() && rows[end].card.name == rows[first].card.name &&
           rows[end].limit == rows[first].limit) {
      ++end;
    }
    const auto is_native = [](const WhatIfRow& row) { return row.backend.is_native(); };
    const auto native =
        static_cast<std::size_t>(std::count_if(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                               rows.begin() + static_cast<std::ptrdiff_t>(end), is_native));
    if (native > 0) found.push_back(rows.subspan(first, native));
    first = end;
  }
  return found;
}

// The settings the reader has now, else the defaults, else the first that were asked for.
const WhatIfRow& baseline(Rows rows) {
  const auto recorded =
      std::find_if(rows.begin(), rows.end(), [](const WhatIfRow& row) { return row.recorded_conf; });
  if (recorded != rows.end()) return *recorded;
  const auto plain =
      std::find_if(rows.begin(), rows.end(), [](const WhatIfRow& row) { return row.conf.empty(); });
  return plain != rows.end() ? *plain : rows.front();
}

// Fits first; then fewest retries, then least reserved; the earlier among equals.
const WhatIfRow& best(Rows rows) {
  return *std::min_element(rows.begin(), rows.end(), [](const WhatIfRow& a, const WhatIfRow& b) {
    if (a.fit() != b.fit()) return a.fit() > b.fit();
    if (a.fit() == Fit::no) return a.smallest.value_or(kNeverFull) < b.smallest.value_or(kNeverFull);
    const auto retries = [](const WhatIfRow& row) { return row.outcome.stats.num_alloc_retries; };
    if (retries(a) != retries(b)) return retries(a) < retries(b);
    return reserved(a) < reserved(b);
  });
}

std::string settings_name(const std::string& conf) { return conf.empty() ? "default settings" : conf; }

double change(Bytes from, Bytes to) {
  return from == 0 ? 0 : (static_cast<double>(to) - static_cast<double>(from)) / static_cast<double>(from);
}

// What one row costs beside another.
std::string cost(const WhatIfRow& row, const WhatIfRow& beside) {
  const MemoryStats& stats = row.outcome.stats;
  const MemoryStats& other = beside.outcome.stats;
  const double more = to_seconds(row.outcome.driver_time - beside.outcome.driver_time) * 1e3;
  return fmt::format("{} retr{} ({} before), {} released segment{} ({} before), {:+.1f} ms of driver time",
                     stats.num_alloc_retries, stats.num_alloc_retries == 1 ? "y" : "ies",
                     other.num_alloc_retries, stats.num_device_free, stats.num_device_free == 1 ? "" : "s",
                     other.num_device_free, more);
}

std::string of_room(const WhatIfRow& row) {
  const auto room = row.room();
  if (!room) return "";
  return fmt::format(" of {} {}", format_bytes(*room), row.least_limit() == room ? "allowed" : "usable");
}

// "on rtx-4090-24gb", "in the recorded limit of 4.0 GiB".
std::string place(const WhatIfRow& row) {
  const bool any_card = row.never_full() || row.card.name == "as recorded";
  if (any_card && row.limit) return "in a limit of " + format_bytes(*row.limit);
  return row.card.name == "as recorded"
             ? "on the card of the recording"
             : "on " + room_name(row) + (assumes_context(row) ? " (context assumed)" : "");
}

// Where requests failed in the recording, what would have come after them is not in it.
const char* fits_word(const std::vector<ClientProgram>& programs, const WhatIfRow& row) {
  return programs[row.program].attempts > 0 ? "All that the recording asked for fits" : "Fits";
}

// Where the failure of a row that failed already is told of.
const char* failed_where(const WhatIfRow& row) {
  return row.card.failed ? "by the message" : "in the recording";
}

// A setting that would make it clearly worse, for readers who were told that it always helps.
std::string warning_of_the_worst(const WhatIfRow& base, Rows rows) {
  const WhatIfRow& worst =
      *std::max_element(rows.begin(), rows.end(),
                        [](const WhatIfRow& a, const WhatIfRow& b) { return reserved(a) < reserved(b); });
  const double more = change(reserved(base), reserved(worst));
  if (more < kClearlyWorse) return "";
  return fmt::format(" {} would raise it to {} (+{:.0f} %).", conf_name(worst.conf),
                     format_bytes(reserved(worst)), 100 * more);
}

// Where the file shows more than its history tells of, no row says that the program fits.
std::string sentence_of_lower_bound(const std::vector<ClientProgram>& programs, const WhatIfRow& base,
                                    Rows rows) {
  const ClientProgram& program = programs[base.program];
  std::string text = fmt::format(
      "A lower bound: {} at least {}{}{}, and the file itself shows {} reserved",
      base.conf.empty() ? "default settings reserve" : base.conf + " reserves", format_bytes(reserved(base)),
      of_room(base), base.room() ? ' ' + place(base) : "", format_bytes(program.shown_reserved.value_or(0)));
  text += program.has_history ? ", which its history does not explain."
                              : "; it holds no history of what the program asked for.";
  if (base.room()) text += " Whether the program fits is not known.";
  const WhatIfRow& least = best(rows);
  if (reserved(least) < reserved(base)) {
    text +=
        fmt::format(" With {} it is at least {}.", settings_name(least.conf), format_bytes(reserved(least)));
  }
  return text;
}

std::string sentence_where_it_fits(const std::vector<ClientProgram>& programs, const WhatIfRow& base,
                                   Rows rows) {
  const WhatIfRow& least = best(rows);
  std::string text = fmt::format("{} {} with {} (peak reserved {}{})", fits_word(programs, base), place(base),
                                 settings_name(base.conf), format_bytes(reserved(base)), of_room(base));
  if (!base.room()) {
    text = fmt::format("Peak reserved is {} with {}", format_bytes(reserved(base)), settings_name(base.conf));
  }
  if (rows.size() == 1) return text + ".";
  const double gain = -change(reserved(base), reserved(least));
  const bool fewer_retries = least.outcome.stats.num_alloc_retries < base.outcome.stats.num_alloc_retries;
  if (&least == &base || (gain < kNoDifference && !fewer_retries)) {
    const std::string others =
        rows.size() == 2 ? "the other setting tried does not need"
                         : fmt::format("none of the {} other settings tried needs", rows.size() - 1);
    return text + "; " + others + " noticeably less." + warning_of_the_worst(base, rows);
  }
  return text +
         fmt::format("; {} needs {} ({:+.1f} %), at {}.", settings_name(least.conf),
                     format_bytes(reserved(least)), -100 * gain, cost(least, base)) +
         warning_of_the_worst(base, rows);
}

std::string sentence_where_it_does_not(const std::vector<ClientProgram>& programs, const WhatIfRow& base,
                                       Rows rows) {
  const WhatIfRow& helps = best(rows);
  std::string need = base.smallest ? "need " + format_bytes(*base.smallest) : std::string("fail at any size");
  if (base.failed_in_recording) {
    need = std::string("ran out of memory ") + failed_where(base);
  } else if (base.smallest && base.room()) {
    need += fmt::format(" ({} more than there is)",
                        format_bytes(*base.smallest - std::min(*base.smallest, *base.room())));
  }
  if (helps.fit() == Fit::open) {
    return fmt::format(
        "Does not fit {} with {}; what the file tells of would with {} (peak reserved {}{}), which is a "
        "lower "
        "bound.",
        place(base), settings_name(base.conf), settings_name(helps.conf), format_bytes(reserved(helps)),
        of_room(helps));
  }
  if (helps.fit() == Fit::yes) {
    return fmt::format("{} {} with {} (peak reserved {}{}), at {}; {} {}.", fits_word(programs, base),
                       place(base), settings_name(helps.conf), format_bytes(reserved(helps)), of_room(helps),
                       cost(helps, base), settings_name(base.conf), need);
  }
  std::string text = fmt::format(
      "Does not fit {} with {}: ", place(base),
      rows.size() == 1 ? settings_name(base.conf) : fmt::format("any of the {} settings tried", rows.size()));
  if (!helps.smallest || !base.room()) return text + "it fails at any size.";
  const Bytes room = *base.room();
  if (*helps.smallest <= room) return text + "requests failed " + failed_where(base) + '.';
  text += fmt::format("{} need{} the least, {}{}", settings_name(helps.conf), helps.conf.empty() ? "" : "s",
                      format_bytes(*helps.smallest), of_room(base));
  return text +
         fmt::format(", short by {}.", format_bytes(*helps.smallest - std::min(room, *helps.smallest)));
}

}  // namespace

std::string conf_name(const std::string& conf) { return conf.empty() ? "(default)" : conf; }

std::string room_name(const WhatIfRow& row) {
  if (!row.limit) return row.card.name;
  return fmt::format("{}, limit {}", row.card.name, format_bytes(*row.limit));
}

bool assumes_context(const WhatIfRow& row) {
  const bool limited = row.limit && row.limit == row.room();
  return row.card.capacity && row.card.context_assumed && !limited;
}

double fragmentation(const ProgramOutcome& outcome) {
  if (outcome.reserved_at_peak == 0) return 0;
  return 1.0 - static_cast<double>(outcome.active_at_peak) / static_cast<double>(outcome.reserved_at_peak);
}

namespace {

// What succeeded in the recording fits, but not all that failed in it.
std::string again_text(const WhatIfRow& row) {
  const std::size_t again = row.outcome.attempts.size() - row.outcome.attempts_served();
  std::string text = fmt::format("no: {} fail{} again", again, again == 1 ? "s" : "");
  if (!row.smallest || !row.room()) return text;
  return text + fmt::format(", {} short", format_bytes(*row.smallest - std::min(*row.smallest, *row.room())));
}

}  // namespace

std::string fit_text(const ClientProgram& program, const WhatIfRow& row) {
  if (row.outcome.fault) return "no: PyTorch itself fails";
  if (!row.outcome.first_oom) {
    if (row.failed_in_recording)
      return row.card.failed ? "no: failed by the message" : "no: failed in the recording";
    if (row.fit() == Fit::no) return again_text(row);
    if (!row.room()) return row.lower_bound ? "a lower bound" : "-";
    if (row.lower_bound) return "not known: a lower bound";
    return "yes, " + format_bytes(*row.room() - std::min(reserved(row), *row.room())) + " to spare";
  }
  const std::size_t action = row.outcome.first_oom->action;
  const std::string mark = mark_after(program, action);
  const std::string where =
      mark.empty() ? fmt::format("at operation {}", action + 1) : "in " + mark.substr(0, 10);
  if (!row.smallest || !row.room()) return "no: fails " + where;
  return fmt::format("no: {} short {}", format_bytes(*row.smallest - std::min(*row.smallest, *row.room())),
                     where);
}

std::vector<std::string> whatif_verdict(const std::vector<ClientProgram>& programs,
                                        const WhatIfAnswer& answer) {
  std::vector<std::string> sentences = failure_sentences(programs);
  for (const Rows rows : groups(answer)) {
    const WhatIfRow& base = baseline(rows);
    const auto sentence = base.fit() == Fit::no     ? sentence_where_it_does_not
                          : base.fit() == Fit::open ? sentence_of_lower_bound
                                                    : sentence_where_it_fits;
    sentences.push_back(sentence(programs, base, rows));
    const std::uint64_t attempts = programs[base.program].attempts;
    if (attempts == 0) continue;
    const WhatIfRow& most =
        *std::max_element(rows.begin(), rows.end(), [](const WhatIfRow& a, const WhatIfRow& b) {
          return a.outcome.attempts_served() < b.outcome.attempts_served();
        });
    sentences.back() += fmt::format(
        " Of {} requests that failed in it, each tried alone, {} would succeed with {}{}.", attempts,
        base.outcome.attempts_served(), settings_name(base.conf),
        most.outcome.attempts_served() > base.outcome.attempts_served()
            ? fmt::format(" and {} with {}", most.outcome.attempts_served(), settings_name(most.conf))
        : rows.size() > 1 ? ", and no more with any other settings tried"
                          : "");
  }
  return sentences;
}

std::vector<std::string> whatif_notes(const std::vector<ClientProgram>& programs,
                                      const WhatIfAnswer& answer) {
  std::vector<std::string> notes;
  const auto add = [&](const std::string& note) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  };
  const WhatIfRow& first = answer.rows.front();
  const bool as_recorded = first.card.name == "as recorded";
  if (as_recorded && first.recorded_conf && !first.outcome.fits() && !first.failed_in_recording &&
      !answer.predicted) {
    add("The recording itself just ran under its own settings and limit; a replay places segments by a "
        "fitted rule and is good to about 1 %, so what is that near the edge can fall on either side.");
  }
  bool assumed = false;
  bool tight = false;
  for (const WhatIfRow& row : answer.rows) {
    assumed |= assumes_context(row);
    for (const std::string& note : row.card.notes) add(note);
    if (!row.backend.is_native()) add(backend_note(row.backend));
    if (row.backend.is_native() && !row.recorded_conf) {  // what a recording's own string says is its warning
      for (const std::string& key : keys_without_effect(row.conf)) add(key);
    }
    if (row.card.capacity && row.card.context_recorded) {
      add(
          fmt::format("usable = total - {:.0f} MiB that lay outside the allocator in the recording, as its "
                      "marks measured "
                      "it: context, libraries, NCCL, and other processes if there were any.",
                      static_cast<double>(row.card.context) / static_cast<double>(1_MiB)));
    }
    if (!row.fraction_limit && row.conf.find("per_process_memory_fraction") != std::string::npos) {
      add("per_process_memory_fraction is a share of a card, and none is known: add --gpu or --capacity.");
    }
    const std::optional<Bytes>& limit_then =
        row.card.failed ? row.card.failed_limit : programs[row.program].limit;
    const bool as_it_was = row.card.recorded && (!row.limit || row.limit == limit_then);
    tight |= !as_it_was && (row.fit() == Fit::no || row.outcome.stats.num_alloc_retries > 0);
    if (row.outcome.fault) add(conf_name(row.conf) + ": " + *row.outcome.fault);
    if (programs.front().on_windows && row.conf.find("expandable_segments:True") != std::string::npos) {
      add("expandable_segments does nothing on Windows, where this was recorded: PyTorch warns and goes on "
          "without.");
    }
    if (!row.least_limit() && row.conf.find("garbage_collection_threshold") != std::string::npos) {
      add("garbage_collection_threshold does nothing without a limit (per_process_memory_fraction, "
          "--limit).");
    }
  }
  if (tight) {
    add("On a smaller card the answer is on the safe side: libraries may fall back to smaller workspaces.");
  }
  if (assumed) {
    add(fmt::format("usable = total - {:.0f} MiB context (assumed; measured on an H100 and an H200 only).",
                    static_cast<double>(kContextBytes) / static_cast<double>(1_MiB)));
  }
  for (const ClientProgram& program : programs) {
    if (const std::string note = newer_version_note(program.settings.torch); !note.empty()) add(note);
    if (program.attempts > 0) {
      add("Requests that failed are not replayed. Had they succeeded, their steps would have gone on and may "
          "have needed more than anything in the recording.");
    }
    if (program.limit && program.limit_inferred && as_recorded) {
      add(fmt::format("The limit of {} is the largest that explains the recorded failures.",
                      format_bytes(*program.limit)));
    }
    for (const std::string& note : program.notes) add(note);
  }
  if (answer.too_many_to_plan) add("No plan is made of so many blocks here: vramlab plan makes one.");
  for (const LeastMemory& least : answer.least) {
    for (const std::string& supposed : least.supposed) add("planned supposes: " + supposed);
    if (!least.plan.is_least()) add("vramlab plan looks longer for a plan that needs less.");
  }
  return notes;
}

namespace {

template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json first_oom_json(const ClientProgram& program, const WhatIfRow& row) {
  if (!row.outcome.first_oom) return nullptr;
  const FailedRequest& failed = *row.outcome.first_oom;
  const ClientAction& action = program.actions[failed.action];
  Json json{{"operation", failed.action + 1},
            {"source", action.source},
            {"mark", mark_after(program, failed.action)},
            {"requested_bytes", failed.oom.requested},
            {"tried_bytes", failed.oom.segment},
            {"device_free_bytes", failed.oom.device_free},
            {"allocated_bytes", failed.oom.allocated},
            {"reserved_bytes", failed.oom.reserved},
            {"stream", action.stream}};
  json["message"] = backend_oom_message(row.backend, failed.oom);
  json["details"] = oom_details(failed.oom);
  return json;
}

Json shares_json(const std::vector<PeakShare>& shares, const char* key) {
  Json list = Json::array();
  for (const PeakShare& share : shares) {
    Json json;
    if (!share.group.empty()) {
      json[key] = share.group;
      for (const std::string& caller : share.callers) json[key].push_back(caller);
      if (share.before_recording) json["before_recording"] = true;
    } else {
      json[key] = share.name;
    }
    json["bytes"] = share.bytes;
    json["blocks"] = share.blocks;
    list.push_back(std::move(json));
  }
  return list;
}

void add_peak(Json& json, const PeakMemory& peak) {
  const char* key = peak.grouped_by == GroupBy::file     ? "files"
                    : peak.grouped_by == GroupBy::module ? "modules"
                                                         : "frames";
  json["peak"] =
      peak.by_group.empty() ? shares_json(peak.by_size, "size_class") : shares_json(peak.by_group, key);
  json["tree"] = peak.tree.blocks == 0 ? Json(nullptr) : tree_json(peak.tree);
  json["peak_by_size_class"] = shares_json(peak.by_size, "size_class");
  json["peak_by_stream"] = shares_json(peak.by_stream, "stream");
  json["peak_total"] = {{"bytes", peak.bytes},
                        {"blocks", peak.blocks},
                        {"requested_bytes", peak.requested},
                        {"rounding_bytes", peak.bytes - peak.requested},
                        {"mark", peak.mark}};
}

// Null for a recording of a card.
Json made_json(const ClientProgram& program) {
  if (!program.made) return nullptr;
  const MadeWithoutCard& made = *program.made;
  Json parts = Json::array();
  for (const SuppliedPart& part : made.parts) {
    parts.push_back({{"name", part.name},
                     {"how", part.how},
                     {"source", part.source},
                     {"allocations", part.allocations},
                     {"bytes", part.bytes}});
  }
  return {{"card", made.card},
          {"total_memory_bytes", made.total_memory},
          {"torch", made.torch},
          {"parts", std::move(parts)}};
}

// What the recording itself shows.
void add_recording(Json& json, const ClientProgram& program) {
  json["torch_version"] = to_text(program.settings.torch);
  json["torch_version_from"] = program.torch_from;
  json["skipped_entries"] = program.skipped_entries;
  json["warnings"] = program.warnings;
  json["failures"] = failures_json(program);
  json["made_without_card"] = made_json(program);
  if (!program.shown_reserved) return;
  json["shown_reserved_bytes"] = *program.shown_reserved;
  json["held"] = held_json(program);
}

Json rows_json(const std::vector<ClientProgram>& programs, const std::vector<WhatIfRow>& rows) {
  Json list = Json::array();
  for (const WhatIfRow& row : rows) list.push_back(whatif_row_json(programs[row.program], row));
  return list;
}

}  // namespace

Json whatif_mark_json(const MarkFigures& mark) {
  const MemoryStats& stats = mark.stats;
  return {{"text", mark.text},
          {"allocated_bytes", stats.allocated_bytes.all().current},
          {"reserved_bytes", stats.reserved_bytes.all().current},
          {"requested_bytes", stats.requested_bytes.all().current},
          {"active_bytes", stats.active_bytes.all().current},
          {"retries", stats.num_alloc_retries},
          {"ooms", stats.num_ooms},
          {"oom_rejections", stats.num_oom_rejections},
          {"segments", stats.segment.all().current},
          {"peak_allocated_bytes", stats.allocated_bytes.all().peak},
          {"peak_reserved_bytes", stats.reserved_bytes.all().peak},
          {"peak_requested_bytes", stats.requested_bytes.all().peak},
          {"inactive_split_bytes", stats.inactive_split_bytes.all().current},
          {"inactive_split_blocks", stats.inactive_split.all().current},
          {"active_blocks", stats.active.all().current},
          {"oversize_blocks", stats.oversize_allocations.value().current},
          {"device_allocs", stats.num_device_alloc},
          {"device_frees", stats.num_device_free}};
}

Json whatif_row_json(const ClientProgram& program, const WhatIfRow& row) {
  const ProgramOutcome& outcome = row.outcome;
  const MemoryStats& stats = outcome.stats;
  Json json{{"alloc_conf", row.backend.is_native() ? row.conf : ""},
            {"backend", to_text(row.backend)},
            {"gpu", row.card.gpu},
            {"card", row.card.name},
            {"capacity_bytes", or_null(row.card.capacity)},
            {"context_bytes", row.card.context},
            {"context_assumed", row.card.context_assumed},
            {"context_from", context_from(row.card)},
            {"others_bytes", row.card.others},
            {"limit_bytes", or_null(row.least_limit())},
            {"usable_bytes", row.usable},
            {"fits", row.fit() == Fit::open ? Json(nullptr) : Json(row.fit() == Fit::yes)},
            {"lower_bound", row.lower_bound},
            {"failed_in_recording", row.failed_in_recording},
            {"ooms", outcome.ooms},
            {"allocator_ooms", stats.num_ooms},
            {"oom_rejections", stats.num_oom_rejections},
            {"retries", stats.num_alloc_retries},
            {"unreplayed_attempts", program.attempts},
            {"attempts_that_would_succeed", outcome.attempts_served()},
            {"attempts", outcome.attempts},
            {"peak_allocated_bytes", stats.allocated_bytes.all().peak},
            {"peak_reserved_bytes", stats.reserved_bytes.all().peak},
            {"peak_requested_bytes", stats.requested_bytes.all().peak},
            {"highest_allocated_bytes", outcome.highest_allocated},
            {"highest_reserved_bytes", outcome.highest_reserved},
            {"end_allocated_bytes", stats.allocated_bytes.all().current},
            {"end_reserved_bytes", stats.reserved_bytes.all().current},
            {"segments", stats.segment.all().current},
            {"device_allocs", stats.num_device_alloc},
            {"device_frees", stats.num_device_free},
            {"driver_time_s", to_seconds(outcome.driver_time)},
            {"fragmentation", fragmentation(outcome)},
            {"smallest_usable_bytes", or_null(row.smallest)},
            {"smallest_without_retry_bytes", or_null(row.smallest_without_retry)}};
  json["marks"] = Json::array();
  for (const MarkFigures& mark : outcome.marks) json["marks"].push_back(whatif_mark_json(mark));
  json["first_oom"] = first_oom_json(program, row);
  json["fault"] = or_null(outcome.fault);
  json["file"] = program.file;
  json["device"] = program.device;
  return json;
}

Json whatif_json(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer) {
  Json json;
  json["file"] = programs.front().file;
  json["verdict"] = whatif_verdict(programs, answer);
  json["notes"] = whatif_notes(programs, answer);
  json["rows"] = rows_json(programs, answer.rows);
  add_recording(json, programs.front());
  if (!answer.holders.empty()) add_peak(json, answer.ranks.front().front().kept->peak);
  if (!answer.least.empty()) json["planned"] = least_json(answer.least.front());
  if (!answer.holders.empty()) add_holders(json, answer.holders.front(), true);
  if (programs.size() == 1) return json;
  json["ranks"] = Json::array();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Json rank;
    rank["file"] = programs[i].file;
    rank["device"] = programs[i].device;
    rank["rows"] = rows_json(programs, answer.ranks[i]);
    add_recording(rank, programs[i]);
    if (!answer.holders.empty()) add_peak(rank, answer.ranks[i].front().kept->peak);
    if (!answer.least.empty()) rank["planned"] = least_json(answer.least[i]);
    if (!answer.holders.empty()) add_holders(rank, answer.holders[i], true);
    json["ranks"].push_back(std::move(rank));
  }
  return json;
}

}  // namespace vramlab
