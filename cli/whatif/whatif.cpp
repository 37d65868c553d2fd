// vramlab whatif: would other allocator settings, or another card, have fitted; and with --set, other
// parameters.
#include "lab/whatif/whatif.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "cli/whatif/programs.hpp"
#include "core/error.hpp"
#include "lab/metric.hpp"
#include "lab/page/sections.hpp"
#include "lab/whatif/recording.hpp"
#include "lab/whatif/view.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/input_file.hpp"
#include "report/output_file.hpp"
#include "report/pictures.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

using Texts = std::vector<std::string>;

constexpr std::size_t kMostShares = 8;
constexpr std::size_t kFirstPins = 5;  // of an answer of one screen
constexpr std::size_t kWidestConf = 26;

void add_whatif_options(Options& options) {
  options.add_options()("alloc-conf", po::value<Texts>()->value_name("STRING"),
                        "settings to try, as in PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF), or recorded; "
                        "repeatable (default: a set worth trying)")(
      "backend", po::value<Texts>()->value_name("NAME"),
      "another allocator, a row behind those of settings: cudaMallocAsync, direct, bfc, fixed-pool; bfc:0.9 "
      "takes this share of the card, bfc:grow as it needs; repeatable")(
      "gpu", po::value<Texts>()->value_name("NAME"), "a card of vramlab gpus; repeatable")(
      "capacity", po::value<Texts>()->value_name("SIZE"), "a card of this size, such as 24GiB; repeatable")(
      "limit", po::value<Texts>()->value_name("SIZE"), "the most the allocator may reserve; repeatable")(
      "marks", po::value<Texts>()->value_name("FILE"),
      "with --set: marks of the recorded steps, once for every snapshot")(
      "set", po::value<Texts>()->value_name("NAME=N"),
      "fit the recording and ask for other parameters, batch=16; repeatable")(
      "part", text_value("NAME=N"),
      "with --set: the step in parts of so much of a parameter, whose gradients add up: batch=2")(
      "recompute", po::value<Texts>()->value_name("PLACE"),
      "as if what this line calls were computed again in backward (torch.utils.checkpoint): model.py:403, or "
      "some of its repeats, model.py:403#0,2,5-8; repeatable")(
      "every", po::value<std::uint32_t>()->value_name("N"),
      "with --recompute: only every Nth repeat, from #0")(
      "smallest", po::bool_switch(), "find the smallest size that works, and that works without a retry")(
      "export", text_value("FILE"), "write the history of the one row as a memory snapshot (.pickle)")(
      "oom", text_value("FILE"),
      "an out-of-memory message: its card, its limit and what other processes held there")(
      "rows", po::bool_switch(),
      "the rows alone, without a plan and without who holds the memory: quicker for a long history")(
      "at", text_value("MARK"),
      "who holds the memory at the end of this stretch instead of at the peak; failure is the first failed "
      "request")("details", po::bool_switch(),
                 "all idle memory with what holds it, and the blocks by place, size and stream");
  options.add_options()("picture", text_value("FILE"), "draw the time line of the categories, .svg or .png");
  add_grouping_options(options, "write the stacks of the peak for flame graph tools: frames, bytes");
  add_torch_version_option(options);
  add_threads_option(options);
  add_report_option(options);
  add_output_options(options);
}

