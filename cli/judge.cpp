// vramlab judge: is the program of two recordings the same one, what does it take now, and what is to blame;
// of one recording, what its steps leave behind.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/judge/view.hpp"
#include "models/gpu_catalogue.hpp"
#include "recordings/open.hpp"
#include "recordings/snapshot/marks.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

void add_judge_options(Options& options) {
  options.add_options()("allow-bytes", po::value<Words>()->value_name("SIZE"),
                        "how much may grow: 64MiB, reserved=64MiB, reserved@3=64MiB (of step 3); repeatable")(
      "allow-share", po::value<Words>()->value_name("SHARE"),
      "the same as a share of the golden figure: 0.02, 2%, allocated=2%; the larger one counts")(
      "gpu", po::value<Words>()->value_name("NAME"),
      "a card of vramlab gpus that must still hold it; repeatable")(
      "capacity", po::value<Words>()->value_name("SIZE"), "a card of this size, such as 24GiB; repeatable")(
      "junit", text_value("FILE"), "write the figures as JUnit XML")("markdown", text_value("FILE"),
                                                                     "write a comment for a pull request")(
      "update", po::bool_switch(),
      "put NEW, with what lies beside it, in the place of GOLDEN, and print the difference");
  add_torch_version_option(options);
  add_report_option(options);
  add_output_options(options);
}

std::vector<WhatIfCard> chosen_cards(const Arguments& arguments) {
  std::vector<WhatIfCard> cards;
  for (const std::string& name : texts_of(arguments, "gpu")) {
    const Gpu& gpu = find_gpu(name, "--gpu");
    cards.push_back({.name = std::string{gpu.id},
                     .gpu = std::string{gpu.id},
                     .capacity = gpu.total,
                     .context = gpu.context,
                     .context_assumed = gpu.context_assumed()});
  }
  for (const std::string& text : texts_of(arguments, "capacity")) {
    const auto size = parse_bytes(text);
    if (!size || *size <= kContextBytes || *size >= kNeverFull)
      throw InputError(
          "--capacity",
          '"' + text + "\" is not the size of a card. Write 24GiB, 24576MiB or a number of bytes, above " +
              format_bytes(kContextBytes) + " for the context and below 4096GiB.");
    cards.push_back({.name = "a card of " + format_bytes(*size), .gpu = "", .capacity = size});
  }
  return cards;
}

JudgeQuestion chosen_question(const Arguments& arguments, const Output& output) {
  JudgeQuestion question{.allowed = {}, .cards = chosen_cards(arguments), .curves = output.wants_report()};
  for (const std::string& text : texts_of(arguments, "allow-bytes"))
    question.allowed.push_back(parse_allowed_bytes(text, "--allow-bytes"));
  for (const std::string& text : texts_of(arguments, "allow-share"))
    question.allowed.push_back(parse_allowed_share(text, "--allow-share"));
  return question;
}

// --- The golden recording's place ---

// "run" of "folder/run.pickle.gz", and the ending.
std::pair<std::string, std::string> split_name(const fs::path& file) {
  std::string stem = file.filename().string();
  std::string ending;
  for (const char* one : {".gz", ".zst", ".pickle", ".csv"}) {
    if (!stem.ends_with(one)) continue;
    stem.resize(stem.size() - std::string_view(one).size());
    ending = one + ending;
  }
  return {stem, ending};
}

std::string raw_content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in) throw InputError(file.string(), "cannot be read.");
  return content.str();
}

/// Which file takes which one's place.
std::vector<std::pair<fs::path, fs::path>> moved_files(const std::string& golden, const std::string& now) {
  const auto [stem, ending] = split_name(golden);
  if (const std::string other = split_name(now).second; other != ending)
    throw InputError("--update", fmt::format("{} ends in \"{}\" and {} in \"{}\"; give both the same ending.",
                                             golden, ending, now, other));
  std::vector<std::pair<fs::path, fs::path>> moves;
  for (const char* beside : {".truth.json", ".marks.json"}) {
    const auto from = find_beside(now, beside);
    const auto there = fs::exists(golden) ? find_beside(golden, beside) : std::nullopt;
    if (!from && there)
      throw InputError("--update", there->string() +
                                       " lies beside the golden recording, and nothing like it beside " +
                                       now + ". Record with marks, or remove it first.");
    if (!from) continue;
    const std::string packed = from->extension() == ".json" ? "" : from->extension().string();
    const fs::path to = fs::path{golden}.parent_path() / (stem + beside + packed);
    if (there && *there != to)
      throw InputError("--update", there->string() + " and " + from->string() +
                                       " have other endings; pack or unpack one of them.");
    moves.emplace_back(*from, to);
  }
  moves.emplace_back(now, golden);
  return moves;
}

