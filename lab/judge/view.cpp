#include "lab/judge/view.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "lab/page/sections.hpp"
#include "report/html_page.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostSentences = 8;  // of figures that grew
constexpr std::size_t kMostRows = 24;      // of figures; further steps are one row

std::string file_name(const std::string& path) { return std::filesystem::path{path}.filename().string(); }

std::string pair_text(const BytePair& pair) {
  return fmt::format(
      "{} -> {} ({})", format_bytes(pair.first), format_bytes(pair.second),
      change_text(static_cast<std::int64_t>(pair.second) - static_cast<std::int64_t>(pair.first)));
}

std::int64_t change_of(const BytePair& pair) {
  return static_cast<std::int64_t>(pair.second) - static_cast<std::int64_t>(pair.first);
}

std::string kind_text(const Blame& blame) {
  const bool less = blame.allocated < 0 || (blame.allocated == 0 && blame.reserved < 0);
  switch (blame.kind) {
    case BlameKind::leak:
      return less ? "a leak mended" : "a leak";
    case BlameKind::late_free:
      return less ? "earlier frees" : "a late free";
    case BlameKind::larger_input:
      return less ? "a smaller input" : "a larger input";
    case BlameKind::more_layers:
      return less ? "fewer layers" : "more layers";
    case BlameKind::dtype:
      return "another dtype";
    case BlameKind::optimizer:
      return "the optimizer";
    case BlameKind::recomputation:
      return less ? "recomputation" : "recomputation lost";
    case BlameKind::workspace:
      return "a workspace";
    case BlameKind::stream:
      return "another stream";
    case BlameKind::setting:
      return "a setting";
    case BlameKind::other:
      return "other requests";
  }
  return "";
}

std::string step_text(const Blame& blame) {
  if (blame.kind == BlameKind::setting) return "all";
  return blame.first_step == 0 ? "building" : std::to_string(blame.first_step);
}

std::string counted(std::size_t count, const char* word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

void add_figure(Table& table, const std::string& name, const JudgedStretch& stretch) {
  table.add_row({name, format_bytes(stretch.allocated.first), format_bytes(stretch.allocated.second),
                 change_text(change_of(stretch.allocated)), format_bytes(stretch.reserved.first),
                 format_bytes(stretch.reserved.second), change_text(change_of(stretch.reserved))});
}

bool same_figures(const JudgedStretch& a, const JudgedStretch& b) {
  return a.allocated == b.allocated && a.reserved == b.reserved;
}

Json pair_json(const BytePair& pair) { return {pair.first, pair.second}; }

Json stretch_json(const JudgedStretch& stretch) {
  return {{"allocated", pair_json(stretch.allocated)}, {"reserved", pair_json(stretch.reserved)}};
}

std::string where_of_step(std::size_t step) { return step == 0 ? "peak" : fmt::format("step {}", step); }

Json blame_json(const Blame& blame) {
  Json json{{"kind", kBlameNames[static_cast<std::size_t>(blame.kind)]},
            {"where", blame.where},
            {"what", blame.what},
            {"first_step", blame.first_step},
            {"bytes_allocated", blame.allocated},
            {"bytes_reserved", blame.reserved},
            {"added_to_golden",
             {{"bytes_allocated", blame.allocated_added}, {"bytes_reserved", blame.reserved_added}}}};
  if (blame.kind == BlameKind::leak) json["bytes_per_step"] = blame.per_step;
  json["places"] = Json::array();
  for (const SiteChange& site : blame.sites)
    json["places"].push_back(
        {{"where", site.where}, {"requested_bytes", site.bytes}, {"blocks", site.blocks}});
  return json;
}

Json judgement_json(const Judgement& judgement) {
  Json json{{"verdict", kVerdictNames[static_cast<std::size_t>(judgement.verdict)]},
            {"holds", judgement.holds()},
            {"device", judgement.device},
            {"delta_allocated_bytes", judgement.delta_allocated()},
            {"delta_reserved_bytes", judgement.delta_reserved()},
            {"peak", stretch_json(judgement.whole)},
            {"blame", Json::array()},
            {"steps", Json::array()}};
  for (const Blame& blame : judgement.blame) json["blame"].push_back(blame_json(blame));
  for (const JudgedStretch& step : judgement.steps) json["steps"].push_back(stretch_json(step));
  json["before_first_step"] = stretch_json(judgement.before);
  json["requests"] = {
      {"new", judgement.requests}, {"in_both", judgement.paired}, {"moved_frees", judgement.moved_frees}};
  json["grown"] = Json::array();
  for (const Growth& growth : judgement.grown) {
    json["grown"].push_back({{"figure", kJudgedFigureNames[static_cast<std::size_t>(growth.figure)]},
                             {"step", growth.step == 0 ? Json() : Json(growth.step)},
                             {"bytes", pair_json(growth.bytes)},
                             {"allowed_bytes", growth.allowed}});
  }
  json["cards"] = Json::array();
  for (const JudgedCard& card : judgement.cards) {
    json["cards"].push_back({{"card", card.name},
                             {"golden_fits", card.golden_fits},
                             {"new_fits", card.new_fits},
                             {"context_assumed", card.context_assumed}});
  }
  json["notes"] = judgement.notes;
  return json;
}

const Judgement& decisive(const std::vector<Judgement>& judgements) {
  return *std::ranges::max_element(judgements, {}, [](const Judgement& one) {
    return std::pair{!one.holds(), std::abs(one.delta_reserved())};
  });
}

}  // namespace