std::vector<Bytes> sizes(const Arguments& arguments, const char* name) {
  std::vector<Bytes> values;
  std::vector<Problem> problems;
  for (const std::string& text : texts_of(arguments, name)) {
    const std::optional<Bytes> size = parse_bytes(text);
    if (size && *size > 0 && *size < kNeverFull) {
      values.push_back(*size);
    } else {
      problems.push_back({std::string{"--"} + name, '"' + text +
                                                        "\" is not a size. Write 24GiB, 24576MiB or a "
                                                        "number of bytes, above 0 and below 4096GiB."});
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return values;
}

// The message is of one card, and of the limit that was in force there.
void add_oom_card(const std::string& file, WhatIfQuestion& question) {
  if (!question.cards.empty()) {
    throw InputError("--oom", "names the card of the message. Leave --gpu and --capacity out.");
  }
  OomCard found = read_oom_card(read_input_file(file), file);
  question.cards.push_back(std::move(found.card));
  if (question.limits.empty() && found.limit) question.limits.emplace_back(*found.limit);
}

WhatIfQuestion read_question(const Arguments& arguments) {
  WhatIfQuestion question;
  question.confs = texts_of(arguments, "alloc-conf");
  for (const std::string& name : texts_of(arguments, "backend")) {
    try {
      question.backends.push_back(parse_backend(name));
    } catch (const InputError& error) {
      throw InputError("--backend " + name, error.problems().front().what);
    }
    if (question.backends.back().is_native()) {
      throw InputError("--backend native", "is PyTorch's own allocator, which --alloc-conf asks for.");
    }
  }
  for (const std::string& name : texts_of(arguments, "gpu")) {
    const Gpu& gpu = find_gpu(name, "--gpu");
    question.cards.push_back({.name = std::string{gpu.id},
                              .gpu = std::string{gpu.id},
                              .capacity = gpu.total,
                              .context = gpu.context,
                              .context_assumed = gpu.context_assumed()});
  }
  for (const Bytes size : sizes(arguments, "capacity")) {
    question.cards.push_back({.name = "a card of " + format_bytes(size), .gpu = "", .capacity = size});
  }
  for (const Bytes size : sizes(arguments, "limit")) question.limits.emplace_back(size);
  question.grouping = chosen_grouping(arguments);
  if (const std::string file = text_of(arguments, "oom"); !file.empty()) add_oom_card(file, question);
  question.smallest = arguments["smallest"].as<bool>();
  question.threads = chosen_threads(arguments);
  return question;
}

// Where a string of settings is too long for the table, its keys are cut to what tells them apart.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShortKeys{
    {{"garbage_collection_threshold", "gc"},
     {"roundup_power2_divisions", "roundup"},
     {"expandable_segments", "expandable"},
     {"max_split_size_mb", "max_split"}}};

std::string short_conf(const std::string& conf) {
  std::string name = conf_name(conf);
  if (name.size() <= kWidestConf) return name;
  for (const auto& [key, shorter] : kShortKeys) {
    const std::size_t place = name.find(key);
    if (place != std::string::npos) name.replace(place, key.size(), shorter);
  }
  return name;
}

std::string size_or_dash(const std::optional<Bytes>& size) { return size ? format_bytes(*size) : "-"; }

Table empty_table(bool smallest, bool attempts, bool cards = false) {
  std::vector<Table::Column> columns{left("alloc-conf"), "reserved", "allocated", "idle", "retries"};
  if (cards) columns.insert(columns.begin() + 1, left("card"));
  if (smallest) {
    columns.insert(columns.end(), {"smallest", "no retry"});
  } else {
    columns.push_back("driver");
  }
  if (attempts) columns.push_back(left("failed would succeed"));
  columns.push_back(left("fits"));
  return Table{std::move(columns)};
}

std::vector<std::string> cells(const ClientProgram& program, const WhatIfRow& row, bool smallest,
                               bool attempts) {
  const ProgramOutcome& outcome = row.outcome;
  std::vector<std::string> cells{
      short_conf(row.conf), (row.lower_bound ? ">= " : "") + format_bytes(outcome.highest_reserved),
      format_bytes(outcome.highest_allocated), percent_text(fragmentation(outcome)),
      fmt::format("{}", outcome.stats.num_alloc_retries)};
  if (smallest) {
    cells.insert(cells.end(), {size_or_dash(row.smallest), size_or_dash(row.smallest_without_retry)});
  } else {
    cells.push_back(fmt::format("{:.0f} ms", to_seconds(outcome.driver_time) * 1e3));
  }
  if (attempts) cells.push_back(outcome.attempts.empty() ? "-" : served_attempts(outcome));
  cells.push_back(fit_text(program, row));
  return cells;
}

// The rank whose plan needs the most decides.
std::vector<std::string> planned_cells(const WhatIfAnswer& answer, const std::optional<Bytes>& room,
                                       bool smallest, bool attempts) {
  const LeastMemory& least =
      *std::ranges::max_element(answer.least, {}, [](const LeastMemory& one) { return one.plan.planned; });
  const Bytes planned = least.plan.planned;
  const double idle =
      planned == 0 ? 0 : 1 - static_cast<double>(least.plan.load) / static_cast<double>(planned);
  std::vector<std::string> cells{"planned",
                                 (least.lower_bound ? ">= " : "") + format_bytes(planned),
                                 format_bytes(least.plan.load),
                                 percent_text(idle),
                                 "-",
                                 "-"};
  if (smallest) cells.emplace_back("-");
  if (attempts) cells.emplace_back("-");
  if (!room) {
    cells.emplace_back(least.lower_bound ? "a lower bound" : "-");
  } else if (planned > *room) {
    cells.push_back(fmt::format("no: {} short", format_bytes(planned - *room)));
  } else if (least.lower_bound) {
    cells.emplace_back("not known: a lower bound");
  } else if (least.failed > 0) {
    cells.emplace_back("not known: without what failed");
  } else {
    cells.push_back(fmt::format("yes, {} to spare", format_bytes(*room - planned)));
  }
  return cells;
}

bool has_attempts(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer) {
  return std::ranges::any_of(answer.rows,
                             [&](const WhatIfRow& row) { return programs[row.program].attempts > 0; });
}

// "as recorded (78.7 GiB usable)"
std::string room_text(const WhatIfRow& row) {
  const auto room = row.room_of_card();
  const char* mark = assumes_context(row) ? ", context assumed" : "";
  return room_name(row) + (room ? fmt::format(" ({} usable{})", format_bytes(*room), mark) : "");
}

void print_rows(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer, bool smallest,
                Output& output) {
  const std::vector<WhatIfRow>& rows = answer.rows;
  const bool attempts = has_attempts(programs, answer);
  for (std::size_t at = 0; at < rows.size();) {
    const std::string name = room_name(rows[at]);
    const auto room = rows[at].room_of_card();
    output.line("\n{}", room_text(rows[at]));
    Table table = empty_table(smallest, attempts);
    for (; at < rows.size() && room_name(rows[at]) == name; ++at) {
      table.add_row(cells(programs[rows[at].program], rows[at], smallest, attempts));
    }
    if (!answer.least.empty()) table.add_row(planned_cells(answer, room, smallest, attempts));
    output.table(table);
  }
  const auto is_short = [](const WhatIfRow& row) { return short_conf(row.conf) != conf_name(row.conf); };
  if (std::none_of(rows.begin(), rows.end(), is_short)) return;
  std::string legend;
  for (const auto& [key, shorter] : kShortKeys)
    legend += fmt::format("{}{} for {}", legend.empty() ? "Short: " : ", ", shorter, key);
  output.line(legend + ".");
}

// What PyTorch's message does not tell, for the first row that fails.
void print_first_oom(const WhatIfAnswer& answer, Output& output) {
  const auto failed = std::find_if(answer.rows.begin(), answer.rows.end(),
                                   [](const WhatIfRow& row) { return row.outcome.first_oom.has_value(); });
  if (failed == answer.rows.end()) return;
  const OutOfMemory& oom = failed->outcome.first_oom->oom;
  output.line("\nFirst OOM with {}, {} asked for:", conf_name(failed->conf), oom_size(oom.requested));
  for (const std::string& line : oom_details(oom)) output.line("  " + line);
}

void print_shares(const std::string& title, const std::vector<PeakShare>& shares, Bytes total,
                  Output& output) {
  if (shares.empty()) return;
  Table table{{"bytes", "share", "blocks", left(title)}};
  const auto add = [&](const PeakShare& share) {
    std::string name = share.name + (share.callers.empty() ? "" : " < " + share.callers.front());
    if (share.before_recording && share.name != kNoStackBefore) name += " (in use when recording began)";
    const double part = total == 0 ? 0 : static_cast<double>(share.bytes) / static_cast<double>(total);
    table.add_row({format_bytes(share.bytes), percent_text(part), fmt::format("{}", share.blocks), name});
  };
  const std::size_t shown = shares.size() <= kMostShares + 1 ? shares.size() : kMostShares;
  PeakShare others;
  others.name = fmt::format("{} others", shares.size() - shown);
  std::uint64_t blocks = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    blocks += shares[i].blocks;
    if (i < shown) {
      add(shares[i]);
    } else {
      others.bytes += shares[i].bytes;
      others.blocks += shares[i].blocks;
    }
  }
  if (shown < shares.size()) add(others);
  table.add_total({format_bytes(total), percent_text(1), fmt::format("{}", blocks), "total"});
  output.next_table(table);
}

