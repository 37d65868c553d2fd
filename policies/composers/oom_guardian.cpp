#include "policies/composers/oom_guardian.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include "policies/contract/saved_state.hpp"

namespace vramlab {
namespace {

using Action = ComposerAnswer::Action;

// Of a part of a batch; that memory is in proportion to samples is the best a guardian can know.
PredictedMemory part_of(const PredictedMemory& whole, std::size_t samples, std::size_t all) {
  return {whole.likely / all * samples, whole.at_most / all * samples};
}

class OomGuardian final : public Composer {
 public:
  OomGuardian(std::unique_ptr<Composer> inner, const GuardianOptions& options)
      : inner_(std::move(inner)), options_(options) {}

  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override {
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

  AfterOom told(const BatchOutcome& outcome) override {
    inner_->told(outcome);
    const auto ended = std::ranges::find_if(
        running_, [&](const Piece& piece) { return std::ranges::equal(piece.samples, outcome.batch); });
    if (ended == running_.end()) return AfterOom::ask;
    Piece piece = std::move(*ended);
    running_.erase(ended);
    if (outcome.result == StepResult::oom) halve(std::move(piece));
    return AfterOom::ask;
  }

  void epoch_ends() override {
    if (options_.reset_at_epoch_end) limit_ = kNoLimit;
    pieces_.clear();  // where a program leaves an epoch before its end
    running_.clear();
    inner_->epoch_ends();
  }

  [[nodiscard]] bool obeys_budget() const override { return inner_->obeys_budget(); }

  [[nodiscard]] AccumulationRule accumulation() const override { return inner_->accumulation(); }

  [[nodiscard]] std::vector<double> save() const override {
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

  void restore(std::span<const double> state) override {
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

  [[nodiscard]] std::vector<Statistic> statistics() const override {
    auto statistics = inner_->statistics();
    statistics.push_back({"splits", splits_});
    statistics.push_back({"clean_ups", clean_ups_});
    return statistics;
  }

 private:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  struct Piece {
    std::vector<SampleId> samples;
    PredictedMemory predicted;
    std::int64_t halved = 0;  ///< how often, since the batch or since checkpointing began
    bool checkpointing = false;
  };

  [[nodiscard]] bool fits(const PredictedMemory& predicted, const ComposerQuestion& question,
                          const MemoryView& memory) const {
    const double most = question.budget ? static_cast<double>(std::min(*question.budget, memory.total))
                                        : static_cast<double>(memory.total) * (1 - options_.safety_margin);
    return static_cast<double>(memory.allocated + predicted.at_most) <= most;
  }

  Piece next_piece() {
    Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }

  // Puts `piece` in front of all others in two: its first `count` samples, and the rest.
  void put_back_cut(const Piece& piece, std::size_t count) {
    const std::size_t all = piece.samples.size();
    const auto middle = piece.samples.begin() + static_cast<std::ptrdiff_t>(count);
    pieces_.push_front({{middle, piece.samples.end()},
                        part_of(piece.predicted, all - count, all),
                        piece.halved,
                        piece.checkpointing});
    pieces_.push_front({{piece.samples.begin(), middle},
                        part_of(piece.predicted, count, all),
                        piece.halved,
                        piece.checkpointing});
  }

  // A piece that already failed was cut for that reason; only a fresh one is looked at.
  ComposerAnswer serve(const ComposerQuestion& question, const Observation& observation) {
    Piece piece = next_piece();
    const auto most = static_cast<std::size_t>(std::min(question.most, limit_));
    const bool fresh = piece.halved == 0 && !piece.checkpointing;
    if (fresh && !fits(piece.predicted, question, observation.memory)) {
      if (!std::exchange(cleaned_, true)) {
        ++clean_ups_;
        pieces_.push_front(std::move(piece));
        return {.action = Action::clean_up, .reason = "predicted over the memory that may be used"};
      }
      if (piece.samples.size() > 1) {
        put_back_cut(piece, (piece.samples.size() + 1) / 2);
        ++splits_;
        return serve(question, observation);
      }
    }
    if (piece.samples.size() > most) {
      put_back_cut(piece, most);
      piece = next_piece();
    }
    running_.push_back(piece);
    cleaned_ = false;
    const bool oversize = piece.samples.size() == 1 && !fits(piece.predicted, question, observation.memory);
    return {.action = Action::run,
            .batch = std::move(piece.samples),
            .predicted = piece.predicted,
            .oversize = oversize,
            .checkpointing = piece.checkpointing};
  }

  // After an OOM of `piece`; the halves have no prediction, which was wrong.
  void halve(Piece piece) {
    const std::size_t all = piece.samples.size();
    if (all > 1 && piece.halved < options_.halvings) {
      piece.predicted = {};
      ++piece.halved;
      put_back_cut(piece, (all + 1) / 2);
      ++splits_;
      if (options_.keep_limit) limit_ = std::min(limit_, static_cast<std::int64_t>((all + 1) / 2));
      return;
    }
    if (options_.checkpointing && !piece.checkpointing) {
      piece.halved = 0;
      piece.checkpointing = true;
      pieces_.push_front(std::move(piece));
      return;
    }
    gave_up_ =
        "a batch of " + std::to_string(all) + (all == 1 ? " sample" : " samples") +
        " still ran out of memory " +
        (piece.halved > 0 ? "after " + std::to_string(piece.halved) + " halvings" : "and cannot be halved") +
        (piece.checkpointing ? ", with checkpointing" : "");
  }

  std::unique_ptr<Composer> inner_;
  GuardianOptions options_;
  std::deque<Piece> pieces_;       ///< to be run before anything else
  std::deque<Piece> running_;      ///< handed out and not told; several where a loader fetches ahead
  bool cleaned_ = false;           ///< for the piece in front
  std::int64_t limit_ = kNoLimit;  ///< samples of a batch
  std::string gave_up_;
  double splits_ = 0;
  double clean_ups_ = 0;
};

}  // namespace

std::vector<Row<GuardianOptions>> guardian_rows() {
  using O = GuardianOptions;
  return {
      {"guardian", &O::guardian, "", 0, 0, "look at each batch before it runs, and split one that fails"},
      {"safety_margin", &O::safety_margin, "of the memory", 0, 0.9,
       "kept free: allocated + predicted must not exceed the rest"},
      {"halvings", &O::halvings, "", 0, 20, "so often a failing batch is halved before the run ends"},
      {"keep_limit", &O::keep_limit, "", 0, 0, "after an OOM no batch is larger than the half of that one"},
      {"reset_at_epoch_end", &O::reset_at_epoch_end, "", 0, 0, "that limit ends with the epoch"},
      {"checkpointing", &O::checkpointing, "", 0, 0,
       "a piece that still fails is run with activation checkpointing, where the workload has it"},
  };
}

std::unique_ptr<Composer> guarded(std::unique_ptr<Composer> inner, const GuardianOptions& options) {
  if (!options.guardian) return inner;
  return std::make_unique<OomGuardian>(std::move(inner), options);
}

}  // namespace vramlab
