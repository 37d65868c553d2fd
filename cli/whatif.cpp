// vramlab whatif: would other allocator settings, or another card, have fitted.
#include "lab/whatif/whatif.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "cli/whatif_model.hpp"
#include "core/error.hpp"
#include "lab/page/sections.hpp"
#include "lab/whatif/view.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/open.hpp"
#include "recordings/snapshot/writer.hpp"
#include "report/output_file.hpp"
#include "sim/memory/oom_report.hpp"

namespace vramlab {
namespace {

namespace po = boost::program_options;
using Texts = std::vector<std::string>;
using Align = Table::Align;

constexpr std::size_t kMostShares = 8;
constexpr std::size_t kWidestConf = 26;
constexpr std::size_t kWidestFrame = 70;

void add_options(Options& options) {
  options.add_options()(
      "alloc-conf", po::value<Texts>()->value_name("STRING"),
      "settings to try, as in PYTORCH_CUDA_ALLOC_CONF; repeatable (default: a set worth trying)")(
      "gpu", po::value<Texts>()->value_name("NAME"), "a card of vramlab gpus; repeatable")(
      "capacity", po::value<Texts>()->value_name("SIZE"), "a card of this size, such as 24GiB; repeatable")(
      "limit", po::value<Texts>()->value_name("SIZE"), "the most the allocator may reserve; repeatable")(
      "marks", po::value<Texts>()->value_name("FILE"),
      "with --set: marks of the recorded steps, once for every snapshot")(
      "set", po::value<Texts>()->value_name("NAME=N"),
      "fit the recording and ask for other parameters, batch=16; repeatable")(
      "smallest", po::bool_switch(), "find the smallest size that works, and that works without a retry")(
      "export", po::value<std::string>()->default_value("")->value_name("FILE"),
      "write the history of the one row as a memory snapshot (.pickle)");
  add_threads_option(options);
  add_report_option(options);
  add_output_options(options);
}

Texts texts(const Arguments& arguments, const char* name) {
  return arguments.contains(name) ? arguments[name].as<Texts>() : Texts{};
}

std::vector<Bytes> sizes(const Arguments& arguments, const char* name) {
  std::vector<Bytes> values;
  std::vector<Problem> problems;
  for (const std::string& text : texts(arguments, name)) {
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

WhatIfQuestion read_question(const Arguments& arguments) {
  WhatIfQuestion question;
  question.confs = texts(arguments, "alloc-conf");
  for (const std::string& name : texts(arguments, "gpu")) {
    const Gpu& gpu = find_gpu(name, "--gpu");
    WhatIfCard card;
    card.name = name;
    card.gpu = name;
    card.capacity = gpu.total;
    card.context = gpu.context;
    card.context_assumed = gpu.figures != GpuFigures::measured;
    question.cards.push_back(std::move(card));
  }
  for (const Bytes size : sizes(arguments, "capacity")) {
    WhatIfCard card;
    card.name = "a card of " + format_bytes(size);
    card.capacity = size;
    question.cards.push_back(std::move(card));
  }
  for (const Bytes size : sizes(arguments, "limit")) question.limits.emplace_back(size);
  question.smallest = arguments["smallest"].as<bool>();
  question.threads = chosen_threads(arguments);
  return question;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

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

std::vector<std::string> cells(const std::vector<ClientProgram>& programs, const WhatIfRow& row,
                               bool smallest) {
  const ProgramOutcome& outcome = row.outcome;
  const double idle = outcome.reserved_at_peak == 0 ? 0
                                                    : 1.0 - static_cast<double>(outcome.active_at_peak) /
                                                                static_cast<double>(outcome.reserved_at_peak);
  std::vector<std::string> line{short_conf(row.conf), format_bytes(outcome.highest_reserved),
                                format_bytes(outcome.highest_allocated), percent(idle),
                                fmt::format("{}", outcome.stats.num_alloc_retries)};
  if (!smallest) line.push_back(fmt::format("{:.0f} ms", to_seconds(outcome.driver_time) * 1e3));
  if (smallest) {
    line.push_back(size_or_dash(row.smallest));
    line.push_back(size_or_dash(row.smallest_without_retry));
  }
  line.push_back(fit_text(programs[row.program], row));
  return line;
}

Table rows_table(const std::vector<ClientProgram>& programs, const std::vector<const WhatIfRow*>& rows,
                 bool smallest) {
  std::vector<Table::Column> columns{
      {"alloc-conf", Align::left}, {"reserved"}, {"allocated"}, {"idle"}, {"retries"}};
  if (!smallest) columns.push_back({"driver"});
  if (smallest) {
    columns.push_back({"smallest"});
    columns.push_back({"no retry"});
  }
  columns.push_back({"fits", Align::left});
  Table table{columns};
  for (const WhatIfRow* row : rows) table.add_row(cells(programs, *row, smallest));
  return table;
}

void print_rows(const std::vector<ClientProgram>& programs, const WhatIfAnswer& answer, bool smallest,
                Output& output) {
  for (std::size_t first = 0; first < answer.rows.size();) {
    const std::string name = room_name(answer.rows[first]);
    std::vector<const WhatIfRow*> group;
    for (; first < answer.rows.size() && room_name(answer.rows[first]) == name; ++first) {
      group.push_back(&answer.rows[first]);
    }
    const auto room = group.front()->room();
    output.line(fmt::format("\n{}{}", name, room ? fmt::format(" ({} usable)", format_bytes(*room)) : ""));
    output.table(rows_table(programs, group, smallest));
  }
  const auto is_short = [](const WhatIfRow& row) { return short_conf(row.conf) != conf_name(row.conf); };
  if (std::none_of(answer.rows.begin(), answer.rows.end(), is_short)) return;
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
  output.line(
      fmt::format("\nFirst OOM with {}, {} asked for:", conf_name(failed->conf), oom_size(oom.requested)));
  for (const std::string& line : oom_details(oom)) output.line("  " + line);
}

void print_shares(const std::string& title, const std::vector<PeakShare>& shares, Bytes total,
                  Output& output) {
  if (shares.empty()) return;
  Table table{{{"bytes"}, {"share"}, {"blocks"}, {title, Align::left}}};
  const auto add = [&](Bytes bytes, std::uint64_t blocks, const std::string& name) {
    const double share = total == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(total);
    table.add_row({format_bytes(bytes), percent(share), fmt::format("{}", blocks), name});
  };
  const std::size_t shown = shares.size() <= kMostShares + 1 ? shares.size() : kMostShares;
  Bytes rest = 0;
  std::uint64_t rest_blocks = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (i < shown) {
      std::string name = shares[i].name;
      if (!shares[i].callers.empty()) name += " < " + shares[i].callers.front();
      add(shares[i].bytes, shares[i].blocks,
          name.size() > kWidestFrame ? name.substr(0, kWidestFrame - 2) + ".." : name);
    } else {
      rest += shares[i].bytes;
      rest_blocks += shares[i].blocks;
    }
  }
  if (shown < shares.size()) add(rest, rest_blocks, fmt::format("{} others", shares.size() - shown));
  std::uint64_t blocks = 0;
  for (const PeakShare& share : shares) blocks += share.blocks;
  table.add_total({format_bytes(total), percent(1), fmt::format("{}", blocks), "total"});
  output.line("");
  output.table(table);
}

void print_peak(const PeakMemory& peak, Output& output) {
  if (peak.blocks == 0) return;
  output.line(fmt::format("\nAt the peak{}: {} allocated in {} blocks ({} of it rounding).",
                          peak.mark.empty() ? "" : " (in " + peak.mark + ")", format_bytes(peak.bytes),
                          peak.blocks, format_bytes(peak.bytes - peak.requested)));
  print_shares("allocated at", peak.by_frame, peak.bytes, output);
  print_shares("size of block", peak.by_size, peak.bytes, output);
  if (peak.by_stream.size() > 1) print_shares("stream", peak.by_stream, peak.bytes, output);
}

// The address space under one row, over everything the program did.
void add_map(const ClientProgram& program, const WhatIfRow& row, ReportFile& report) {
  const SegmentMap& map = row.kept->map;
  const std::string head =
      fmt::format("On {}: {} entries of the allocator's history, {} reserved at most", room_name(row),
                  map.entries, format_bytes(row.outcome.highest_reserved));
  const std::string name = std::filesystem::path{program.file}.filename().string();
  report.add(segments_section(map, fmt::format("{}, {}", name, conf_name(row.conf)),
                              {fmt::format("Fits: {}.", fit_text(program, row)), head}));
}

std::vector<ClientProgram> read_programs(const Texts& files) {
  std::vector<ClientProgram> programs;
  for (const std::string& file : files) {
    for (ClientProgram& program : read_client_programs(file)) programs.push_back(std::move(program));
  }
  return programs;
}

// The recorded programs, or what models of them would do at other parameters.
PredictedPrograms programs_asked_for(const Arguments& arguments) {
  const Texts marks = texts(arguments, "marks");
  const Texts settings = texts(arguments, "set");
  if (!marks.empty() || !settings.empty()) return predict_programs(operands(arguments), marks, settings);
  return {.programs = read_programs(operands(arguments)), .sentence = "", .parameters = {}};
}

int run(const Arguments& arguments) {
  Output output{arguments};
  const auto exported = arguments["export"].as<std::string>();
  Texts inputs = operands(arguments);
  for (const std::string& marks : texts(arguments, "marks")) inputs.push_back(marks);
  require_output_names(with_siblings(inputs),
                       {arguments["json"].as<std::string>(), exported, output.report().file()});
  WhatIfQuestion question = read_question(arguments);
  question.peaks = true;
  question.maps = output.report().wanted();
  question.snapshot = !exported.empty();
  const PredictedPrograms asked = programs_asked_for(arguments);
  const std::vector<ClientProgram>& programs = asked.programs;
  WhatIfAnswer answer = answer_whatif(programs, question);
  answer.predicted = !asked.sentence.empty();
  for (const std::string& sentence : whatif_verdict(programs, answer)) output.line(sentence);
  if (answer.predicted) output.line(asked.sentence);
  print_rows(programs, answer, question.smallest, output);
  print_first_oom(answer, output);
  const std::size_t rank = answer.rows.front().program;
  if (programs.size() > 1) {
    output.line(
        fmt::format("\n{} programs; for each row the one that decides. The peak is that of {}, device {}.",
                    programs.size(), programs[rank].file, programs[rank].device));
  }
  print_peak(answer.ranks[rank].front().kept->peak, output);
  const std::vector<std::string> notes = whatif_notes(programs, answer);
  if (!notes.empty()) output.line("");
  for (const std::string& note : notes) output.line("note: " + note);
  if (!exported.empty()) {
    OutputFile file{exported};
    write_torch_snapshot(answer.rows.front().kept->snapshot,
                         [&](std::string_view bytes) { file.write(bytes); });
    file.commit();
    output.wrote(exported);
  }
  if (output.report().wanted()) {
    for (const WhatIfRow& row : answer.rows) add_map(programs[row.program], row, output.report());
    output.write_report();
  }
  Json json = whatif_json(programs, answer);
  if (answer.predicted) {
    json["parameters"] = asked.parameters;
    json["outside_range"] = asked.outside_range;
  }
  output.json(json);
  return kDone;
}

}  // namespace

Verb whatif_verb() {
  return {.name = "whatif",
          .summary = "would other allocator settings, or another card, have fitted this recorded program",
          .operands = "SNAPSHOT...",
          .example = "vramlab whatif tests/data/recorded/bert.pickle.gz --gpu rtx-4090-24gb --smallest",
          .least_operands = 1,
          .most_operands = 1000,
          .add_options = add_options,
          .run = run};
}

}  // namespace vramlab