// Whether the reader asks how the memory is shared out by place.
bool asks_where(const Arguments& arguments) {
  return arguments["details"].as<bool>() || !arguments["by"].defaulted() || arguments.count("depth") > 0;
}

void print_holders(const Holders& holders, bool details, Output& output) {
  if (holders.blocks == 0) {
    output.line("\nAt {}: nothing is allocated.", holders.moment);
    return;
  }
  output.line("\n{}", categories_sentence(holders));
  output.next_table(categories_table(holders));
  output.line("\n{}", pins_sentence(holders));
  if (holders.pins.empty()) return;
  output.next_table(pins_table(holders, details ? holders.pins.size() : kFirstPins));
  if (const std::string tried = remedies_sentence(holders); !tried.empty()) output.line("\n{}", tried);
}

bool knows_stacks(const ClientProgram& program) {
  return std::ranges::any_of(program.stacks, [](const auto& stack) { return !stack.empty(); });
}

std::string no_stacks_sentence(const ClientProgram& program) {
  return program.file +
         " holds no stacks. Record with torch.cuda.memory._record_memory_history(stacks=\"python\").";
}

void print_peak(const ClientProgram& program, const PeakMemory& peak, const Holders& holders,
                Output& output) {
  if (peak.blocks == 0) return;
  output.line("\nBy place at {}: {} allocated in {} block{} ({} of it rounding).", holders.moment,
              format_bytes(peak.bytes), peak.blocks, peak.blocks == 1 ? "" : "s",
              format_bytes(peak.bytes - peak.requested));
  if (!knows_stacks(program)) {
    output.line("\nWhat allocated it is not known: {}", no_stacks_sentence(program));
  } else if (peak.grouped_by == GroupBy::frame) {
    print_shares("allocated at", peak.by_group, peak.bytes, output);
  } else {
    output.next_table(tree_table(peak.tree));
  }
  print_shares("size of block", peak.by_size, peak.bytes, output);
  if (peak.by_stream.size() > 1) print_shares("stream", peak.by_stream, peak.bytes, output);
}

