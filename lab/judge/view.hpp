// A judgement for people and for machines: sentences, tables, JSON, a pull request's comment, JUnit, the
// page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/judge/judgement.hpp"
#include "lab/judge/leaks.hpp"
#include "report/table.hpp"

namespace vramlab {

/// The files that were judged.
struct JudgedFiles {
  std::string golden;
  std::string now;
};

/// "+6.0 MiB", "-1.0 GiB", "0".
std::string change_text(std::int64_t bytes);

/// What it comes to, in one sentence.
std::string verdict_sentence(const Judgement& judgement);
/// One sentence for each thing to blame, the largest first.
std::vector<std::string> blame_sentences(const Judgement& judgement);
/// One sentence for each figure that grew by more than is allowed, and for each card that no longer holds it.
std::vector<std::string> growth_sentences(const Judgement& judgement);

Table blame_table(const Judgement& judgement);
/// Peaks of the whole, and of each step; steps with the same figures are one row.
Table figures_table(const Judgement& judgement);
Table judged_cards_table(const Judgement& judgement);

/// {"verdict", "delta_allocated_bytes", "delta_reserved_bytes", "blame", "steps", …} as docs/regression.md
/// lists it. Of several devices that with the largest change, and all of them in "devices".
Json judgements_json(const JudgedFiles& files, const std::vector<Judgement>& judgements);

/// A comment for a pull request.
std::string judgements_markdown(const JudgedFiles& files, const std::vector<Judgement>& judgements);

/// JUnit XML: a suite a device, a case a figure, a card, and whether the files agree.
std::string judgements_junit(const JudgedFiles& files, const std::vector<Judgement>& judgements);

/// The section of the page: both time lines over each other, figures and blame. Curves must be there.
Json judgement_section(const JudgedFiles& files, const Judgement& judgement);

// One long recording: what its steps leave behind.

/// A recording with its leaks, and when the card would be full.
struct LeakReport {
  std::string file;
  std::vector<StepLeak> leaks;
  LeakForecast forecast;
  std::string card;  ///< name of the one it is for; empty where none is known
  bool context_assumed = false;
  std::vector<std::string> notes;
};

/// Looks for leaks, and replays the program further on `card`, else on the recorded one. Throws InputError
/// for a card smaller than its context.
LeakReport hunt_leaks(const ClientProgram& program, const std::optional<WhatIfCard>& card);

std::vector<std::string> leak_sentences(const LeakReport& report);
Table leaks_table(const LeakReport& report);
Json leaks_json(const LeakReport& report);

}  // namespace vramlab
