#include "lab/judge/judgement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/judge/settings.hpp"
#include "lab/page/sections.hpp"
#include "lab/whatif/view.hpp"

namespace vramlab {
namespace {

using Act = ClientAction::Kind;

std::int64_t difference(Bytes golden, Bytes now) {
  return static_cast<std::int64_t>(now) - static_cast<std::int64_t>(golden);
}

/// A program replayed as it was recorded.
struct Replayed {
  ProgramOutcome outcome;
  std::vector<ReplayedAction> actions;

  explicit Replayed(const ClientProgram& program) {
    outcome = replay_program(program, recorded_setup(program), {.actions = &actions});
  }
};

Bytes highest(const Replayed& replayed, const ProgramSteps& steps, std::size_t stretch,
              Bytes ReplayedAction::*figure) {
  Bytes most = 0;
  const std::size_t end = std::min(steps.ends[stretch], replayed.actions.size());
  for (std::size_t i = steps.begin_of(stretch); i < end; ++i)
    most = std::max(most, replayed.actions[i].*figure);
  return most;
}

// The first stretch that a history tells all of: where it lost its beginning, not the one in which it begins.
std::size_t first_whole_stretch(const ReadProgram& read) {
  if (std::ranges::none_of(read.lifetimes, &Lifetime::before_recording)) return 0;
  for (std::size_t i = read.program.initial_actions; i < read.program.actions.size(); ++i) {
    if (read.program.actions[i].kind != Act::mark) return read.steps.stretch_of(i) + 1;
  }
  return read.steps.ends.size();
}

class Judge {
 public:
  Judge(const ClientProgram& golden, const ClientProgram& now, const JudgeQuestion& question)
      : question_(question), a_(golden), b_(now) {
    judgement_.device = now.device;
    if (a_.steps.count() != b_.steps.count()) cut_to_common_steps();
  }

  Judgement judge() {
    note_bad_input();
    for (const WhatIfCard& card : question_.cards) judgement_.cards.push_back(on_card(card));
    const Replayed replayed_a(a_.program);
    const Replayed replayed_b(b_.program);
    outcome_a_ = replayed_a.outcome;
    outcome_b_ = replayed_b.outcome;
    first_ = find_first();
    judgement_.begins_late = first_ > 0;
    add_figures(replayed_a, replayed_b);
    if (!a_.program.has_history || !b_.program.has_history) {
      judgement_.verdict = Verdict::files_disagree;
      judgement_.reason = "A file without a history tells nothing of what its program asked for.";
      check_growth();
      return std::move(judgement_);
    }
    alignment_ = align(a_, b_);
    found_ = find_causes(a_, b_, alignment_, first_);
    judgement_.moved_frees = found_.moved_frees;
    count_requests();
    blame_settings();
    blame_program();
    decide();
    fold();
    check_growth();
    if (question_.curves) draw(replayed_a, replayed_b);
    return std::move(judgement_);
  }

 private:
  void note(std::string text) { judgement_.notes.push_back(std::move(text)); }

  void cut_to_common_steps() {
    const std::size_t count = std::min(a_.steps.count(), b_.steps.count());
    note(fmt::format("The golden recording has {} steps and the new one {}: the first {} are judged.",
                     a_.steps.count(), b_.steps.count(), count));
    for (ReadProgram* read : {&a_, &b_}) {
      if (read->steps.count() <= count) continue;
      ProgramSteps steps = read->steps;
      *read = ReadProgram(first_steps(read->program, steps, count));
      steps.ends.resize(count + 1);
      steps.ends.push_back(read->program.actions.size());
      read->steps = std::move(steps);
    }
  }

  void note_bad_input() {
    const auto& golden = a_.program;
    const auto& now = b_.program;
    if (golden.device_total && now.device_total && *golden.device_total != *now.device_total) {
      note(fmt::format("Recorded on cards of {} and {}: each is replayed on its own.",
                       format_bytes(*golden.device_total), format_bytes(*now.device_total)));
    }
    for (const ReadProgram* read : {&a_, &b_}) {
      if (!read->has_stacks)
        note(read->program.file + " holds no stacks: judged by sizes and order, and no line is named.");
      if (!read->program.has_history)
        note(read->program.file + " holds no history: only what it held at the end is compared.");
      if (read->steps.from == "none")
        note(read->program.file + " has no marks and no gradients: all of it is one step.");
      if (read->steps.from == "gradients")
        note(read->program.file + " has no marks: its steps are told by their gradients.");
      for (const std::string& warning : read->program.warnings) note(warning);
    }
  }