// What --rows leaves out cannot be shown.
void require_holders(const Arguments& arguments) {
  if (!arguments["rows"].as<bool>()) return;
  for (const char* name : {"at", "folded", "picture"}) {
    if (!text_of(arguments, name).empty()) {
      throw InputError(std::string{"--"} + name, "shows what --rows leaves out. Leave one of them out.");
    }
  }
  if (asks_where(arguments)) {
    throw InputError("--rows", "leaves out what --details, --by and --depth show. Leave one of them out.");
  }
}

// What no replay is needed for to know that an output cannot be written.
void require_outputs(const std::vector<ClientProgram>& programs, const std::string& folded,
                     const std::string& picture) {
  if (!folded.empty() && std::ranges::none_of(programs, knows_stacks)) {
    throw InputError("--folded", no_stacks_sentence(programs.front()));
  }
  if (!picture.empty()) require_gnuplot(picture);
}

// Throws InputError where there is nothing to write.
void write_folded(const std::string& file, const ClientProgram& program, const PeakMemory& peak,
                  Output& output) {
  if (file.empty()) return;
  if (!knows_stacks(program)) throw InputError("--folded", no_stacks_sentence(program));
  std::string text;
  for (const auto& [stack, bytes] : peak.folded) text += fmt::format("{} {}\n", stack, bytes);
  output.write(file, text);
}

