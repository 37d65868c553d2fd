#include "policies/composers/oom_guardian.hpp"

#include <algorithm>

#include "policies/contract/saved_state.hpp"

namespace vramlab {
namespace {

using Action = ComposerAnswer::Action;

// Of a part of a batch; that memory is in proportion to samples is the best a guardian can know.
PredictedMemory part_of(const PredictedMemory& whole, std::size_t samples, std::size_t all) {
  return {whole.likely / all * samples, whole.at_most / all * samples};
}

}  // namespace

bool OomGuardian::fits(const PredictedMemory& predicted, const MemoryView& memory) const {
  return static_cast<double>(memory.allocated + predicted.at_most) <=
         static_cast<double>(memory.total) * (1 - options_.safety_margin);
}

ComposerAnswer OomGuardian::decide(const ComposerQuestion& question, const Observation& observation) {
  if (!gave_up_.empty()) return {.action = Action::give_up, .reason = gave_up_};
  bool oversize = false;
  if (pieces_.empty()) {
    ComposerQuestion inner = question;
    inner.most = std::min(question.most, limit_);
    ComposerAnswer answer = inner_->decide(inner, observation);
    if (answer.action != Action::run) return answer;
    oversize = answer.oversize;
    pieces_.push_back({.samples = std::move(answer.batch), .predicted = answer.predicted});
    cleaned_ = false;
  }
  ComposerAnswer answer = serve(question, observation);
  answer.oversize = answer.oversize || oversize;
  return answer;
}

// A piece that already failed was cut for that reason; only a fresh one is looked at.
ComposerAnswer OomGuardian::serve(const ComposerQuestion& question, const Observation& observation) {
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  const auto most = static_cast<std::size_t>(std::min(question.most, limit_));
  const bool fresh = piece.halved == 0 && !piece.checkpointing;
  if (fresh && !fits(piece.predicted, observation.memory)) {
    if (!std::exchange(cleaned_, true)) {
      ++clean_ups_;
      pieces_.push_front(std::move(piece));
      return {.action = Action::clean_up, .reason = "predicted over the memory that may be used"};
    }
    if (piece.samples.size() > 1) {
      const std::size_t all = piece.samples.size();
      const std::size_t half = (all + 1) / 2;
      pieces_.push_front(
          {.samples = {piece.samples.begin() + static_cast<std::ptrdiff_t>(half), piece.samples.end()},
           .predicted = part_of(piece.predicted, all - half, all)});
      pieces_.push_front(
          {.samples = {piece.samples.begin(), piece.samples.begin() + static_cast<std::ptrdiff_t>(half)},
           .predicted = part_of(piece.predicted, half, all)});
      ++splits_;
      return serve(question, observation);
    }
  }
  if (piece.samples.size() > most) {
    Piece rest = piece;
    const auto cut = piece.samples.begin() + static_cast<std::ptrdiff_t>(most);
    rest.samples.assign(cut, piece.samples.end());
    rest.predicted = part_of(piece.predicted, rest.samples.size(), piece.samples.size());
    piece.predicted = part_of(piece.predicted, most, piece.samples.size());
    piece.samples.erase(cut, piece.samples.end());
    pieces_.push_front(std::move(rest));
  }
  running_ = piece;
  cleaned_ = false;
  const bool oversize = piece.samples.size() == 1 && !fits(piece.predicted, observation.memory);
  return {.action = Action::run,
          .batch = std::move(piece.samples),
          .predicted = piece.predicted,
          .oversize = oversize,
          .checkpointing = piece.checkpointing};
}

AfterOom OomGuardian::told(const BatchOutcome& outcome) {
  inner_->told(outcome);
  if (outcome.result == StepResult::oom) halve(running_);
  return AfterOom::ask;
}

void OomGuardian::halve(const Piece& piece) {
  const std::size_t all = piece.samples.size();
  if (all > 1 && piece.halved < options_.halvings) {
    const auto middle = piece.samples.begin() + static_cast<std::ptrdiff_t>((all + 1) / 2);
    Piece first = piece;
    first.samples.assign(piece.samples.begin(), middle);
    first.predicted = {};
    ++first.halved;
    Piece second = first;
    second.samples.assign(middle, piece.samples.end());
    pieces_.push_front(std::move(second));
    pieces_.push_front(std::move(first));
    ++splits_;
    if (options_.keep_limit) limit_ = std::min(limit_, static_cast<std::int64_t>((all + 1) / 2));
    return;
  }
  if (options_.checkpointing && !piece.checkpointing) {
    Piece again = piece;
    again.halved = 0;
    again.checkpointing = true;
    pieces_.push_front(std::move(again));
    return;
  }
  gave_up_ =
      "a batch of " + std::to_string(all) + (all == 1 ? " sample" : " samples") +
      " still ran out of memory " +
      (piece.halved > 0 ? "after " + std::to_string(piece.halved) + " halvings" : "and cannot be halved") +
      (piece.checkpointing ? ", with checkpointing" : "");
}

void OomGuardian::epoch_ends() {
  if (options_.reset_at_epoch_end) limit_ = kNoLimit;
  inner_->epoch_ends();
}

std::vector<double> OomGuardian::save() const {
  std::vector<double> state{limit_ == kNoLimit ? 0 : static_cast<double>(limit_),
                            static_cast<double>(pieces_.size())};
  for (const Piece& piece : pieces_) {
    state.insert(state.end(),
                 {static_cast<double>(piece.halved), piece.checkpointing ? 1.0 : 0.0,
                  static_cast<double>(piece.predicted.likely), static_cast<double>(piece.predicted.at_most),
                  static_cast<double>(piece.samples.size())});
    state.insert(state.end(), piece.samples.begin(), piece.samples.end());
  }
  const auto inner = inner_->save();
  state.insert(state.end(), inner.begin(), inner.end());
  return state;
}

void OomGuardian::restore(std::span<const double> state) {
  StateReader reader{state};
  const auto limit = reader.count();
  limit_ = limit == 0 ? kNoLimit : static_cast<std::int64_t>(limit);
  pieces_.assign(reader.size(), {});
  for (Piece& piece : pieces_) {
    piece.halved = static_cast<std::int64_t>(reader.count());
    piece.checkpointing = reader.count() != 0;
    piece.predicted.likely = reader.count();
    piece.predicted.at_most = reader.count();
    piece.samples = reader.samples();
  }
  inner_->restore(reader.rest());
}

std::vector<Statistic> OomGuardian::statistics() const {
  auto statistics = inner_->statistics();
  statistics.push_back({"splits", splits_});
  statistics.push_back({"clean_ups", clean_ups_});
  return statistics;
}

std::unique_ptr<Composer> guarded(std::unique_ptr<Composer> inner, const GuardianOptions& options) {
  if (!options.guardian) return inner;
  return std::make_unique<OomGuardian>(std::move(inner), options);
}

}  // namespace vramlab