std::string change_text(std::int64_t bytes) {
  if (bytes == 0) return "0";
  return fmt::format("{}{}", bytes < 0 ? "-" : "+", format_bytes(static_cast<Bytes>(std::abs(bytes))));
}

std::string verdict_sentence(const Judgement& judgement) {
  const std::string figures =
      fmt::format("peak allocated {}, peak reserved {}", pair_text(judgement.whole.allocated),
                  pair_text(judgement.whole.reserved));
  switch (judgement.verdict) {
    case Verdict::same:
      if (judgement.begins_late)
        return fmt::format(
            "Same requests and settings as far as the histories go, from other beginnings: {}.", figures);
      return fmt::format("Same requests, same settings, same memory: {}.", figures);
    case Verdict::settings:
      return fmt::format("Same requests under other settings of the allocator: {}.", figures);
    case Verdict::version:
      return fmt::format("Same requests under another PyTorch's rules: {}.", figures);
    case Verdict::program:
      return fmt::format("Another program: {}.", figures);
    case Verdict::files_disagree:
      return fmt::format("The files disagree. {}", judgement.reason);
  }
  return "";
}

std::vector<std::string> blame_sentences(const Judgement& judgement) {
  std::vector<std::string> sentences;
  for (const Blame& blame : judgement.blame) {
    const std::string from = blame.kind == BlameKind::setting ? ""
                             : blame.first_step == 0          ? ", from building on"
                                                     : fmt::format(", from step {} on", blame.first_step);
    sentences.push_back(fmt::format("{} at {}{}: {} allocated, {} reserved. It is: {}.", kind_text(blame),
                                    blame.where, from, change_text(blame.allocated),
                                    change_text(blame.reserved), blame.what));
    sentences.back()[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(sentences.back()[0])));
  }
  return sentences;
}

std::vector<std::string> growth_sentences(const Judgement& judgement) {
  std::vector<std::string> sentences;
  for (const Growth& growth : judgement.grown) {
    if (sentences.size() == kMostSentences) {
      sentences.push_back(fmt::format("{} more steps' figures grew by more than is allowed.",
                                      judgement.grown.size() - kMostSentences));
      break;
    }
    sentences.push_back(
        fmt::format("{} {}: {} bytes, {} more than is allowed ({} of growth).", where_of_step(growth.step),
                    kJudgedFigureNames[static_cast<std::size_t>(growth.figure)], growth.bytes.second,
                    growth.bytes.second - growth.bytes.first - growth.allowed, format_bytes(growth.allowed)));
  }
  for (const JudgedCard& card : judgement.cards) {
    if (card.golden_fits && !card.new_fits)
      sentences.push_back(fmt::format("no longer fits {}: {}.", card.name, card.why));
  }
  return sentences;
}

Table blame_table(const Judgement& judgement) {
  Table table{{left("to blame"), left("where"), "from step", "allocated", "reserved", left("what")}};
  for (const Blame& blame : judgement.blame) {
    table.add_row({kind_text(blame), blame.where, step_text(blame), change_text(blame.allocated),
                   change_text(blame.reserved), blame.what});
  }
  return table;
}

Table figures_table(const Judgement& judgement) {
  Table table{{left("highest"), "allocated", "now", "change", "reserved", "now", "change"}};
  add_figure(table, "of all", judgement.whole);
  add_figure(table, "before", judgement.before);
  const auto& steps = judgement.steps;
  for (std::size_t i = 0; i < steps.size();) {
    const bool last_row = table.rows().size() == kMostRows;
    JudgedStretch figures = steps[i];
    std::size_t end = i + 1;
    for (; end < steps.size() && (last_row || same_figures(steps[i], steps[end])); ++end) {
      for (const auto& [most, one] : {std::pair{&figures.allocated, &steps[end].allocated},
                                      std::pair{&figures.reserved, &steps[end].reserved}}) {
        *most = {std::max(most->first, one->first), std::max(most->second, one->second)};
      }
    }
    add_figure(table, end == i + 1 ? fmt::format("step {}", end) : fmt::format("steps {} to {}", i + 1, end),
               figures);
    i = end;
  }
  return table;
}

Table judged_cards_table(const Judgement& judgement) {
  Table table{{left("card"), left("golden"), left("now"), left("")}};
  for (const JudgedCard& card : judgement.cards) {
    table.add_row({card.name + (card.context_assumed ? " (context assumed)" : ""),
                   card.golden_fits ? "fits" : "does not fit", card.new_fits ? "fits" : "does not fit",
                   card.why});
  }
  return table;
}