// What the recording itself shows of the program whose rows count.
void print_failures(const ClientProgram& program, Output& output) {
  if (program.failures.size() > 1) output.next_table(failures_table(program));
}

void print_held(const ClientProgram& program, Output& output) {
  if (!program.shown_reserved || program.held.segments.empty()) return;
  output.line("\n{}", held_sentence(program));
  output.next_table(held_table(program));
}

// The address space under one row, over everything the program did.
Json map_of(const ClientProgram& program, const WhatIfRow& row) {
  const SegmentMap& map = row.kept->map;
  return segments_section(
      map, conf_name(row.conf),
      {fmt::format("Fits: {}.", fit_text(program, row)),
       fmt::format("On {}: {} entries of the allocator's history, {} reserved at most", room_name(row),
                   map.entries, format_bytes(row.outcome.highest_reserved))});
}

// The page: settings with a map each, and who holds the memory of the program that decides.
void add_page(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer, bool smallest,
              Output& output) {
  const std::size_t rank = answer.rows.front().program;
  const bool attempts = has_attempts(programs, answer);
  const std::string first_room = room_name(answer.rows.front());
  const bool cards =
      std::ranges::any_of(answer.rows, [&](const WhatIfRow& row) { return room_name(row) != first_room; });
  MemoryPage page{.title = std::filesystem::path{programs[rank].file}.filename().string(),
                  .head = {},
                  .notes = whatif_notes(programs, answer),
                  .caption = cards ? "Settings and cards" : "Settings, " + room_text(answer.rows.front()),
                  .settings = empty_table(smallest, attempts, cards),
                  .maps = {}};
  std::vector<std::string> verdict = whatif_verdict(programs, answer);
  page.head = {verdict.front(), left_on_the_table(answer)};
  page.notes.insert(page.notes.begin(), verdict.begin() + 1, verdict.end());
  const auto add = [&](std::vector<std::string> line, const std::string& room, Json map) {
    if (cards) line.insert(line.begin() + 1, room);
    page.settings.add_row(std::move(line));
    page.maps.push_back(std::move(map));
  };
  for (std::size_t i = 0; i < answer.rows.size(); ++i) {
    const WhatIfRow& row = answer.rows[i];
    const ClientProgram& program = programs[row.program];
    const std::string room = room_name(row);
    add(cells(program, row, smallest, attempts), room,
        answer.holders.empty() || !row.backend.is_native() ? Json(nullptr) : map_of(program, row));
    if (answer.least.empty() || (i + 1 < answer.rows.size() && room_name(answer.rows[i + 1]) == room))
      continue;
    add(planned_cells(answer, row.room_of_card(), smallest, attempts), room, nullptr);
  }
  output.add_section(answer.holders.empty() ? settings_section(page)
                                            : memory_section(programs[rank], answer.holders[rank],
                                                             answer.ranks[rank].front().kept->peak, page));
}

