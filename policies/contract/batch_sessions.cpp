#include "policies/contract/batch_sessions.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace vramlab {

ComposerSession::ComposerSession(Composer& composer, const EpochData& data)
    : composer_(composer),
      data_(data),
      accumulation_(composer.accumulation(), data.target_batch),
      candidates_(data.samples.size(), data.seed, 0, data.shuffle) {}

void ComposerSession::begin_epoch(std::int64_t epoch) {
  candidates_ = Candidates(data_.samples.size(), data_.seed, epoch, data_.shuffle);
}

std::int64_t ComposerSession::end_epoch() {
  const std::int64_t effective = accumulation_.samples();
  accumulation_.close();
  composer_.epoch_ends();
  return effective;
}

ComposerAnswer ComposerSession::next(const Observation& observation) {
  if (running_.size() >= kMostBatchesAtOnce) {
    throw InputError("", std::to_string(running_.size()) +
                             " batches were handed out and not told. Tell how each of them ended.");
  }
  if (data_.target_batch > 0 && !running_.empty()) {
    throw InputError(
        "",
        "the last batch was not told, and with target_batch the next one depends on it. Fetch no "
        "batch ahead (num_workers=0), and tell how each of them ended.");
  }
  const ComposerQuestion question{.event = cleaned_up_ ? ComposerEvent::cleaned_up : ComposerEvent::next,
                                  .samples = data_.samples,
                                  .candidates = candidates_,
                                  .most = room(),
                                  .packs = data_.packs,
                                  .accumulates = accumulates(),
                                  .budget = limits_.budget};
  ComposerAnswer answer = composer_.decide(question, observation);
  if (answer.action == ComposerAnswer::Action::clean_up) {
    if (std::exchange(cleaned_up_, true)) throw PolicyFault("the composer asked twice for a clean-up");
    return answer;
  }
  cleaned_up_ = false;
  if (answer.action == ComposerAnswer::Action::run) hand_out(answer);
  return answer;
}

std::int64_t ComposerSession::room() const {
  return std::min(accumulation_.room(), limits_.most_samples.value_or(accumulation_.room()));
}

// The policy is not trusted: only samples that wait, and no more than there is room for.
void ComposerSession::hand_out(const ComposerAnswer& answer) {
  const std::int64_t room = this->room();
  if (answer.batch.empty() || static_cast<std::int64_t>(answer.batch.size()) > room) {
    throw PolicyFault("the composer answered a batch of " + std::to_string(answer.batch.size()) +
                      " samples where there was room for " + std::to_string(room));
  }
  try {
    candidates_.take(answer.batch);
  } catch (const InternalError& error) {
    throw PolicyFault(error.what());
  }
  Running running{answer.batch, {.packs = data_.packs, .accumulates = accumulates()}};
  for (const SampleId id : answer.batch) running.shape.add(data_.samples[id]);
  running_.push_back(std::move(running));
}

BatchConsequence ComposerSession::told(std::span<const SampleId> batch, const BatchResult& result) {
  const auto found = std::ranges::find_if(
      running_, [&](const Running& one) { return std::ranges::equal(one.batch, batch); });
  if (found == running_.end()) {
    throw InputError("", "this batch was not handed out, or its end was told before.");
  }
  const Running ended = std::move(*found);
  running_.erase(found);
  const AfterOom next = composer_.told({.batch = ended.batch,
                                        .shape = ended.shape,
                                        .result = result.result,
                                        .rise = result.rise,
                                        .typical = result.typical});
  failed_in_a_row_ = result.result == StepResult::oom ? failed_in_a_row_ + 1 : 0;
  BatchConsequence consequence;
  if (result.result == StepResult::ok) {
    consequence.effective = accumulation_.samples() + ended.shape.samples;
    consequence.steps = accumulation_.add(ended.shape.samples, result.usage);
    if (!consequence.steps) consequence.effective = 0;
  } else if (result.result == StepResult::oom && next == AfterOom::ask) {
    candidates_.put_back(ended.batch);
  } else {
    consequence.skipped = ended.shape.samples;
  }
  return consequence;
}

ComposerState ComposerSession::save() const {
  ComposerState state{.position = candidates_.position(),
                      .effective = accumulation_.samples(),
                      .micro_batches = accumulation_.done(),
                      .micro_steps = accumulation_.micro_steps(),
                      .failed_in_a_row = failed_in_a_row_,
                      .composer = composer_.save()};
  std::vector<SampleId> unfinished;
  for (const Running& one : running_) unfinished.insert(unfinished.end(), one.batch.begin(), one.batch.end());
  auto& waiting = state.position.waiting;
  waiting.insert(waiting.begin(), unfinished.begin(), unfinished.end());
  return state;
}

void ComposerSession::restore_books(const ComposerState& state) {
  candidates_ = Candidates(data_.samples.size(), state.position, data_.shuffle);
  accumulation_.restore(state.effective, state.micro_batches, state.micro_steps);
  failed_in_a_row_ = state.failed_in_a_row;
  running_.clear();
  cleaned_up_ = false;
}

SearchSession::SearchSession(Searcher& policy, std::int64_t low, std::int64_t high)
    : policy_(policy), low_(low), high_(high) {
  if (low >= 1 && low <= high) return;
  throw InputError("", "a search from " + std::to_string(low) + " to " + std::to_string(high) +
                           " samples has no size to try. The lowest is at least 1, the highest no less.");
}

const SearcherAnswer& SearchSession::next(const Observation& observation) {
  if (asked_) {
    throw InputError("",
                     "the probe of " + std::to_string(answer_.batch) + " was not told. Tell how it ended.");
  }
  const bool over = probes_ > 0 && answer_.action != SearcherAnswer::Action::probe;
  if (over) return answer_;
  answer_ = policy_.decide({low_, high_, last_ ? &*last_ : nullptr}, observation);
  answer_.batch = std::min(answer_.batch, high_);
  if (answer_.action != SearcherAnswer::Action::probe) return answer_;
  if (probes_ == kMostProbes) {
    answer_ = {.action = SearcherAnswer::Action::give_up,
               .reason = "no end after " + std::to_string(kMostProbes) + " probes"};
    return answer_;
  }
  answer_.batch = std::max(answer_.batch, low_);
  asked_ = true;
  return answer_;
}

void SearchSession::told(Probe probe) {
  if (!asked_ || probe.batch != answer_.batch) {
    throw InputError("", "a probe of " + std::to_string(probe.batch) + " was told, and " +
                             (asked_ ? "one of " + std::to_string(answer_.batch) : std::string{"none"}) +
                             " was asked for.");
  }
  last_ = std::move(probe);
  ++probes_;
  asked_ = false;
}

}  // namespace vramlab