Json judgements_json(const JudgedFiles& files, const std::vector<Judgement>& judgements) {
  Json json{{"golden", files.golden}, {"new", files.now}};
  json.update(judgement_json(decisive(judgements)));
  json["holds"] = std::ranges::all_of(judgements, &Judgement::holds);
  if (judgements.size() == 1) return json;
  json["devices"] = Json::array();
  for (const Judgement& one : judgements) json["devices"].push_back(judgement_json(one));
  return json;
}

std::string judgements_markdown(const JudgedFiles& files, const std::vector<Judgement>& judgements) {
  const bool holds = std::ranges::all_of(judgements, &Judgement::holds);
  std::string text =
      fmt::format("### Memory of {}: {}\n", file_name(files.now), holds ? "within what is allowed" : "grew");
  for (const Judgement& one : judgements) {
    if (judgements.size() > 1) text += fmt::format("\n#### Device {}\n", one.device);
    text += fmt::format("\n{}\n", verdict_sentence(one));
    if (!one.blame.empty()) text += "\n" + blame_table(one).format(TableFormat::markdown);
    if (const auto grown = growth_sentences(one); !grown.empty()) {
      text += "\n";
      for (const std::string& sentence : grown) text += fmt::format("- {}\n", sentence);
    }
    if (!one.cards.empty()) text += "\n" + judged_cards_table(one).format(TableFormat::markdown);
    text += fmt::format("\n<details><summary>{}, golden and now</summary>\n\n{}\n",
                        counted(one.steps.size(), "step"), figures_table(one).format(TableFormat::markdown));
    for (const std::string& note : one.notes) text += fmt::format("- {}\n", note);
    text += "\n</details>\n";
  }
  text += fmt::format("\nGolden: `{}`. Bytes to blame are what the peak loses without it, by replay.\n",
                      file_name(files.golden));
  return text;
}

std::string judgements_junit(const JudgedFiles& files, const std::vector<Judgement>& judgements) {
  std::size_t tests = 0;
  std::size_t failed = 0;
  std::string suites;
  for (const Judgement& one : judgements) {
    std::string cases;
    std::size_t failures = 0;
    std::size_t count = 0;
    std::string why = verdict_sentence(one) + "\n";
    for (const std::string& sentence : blame_sentences(one)) why += sentence + "\n";
    const auto add = [&](const std::string& name, const std::string& failure) {
      ++count;
      cases += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text(files.now), xml_text(name));
      if (failure.empty()) {
        cases += "/>\n";
        return;
      }
      ++failures;
      cases += fmt::format(">\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n",
                           xml_text(failure), xml_text(why));
    };
    add("the files agree", one.verdict == Verdict::files_disagree ? one.reason : "");
    for (std::size_t step = 0; step <= one.steps.size(); ++step) {
      for (const JudgedFigure figure : {JudgedFigure::allocated, JudgedFigure::reserved}) {
        const auto grown = std::ranges::find_if(
            one.grown, [&](const Growth& growth) { return growth.step == step && growth.figure == figure; });
        add(fmt::format("{} {}", where_of_step(step), kJudgedFigureNames[static_cast<std::size_t>(figure)]),
            grown == one.grown.end() ? ""
                                     : fmt::format("{} -> {} bytes, {} allowed", grown->bytes.first,
                                                   grown->bytes.second, grown->allowed));
      }
    }
    for (const JudgedCard& card : one.cards)
      add("fits " + card.name, card.golden_fits && !card.new_fits ? "no longer fits: " + card.why : "");
    suites +=
        fmt::format("  <testsuite name=\"{}, device {}\" tests=\"{}\" failures=\"{}\">\n{}  </testsuite>\n",
                    xml_text(files.golden), one.device, count, failures, cases);
    tests += count;
    failed += failures;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" "
      "failures=\"{}\">\n{}</testsuites>\n",
      tests, failed, suites);
}

namespace {

Json rows_of(const Table& table, const std::string& caption) {
  Json json{{"caption", caption}, {"columns", Json::array()}, {"rows", table.rows()}};
  for (const Table::Column& column : table.columns())
    json["columns"].push_back({{"name", column.name}, {"number", column.align == Table::Align::right}});
  return json;
}

}  // namespace

Json judgement_section(const JudgedFiles& files, const Judgement& judgement) {
  Json json = begun_section("regression", file_name(files.now),
                            {verdict_sentence(judgement), "Held against " + files.golden});
  json["notes"] = growth_sentences(judgement);
  for (const std::string& note : judgement.notes) json["notes"].push_back(note);
  constexpr std::array kNames{"golden allocated", "golden reserved", "new allocated", "new reserved"};
  json["curves"] = Json::array();
  for (std::size_t i = 0; i < kNames.size(); ++i)
    json["curves"].push_back({{"name", kNames[i]}, {"points", curve_json(judgement.curves[i])}});
  if (!judgement.blame.empty())
    json["blame"] = rows_of(blame_table(judgement), "To blame: what the peaks lose without it");
  json["figures"] = rows_of(figures_table(judgement), "Highest bytes, golden and now");
  if (!judgement.cards.empty()) json["cards"] = rows_of(judged_cards_table(judgement), "Cards");
  return json;
}

}  // namespace vramlab