  std::size_t find_first() {
    const std::size_t first = std::max(first_whole_stretch(a_), first_whole_stretch(b_));
    if (first == 1)
      note("A history begins after its program did: what came before the first step is not judged.");
    if (first > 1)
      note(fmt::format("A history begins after its program did: steps before {} are not judged.", first));
    return first;
  }

  void add_figures(const Replayed& golden, const Replayed& now) {
    const std::size_t stretches = std::min(a_.steps.ends.size(), b_.steps.ends.size());
    for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
      const auto both = [&](Bytes ReplayedAction::*figure) {
        return BytePair{highest(golden, a_.steps, stretch, figure), highest(now, b_.steps, stretch, figure)};
      };
      const JudgedStretch figures{both(&ReplayedAction::allocated), both(&ReplayedAction::reserved)};
      if (stretch == 0) {
        judgement_.before = figures;
      } else if (stretch <= a_.steps.count()) {
        judgement_.steps.push_back(figures);
      }
      if (stretch < first_) continue;
      for (const auto& [whole, part] : {std::pair{&judgement_.whole.allocated, &figures.allocated},
                                        std::pair{&judgement_.whole.reserved, &figures.reserved}}) {
        whole->first = std::max(whole->first, part->first);
        whole->second = std::max(whole->second, part->second);
      }
    }
  }

  void count_requests() {
    for (std::size_t i = 0; i < b_.program.actions.size(); ++i) {
      if (b_.program.actions[i].kind != Act::alloc) continue;
      ++judgement_.requests;
      judgement_.paired += alignment_.a_of[i] == kUnpaired ? 0 : 1;
    }
  }

  struct Change {
    std::int64_t allocated = 0;
    std::int64_t reserved = 0;
  };
  static Change change(const ProgramOutcome& without, const ProgramOutcome& with) {
    return {difference(without.highest_allocated, with.highest_allocated),
            difference(without.highest_reserved, with.highest_reserved)};
  }

  void add(FoundCause cause, const Change& taken, const Change& added) {
    Blame blame;
    static_cast<FoundCause&>(blame) = std::move(cause);
    blame.allocated = taken.allocated;
    blame.reserved = taken.reserved;
    blame.allocated_added = added.allocated;
    blame.reserved_added = added.reserved;
    judgement_.blame.push_back(std::move(blame));
  }

  // The new program under the golden value, and the golden program under the new one.
  void blame_setup(FoundCause cause, const ReplaySetup& reverted, const ReplaySetup& applied) {
    add(std::move(cause), change(replay_program(b_.program, reverted), outcome_b_),
        change(outcome_a_, replay_program(a_.program, applied)));
  }

  void blame_settings() {
    const ReplaySetup golden = recorded_setup(a_.program);
    const ReplaySetup now = recorded_setup(b_.program);
    for (const SettingChange& one : setting_changes(golden.settings, now.settings)) {
      ReplaySetup reverted = now;
      reverted.settings = one.reverted;
      ReplaySetup applied = golden;
      applied.settings = one.applied;
      blame_setup({.kind = BlameKind::setting, .where = one.where, .what = one.what}, reverted, applied);
      ++settings_;
    }
    if (golden.limit != now.limit) {
      ReplaySetup reverted = now;
      reverted.limit = golden.limit;
      ReplaySetup applied = golden;
      applied.limit = now.limit;
      const auto text = [](const std::optional<Bytes>& limit) {
        return limit ? format_bytes(*limit) : "none";
      };
      blame_setup({.kind = BlameKind::setting,
                   .where = "memory limit",
                   .what = fmt::format("{} -> {}", text(golden.limit), text(now.limit))},
                  reverted, applied);
      ++settings_;
    }
    if (golden.settings.torch != now.settings.torch) {
      ReplaySetup reverted = now;
      reverted.settings.torch = golden.settings.torch;
      ReplaySetup applied = golden;
      applied.settings.torch = now.settings.torch;
      blame_setup(
          {.kind = BlameKind::setting,
           .where = "PyTorch's rules",
           .what = fmt::format("{} -> {}", to_text(golden.settings.torch), to_text(now.settings.torch))},
          reverted, applied);
      version_ = true;
    }
  }

