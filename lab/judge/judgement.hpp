// A verdict on two recordings of a program: is it the same one, what does it take now, and what is to blame.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/judge/causes.hpp"
#include "lab/page/drawing.hpp"
#include "lab/whatif/whatif.hpp"

namespace vramlab {

/// What two recordings are to each other.
enum class Verdict : std::uint8_t {
  same,            ///< same requests, same settings, same memory
  settings,        ///< same requests under other settings
  version,         ///< same requests under another PyTorch's rules
  program,         ///< other requests
  files_disagree,  ///< nothing differs that explains what the files hold
};
inline constexpr std::array<std::string_view, 5> kVerdictNames{"same", "settings", "version", "program",
                                                               "files_disagree"};

/// A figure that may grow.
enum class JudgedFigure : std::uint8_t { allocated, reserved };
inline constexpr std::array<std::string_view, 2> kJudgedFigureNames{"allocated", "reserved"};

/// By how much figures may grow. What several cover may grow by the most that one allows.
struct Allowance {
  std::optional<JudgedFigure> figure;  ///< empty = both
  std::optional<std::size_t> step;     ///< counted from 1; empty = every step, and the whole
  Bytes bytes = 0;
  double share = 0;  ///< of the golden figure
};

/// "64MiB", "reserved=64MiB", "reserved@3=64MiB" (of step 3). Throws InputError, naming `option`.
Allowance parse_allowed_bytes(const std::string& text, const std::string& option);
/// The same with a share, "0.02" or "2%".
Allowance parse_allowed_share(const std::string& text, const std::string& option);

/// The golden recording's bytes, and the new one's.
using BytePair = std::pair<Bytes, Bytes>;

/// Highest bytes of a stretch in both.
struct JudgedStretch {
  BytePair allocated;
  BytePair reserved;
  [[nodiscard]] const BytePair& figure(JudgedFigure which) const {
    return which == JudgedFigure::allocated ? allocated : reserved;
  }
};

/// A cause with what it takes: peaks of the new program less those without it.
struct Blame : FoundCause {
  std::int64_t allocated = 0;  ///< bytes
  std::int64_t reserved = 0;
  /// The other way round: of the golden program with it less those of the golden program.
  std::int64_t allocated_added = 0;
  std::int64_t reserved_added = 0;
};

/// A figure that grew by more than is allowed.
struct Growth {
  JudgedFigure figure{};
  std::size_t step = 0;  ///< 0 = the whole
  BytePair bytes;
  Bytes allowed = 0;  ///< it may grow by
};

/// Whether both programs fit on a card.
struct JudgedCard {
  std::string name;
  bool golden_fits = true;
  bool new_fits = true;
  std::string why;  ///< "short by …", "… to spare"
  bool context_assumed = false;
};

/// One device of both recordings.
struct Judgement {
  int device = 0;
  Verdict verdict{};
  std::string reason;        ///< one sentence
  bool begins_late = false;  ///< a history did: what it began with may lie otherwise than it did
  JudgedStretch whole;       ///< the peaks of all that was judged
  JudgedStretch before;      ///< before the first step
  std::vector<JudgedStretch> steps;
  std::vector<Blame> blame;  ///< the largest first
  std::uint64_t moved_frees = 0;
  std::uint64_t requests = 0;  ///< of the new program
  std::uint64_t paired = 0;    ///< of these, with one of the golden one's
  std::vector<Growth> grown;
  std::vector<JudgedCard> cards;
  std::vector<std::string> notes;  ///< what was not judged, and what differs without effect
  /// Both time lines over the requests, from the beginning of the first step on; x counts requests of the
  /// golden program. Golden allocated, golden reserved, new allocated, new reserved.
  std::array<std::vector<CurvePoint>, 4> curves;

  [[nodiscard]] std::int64_t delta_allocated() const;
  [[nodiscard]] std::int64_t delta_reserved() const;
  /// Nothing grew by more than is allowed, what fitted fits, and the files agree.
  [[nodiscard]] bool holds() const;
};

/// What is asked of two recordings.
struct JudgeQuestion {
  std::vector<Allowance> allowed;
  std::vector<WhatIfCard> cards;  ///< both are put on, beside the recorded one
  bool curves = false;
};

/// Judges the programs of one device. Equal at any number of threads. Throws InputError for a card smaller
/// than its context.
Judgement judge(const ClientProgram& golden, const ClientProgram& now, const JudgeQuestion& question);

/// Judges each device that both have; of one device each these two, whatever their numbers. Throws InputError
/// where there is none.
std::vector<Judgement> judge_all(const std::vector<ClientProgram>& golden,
                                 const std::vector<ClientProgram>& now, const JudgeQuestion& question);

/// Under what a program was recorded, as far as it is known.
ReplaySetup recorded_setup(const ClientProgram& program);

}  // namespace vramlab