void update(const std::string& golden, const std::string& now, Output& output) {
  for (const auto& [from, to] : moved_files(golden, now)) {
    write_file(to, raw_content(from));
    output.wrote(to.string());
  }
}

// --- Answers ---

void print(const Judgement& judgement, bool several, Output& output) {
  if (several) output.line("\nDevice {}:", judgement.device);
  output.line(verdict_sentence(judgement));
  for (const std::string& sentence : blame_sentences(judgement)) output.line(sentence);
  if (!judgement.blame.empty()) output.next_table(blame_table(judgement));
  output.next_table(figures_table(judgement));
  if (!judgement.cards.empty()) output.next_table(judged_cards_table(judgement));
  const auto grown = growth_sentences(judgement);
  if (!grown.empty()) output.line("");
  for (const std::string& sentence : grown) output.line("FAIL " + sentence);
  if (!judgement.notes.empty()) output.line("");
  for (const std::string& note : judgement.notes) output.line("note: " + note);
}

int judge_one(const std::string& file, const Arguments& arguments, Output& output) {
  for (const char* option : {"allow-bytes", "allow-share", "junit", "markdown", "report"}) {
    if (arguments.count(option) == 0 || arguments[option].defaulted()) continue;
    throw InputError(std::string("--") + option, "is for two recordings; of one, leaks are looked for.");
  }
  if (arguments["update"].as<bool>())
    throw InputError("--update", "is for two recordings: the golden one, and what takes its place.");
  const auto cards = chosen_cards(arguments);
  if (cards.size() > 1)
    throw InputError("--gpu, --capacity", "name one card for the leaks of one recording.");
  Json all = Json::array();
  bool leaks = false;
  for (const ClientProgram& program :
       read_client_programs(file, {.torch = chosen_torch_version(arguments), .device = {}})) {
    const LeakReport report =
        hunt_leaks(program, cards.empty() ? std::nullopt : std::optional(cards.front()));
    leaks = leaks || !report.leaks.empty();
    for (const std::string& sentence : leak_sentences(report)) output.line(sentence);
    if (!report.leaks.empty()) output.next_table(leaks_table(report));
    for (const std::string& note : report.notes) output.line("note: " + note);
    all.push_back(leaks_json(report));
    all.back()["device"] = program.device;
  }
  output.json(all.size() == 1 ? all.front() : all);
  return leaks ? kExpectationFailed : kDone;
}

int run_judge(const Arguments& arguments, Output& output) {
  const Words files = operands(arguments);
  const std::string junit = text_of(arguments, "junit");
  const std::string markdown = text_of(arguments, "markdown");
  require_output_names(with_siblings(files),
                       {text_of(arguments, "json"), junit, markdown, output.report_file()});
  if (files.size() == 1) return judge_one(files.front(), arguments, output);
  const JudgedFiles judged{files[0], files[1]};
  const bool updates = arguments["update"].as<bool>();
  if (updates) moved_files(judged.golden, judged.now);  // says at once what stands in the way
  const ReadOptions options{.torch = chosen_torch_version(arguments), .device = {}};
  const auto now = read_client_programs(judged.now, options);
  if (updates && !fs::exists(judged.golden)) {
    output.line("There was no {}: {} is the golden recording now.", judged.golden, judged.now);
    update(judged.golden, judged.now, output);
    return kDone;
  }
  const auto golden = read_client_programs(judged.golden, options);
  const auto judgements = judge_all(golden, now, chosen_question(arguments, output));
  for (const Judgement& one : judgements) {
    print(one, judgements.size() > 1, output);
    if (output.wants_report()) output.add_section(judgement_section(judged, one));
  }
  output.write_report();
  if (!junit.empty()) output.write(junit, judgements_junit(judged, judgements));
  if (!markdown.empty()) output.write(markdown, judgements_markdown(judged, judgements));
  output.json(judgements_json(judged, judgements));
  if (updates) {
    update(judged.golden, judged.now, output);
    return kDone;
  }
  return std::ranges::all_of(judgements, &Judgement::holds) ? kDone : kExpectationFailed;
}

}  // namespace

Verb judge_verb() {
  return {
      .name = "judge",
      .summary = "is this recording still the golden one's program, what grew, and what is to blame",
      .operands = "GOLDEN [NEW]",
      .count = {1, 2},
      .example = "vramlab judge tests/data/judge/decoder.pickle.gz tests/data/judge/decoder_leak.pickle.gz",
      .add_options = add_judge_options,
      .run = run_judge};
}

}  // namespace vramlab