  void blame_program() {
    const ReplaySetup golden = recorded_setup(a_.program);
    const ReplaySetup now = recorded_setup(b_.program);
    for (std::size_t i = 0; i < found_.causes.size(); ++i) {
      std::vector<bool> without(found_.causes.size() + 1, true);
      without[i + 1] = false;
      std::vector<bool> alone(found_.causes.size() + 1, false);
      alone[i + 1] = true;
      const auto replay = [&](const std::vector<bool>& of_b, const ReplaySetup& setup) {
        return replay_program(blended(a_, b_, alignment_, found_.differences, of_b), setup);
      };
      add(found_.causes[i], change(replay(without, now), outcome_b_),
          change(outcome_a_, replay(alone, golden)));
    }
  }

  [[nodiscard]] bool only_autotuned() const {
    return std::ranges::all_of(judgement_.blame, [](const Blame& blame) {
      return blame.kind == BlameKind::setting ||
             (blame.autotuned && blame.allocated == 0 && blame.reserved == 0);
    });
  }

  // Segments of the same requests under the same settings are the same: else a file holds something else.
  [[nodiscard]] bool segments_differ() const {
    const auto waits = [](const ClientProgram& program) {
      return std::ranges::any_of(program.actions,
                                 [](const ClientAction& one) { return one.kind == Act::record_stream; });
    };
    const auto& golden = a_.program.segments;
    const auto& now = b_.program.segments;
    if (golden.empty() || now.empty() || found_.moved_frees > 0 || waits(b_.program)) return false;
    return !std::ranges::equal(golden, now,
                               [](const SegmentPlace& a, const SegmentPlace& b) { return a.size == b.size; });
  }

  void decide() {
    if (!only_autotuned()) {
      judgement_.verdict = Verdict::program;
      return;
    }
    for (const Blame& blame : judgement_.blame) {
      if (blame.autotuned)
        note("Workspaces that libraries choose anew in every run have other sizes (" + blame.where +
             "); the peaks do not depend on them.");
    }
    std::erase_if(judgement_.blame, [](const Blame& blame) { return blame.autotuned; });
    judgement_.verdict = version_ && settings_ == 0 ? Verdict::version
                         : settings_ > 0            ? Verdict::settings
                         : segments_differ()        ? Verdict::files_disagree
                                                    : Verdict::same;
    if (judgement_.verdict != Verdict::files_disagree) return;
    const auto sum = [](const std::vector<SegmentPlace>& segments) {
      Bytes bytes = 0;
      for (const SegmentPlace& one : segments) bytes += one.size;
      return format_bytes(bytes);
    };
    judgement_.reason = fmt::format(
        "Requests and settings are the same, and yet the files record {} segments of {} and {} of {}. "
        "vramlab verify says which of them its own history does not explain.",
        a_.program.segments.size(), sum(a_.program.segments), b_.program.segments.size(),
        sum(b_.program.segments));
  }

  // What changes nothing is no reason where something else is.
  void fold() {
    auto& blame = judgement_.blame;
    const auto idle = [](const Blame& one) {
      return one.allocated == 0 && one.reserved == 0 && one.allocated_added == 0 && one.reserved_added == 0;
    };
    const auto is_one = [](const Blame& one, std::initializer_list<BlameKind> kinds) {
      return std::ranges::find(kinds, one.kind) != kinds.end();
    };
    const auto vague = [&](const Blame& one) {
      return idle(one) && is_one(one, {BlameKind::other, BlameKind::late_free, BlameKind::workspace});
    };
    const auto aside = [&](const Blame& one) {
      return idle(one) && !is_one(one, {BlameKind::setting, BlameKind::leak, BlameKind::stream});
    };
    const bool some_effect = !std::ranges::all_of(blame, idle);
    const bool some_named = !std::ranges::all_of(blame, vague);
    const auto is_left_out = [&](const Blame& one) {
      return some_effect ? aside(one) : some_named && vague(one);
    };
    for (const Blame& one : blame) {
      if (is_left_out(one)) note(fmt::format("Without effect on the peaks: {} ({}).", one.where, one.what));
    }
    std::erase_if(blame, is_left_out);
    std::ranges::stable_sort(blame, std::ranges::greater{}, [](const Blame& one) {
      return std::max(std::abs(one.reserved), std::abs(one.allocated));
    });
  }