int run_whatif(const Arguments& arguments, Output& output) {
  const auto exported = text_of(arguments, "export");
  Texts inputs = operands(arguments);
  for (const std::string& marks : texts_of(arguments, "marks")) inputs.push_back(marks);
  const auto folded = text_of(arguments, "folded");
  if (const std::string message = text_of(arguments, "oom"); !message.empty()) inputs.push_back(message);
  const auto picture = text_of(arguments, "picture");
  require_output_names(with_siblings(inputs),
                       {text_of(arguments, "json"), exported, folded, picture, output.report_file()});
  if (!picture.empty()) require_picture_name(picture);
  require_holders(arguments);
  WhatIfQuestion question = read_question(arguments);
  const bool rows_only = arguments["rows"].as<bool>();
  question.peaks = !rows_only;
  question.least = !rows_only;
  question.at = text_of(arguments, "at");
  question.maps = output.wants_report() && !rows_only;
  question.grouping.folded = question.grouping.folded || question.maps;
  question.snapshot = !exported.empty();
  const AskedPrograms asked = programs_asked_for(arguments, output);
  const std::vector<ClientProgram>& programs = *asked.programs;
  require_outputs(programs, folded, picture);
  WhatIfAnswer answer = answer_whatif(programs, question);
  answer.predicted = !asked.sentence.empty();
  const std::size_t rank = answer.rows.front().program;
  for (const std::string& sentence : whatif_verdict(programs, answer)) output.line(sentence);
  if (answer.predicted) output.line(asked.sentence);
  for (const std::string& sentence : asked.recomputed_sentences) output.line(sentence);
  print_failures(programs[rank], output);
  print_rows(programs, answer, question.smallest, output);
  if (const std::string left = left_on_the_table(answer); !left.empty()) output.line("\n{}", left);
  print_first_oom(answer, output);
  print_held(programs[rank], output);
  if (programs.size() > 1) {
    output.line("\n{} programs; for each row the one that decides. The peak is that of {}, device {}.",
                programs.size(), programs[rank].file, programs[rank].device);
  }
  if (!rows_only) print_holders(answer.holders[rank], arguments["details"].as<bool>(), output);
  if (asks_where(arguments)) {
    print_peak(programs[rank], answer.ranks[rank].front().kept->peak, answer.holders[rank], output);
  }
  const Texts notes = whatif_notes(programs, answer);
  if (!notes.empty()) output.line("");
  for (const std::string& note : notes) output.line("note: " + note);
  std::set<std::string> warned;  // devices of one file have its warnings in common
  for (const ClientProgram& program : programs) {
    for (const std::string& warning : program.warnings) {
      if (warned.insert(warning).second) output.line("warning: " + warning);
    }
  }
  if (output.wants_report()) add_page(programs, answer, question.smallest, output);
  output.write_report();
  Json json = whatif_json(programs, answer);
  if (answer.predicted) {
    json["parameters"] = asked.parameters;
    json["outside_range"] = asked.outside_range;
  }
  if (!asked.recomputed.empty()) json["recomputed"] = asked.recomputed;
  output.json(json);
  // A file that cannot be written ends the program, so the answer itself comes first.
  if (!exported.empty()) {
    OutputFile file{exported};
    write_kept_snapshot(*answer.rows.front().kept, [&](std::string_view bytes) { file.write(bytes); });
    file.commit();
    output.wrote(exported);
  }
  write_folded(folded, programs[rank], answer.ranks[rank].front().kept->peak, output);
  if (!picture.empty()) {
    draw_memory_picture(timeline_picture(programs[rank], answer.holders[rank], answer.ranks[rank].front()),
                        picture);
    output.wrote(picture);
  }
  return kDone;
}

}  // namespace

Verb whatif_verb() {
  return {.name = "whatif",
          .summary = "would other allocator settings, or another card, have fitted this recorded program",
          .operands = "SNAPSHOT...",
          .count = {1, 1000},
          .example = "vramlab whatif tests/data/recorded/bert.pickle.gz --gpu rtx-4090-24gb --smallest",
          .add_options = add_whatif_options,
          .run = run_whatif};
}

}  // namespace vramlab