  [[nodiscard]] Bytes allowed(JudgedFigure figure, std::size_t step, Bytes golden) const {
    Bytes most = 0;
    for (const Allowance& one : question_.allowed) {
      if (one.figure && *one.figure != figure) continue;
      if (one.step && *one.step != step) continue;
      most = std::max({most, one.bytes, static_cast<Bytes>(one.share * static_cast<double>(golden))});
    }
    return most;
  }

  void check_growth() {
    for (const Allowance& one : question_.allowed) {
      if (one.step && *one.step > judgement_.steps.size())
        note(fmt::format("What is allowed of step {} counts for nothing: {} steps were judged.", *one.step,
                         judgement_.steps.size()));
    }
    if (judgement_.verdict == Verdict::same) return;
    const auto check = [&](const JudgedStretch& stretch, std::size_t step) {
      for (const JudgedFigure figure : {JudgedFigure::allocated, JudgedFigure::reserved}) {
        const BytePair& bytes = stretch.figure(figure);
        const Bytes most = allowed(figure, step, bytes.first);
        if (bytes.second > bytes.first + most) judgement_.grown.push_back({figure, step, bytes, most});
      }
    };
    check(judgement_.whole, 0);
    for (std::size_t i = 0; i < judgement_.steps.size(); ++i) {
      if (i + 1 >= first_) check(judgement_.steps[i], i + 1);
    }
  }

  [[nodiscard]] JudgedCard on_card(const WhatIfCard& card) const {
    JudgedCard judged{.name = card.name, .context_assumed = card.context_assumed && !card.context_given};
    const auto replay = [&](const ClientProgram& program) {
      ReplaySetup setup = recorded_setup(program);
      setup.total = *card.capacity - card.others;
      setup.context = card.context;
      setup.limit.reset();
      return replay_program(program, setup);
    };
    const ProgramOutcome golden = replay(a_.program);
    const ProgramOutcome now = replay(b_.program);
    judged.golden_fits = golden.fits();
    judged.new_fits = now.fits();
    const Bytes usable = *card.capacity - card.others - card.context;
    judged.why = now.fits()      ? format_bytes(usable - std::min(usable, now.highest_reserved)) + " to spare"
                 : now.first_oom ? fmt::format("out of memory in {}",
                                               stretch_name(b_.steps.stretch_of(now.first_oom->action)))
                                 : "ended by an error of PyTorch";
    return judged;
  }
  static std::string stretch_name(std::size_t stretch) {
    return stretch == 0 ? "building" : fmt::format("step {}", stretch);
  }

  void draw(const Replayed& golden, const Replayed& now) {
    const auto curve = [&](const Replayed& replayed, const std::vector<std::uint32_t>& ranks,
                           Bytes ReplayedAction::*figure) {
      const std::size_t count = replayed.actions.size();
      return thinned_curve(count, curve_stride(count, kMostPoints), [&](std::size_t i) {
        return CurvePoint{std::int64_t{ranks[i]}, static_cast<std::int64_t>(replayed.actions[i].*figure)};
      });
    };
    judgement_.curves = {curve(golden, alignment_.rank_a, &ReplayedAction::allocated),
                         curve(golden, alignment_.rank_a, &ReplayedAction::reserved),
                         curve(now, alignment_.rank_b, &ReplayedAction::allocated),
                         curve(now, alignment_.rank_b, &ReplayedAction::reserved)};
  }

  const JudgeQuestion& question_;
  ReadProgram a_;
  ReadProgram b_;
  Alignment alignment_;
  FoundCauses found_;
  ProgramOutcome outcome_a_;
  ProgramOutcome outcome_b_;
  std::size_t first_ = 0;     ///< stretch that is judged
  std::size_t settings_ = 0;  ///< of them differ
  bool version_ = false;
  Judgement judgement_;
};

std::pair<Allowance, std::string> split_allowance(const std::string& text, const std::string& option) {
  Allowance allowance;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {allowance, text};
  const std::size_t at = std::min(text.find('@'), equals);
  const std::string name = text.substr(0, at);
  const auto figure = std::ranges::find(kJudgedFigureNames, name);
  if (figure == kJudgedFigureNames.end()) {
    throw InputError(
        option,
        '"' + name + "\" is not a figure that may grow. Write allocated or reserved: reserved=64MiB.");
  }
  allowance.figure = static_cast<JudgedFigure>(figure - kJudgedFigureNames.begin());
  if (at < equals) {
    const std::string step = text.substr(at + 1, equals - at - 1);
    const bool number = !step.empty() && step.size() < 10 &&
                        std::ranges::all_of(step, [](char c) { return c >= '0' && c <= '9'; });
    if (!number || std::stoul(step) == 0)
      throw InputError(option, '"' + step + "\" is not a step. Steps are counted from 1: reserved@3=64MiB.");
    allowance.step = std::stoul(step);
  }
  return {allowance, text.substr(equals + 1)};
}

}  // namespace

Allowance parse_allowed_bytes(const std::string& text, const std::string& option) {
  auto [allowance, value] = split_allowance(text, option);
  const std::optional<Bytes> bytes = parse_bytes(value);
  if (!bytes)
    throw InputError(option, '"' + value + "\" is not a size. Write 64MiB, 1GiB or a number of bytes.");
  allowance.bytes = *bytes;
  return allowance;
}

Allowance parse_allowed_share(const std::string& text, const std::string& option) {
  auto [allowance, value] = split_allowance(text, option);
  const bool percent = value.ends_with('%');
  char* end = nullptr;
  const std::string number = percent ? value.substr(0, value.size() - 1) : value;
  allowance.share = std::strtod(number.c_str(), &end) / (percent ? 100 : 1);
  const bool whole = !number.empty() && end == number.c_str() + number.size();
  if (!whole || !std::isfinite(allowance.share) || allowance.share < 0 || allowance.share > 1)
    throw InputError(option, '"' + value + "\" is not a share. Write 0.02 or 2%; at most 1.");
  return allowance;
}

std::int64_t Judgement::delta_allocated() const {
  return difference(whole.allocated.first, whole.allocated.second);
}
std::int64_t Judgement::delta_reserved() const {
  return difference(whole.reserved.first, whole.reserved.second);
}

bool Judgement::holds() const {
  const auto broken = [](const JudgedCard& card) { return card.golden_fits && !card.new_fits; };
  return verdict != Verdict::files_disagree && grown.empty() && std::ranges::none_of(cards, broken);
}

ReplaySetup recorded_setup(const ClientProgram& program) {
  ReplaySetup setup;
  setup.settings = program.settings;
  setup.limit = program.limit_inferred ? std::nullopt : program.limit;
  if (program.device_total && *program.device_total > setup.context) setup.total = *program.device_total;
  return setup;
}

Judgement judge(const ClientProgram& golden, const ClientProgram& now, const JudgeQuestion& question) {
  return Judge(golden, now, question).judge();
}

std::vector<Judgement> judge_all(const std::vector<ClientProgram>& golden,
                                 const std::vector<ClientProgram>& now, const JudgeQuestion& question) {
  std::vector<Judgement> judgements;
  if (golden.size() == 1 && now.size() == 1) {
    judgements.push_back(judge(golden.front(), now.front(), question));
    if (golden.front().device != now.front().device) {
      judgements.front().notes.push_back(
          fmt::format("The golden recording is of device {}, the new one of device {}.",
                      golden.front().device, now.front().device));
    }
    return judgements;
  }
  std::string missing;
  for (const ClientProgram& one : golden) {
    const auto other = std::ranges::find(now, one.device, &ClientProgram::device);
    if (other == now.end()) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", one.device);
    } else {
      judgements.push_back(judge(one, *other, question));
    }
  }
  if (judgements.empty()) {
    throw InputError(golden.front().file + ", " + now.front().file,
                     "have no device in common; nothing can be judged.");
  }
  if (!missing.empty())
    judgements.front().notes.push_back("Only in the golden recording, and not judged: device " + missing +
                                       ".");
  return judgements;
}

}  // namespace vramlab
