#include "cuda/card_performer.hpp"

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "cuda/card.hpp"

namespace vramlab {
namespace {

SimTime machine_time() {
  return std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

CardPerformer::CardPerformer(const WorkloadModel& model, const ProcessSetup& setup)
    : setup_(setup),
      card_(open_card()),
      allocator_(segments_, setup.allocator),
      used_(allocator_, memory_),
      executor_(used_),
      programs_(model) {
  memory_.stream(kDefaultStream);
  make_room_for_scenario();
  allocator_.set_listener(setup_.listener);
  require_built(executor_.run(model.build()));
  memory_.require_intact();
  stats_ = allocator_.stats();
}

void CardPerformer::make_room_for_scenario() {
  const Bytes wanted = setup_.card_total - setup_.context_bytes;
  const Bytes free = card_free();
  const Bytes needed = std::min(wanted, setup_.allocator.limit.value_or(wanted));
  if (free < needed) {
    throw InputError("", "the scenario's card has " + format_bytes(wanted) + " free beside the context, " +
                             card_.name + " has " + format_bytes(free) +
                             " now. Free memory of it (nvidia-smi shows who holds it), set \"limit\", or "
                             "describe this card with `vramlab validate-device --profile FILE`.");
  }
  if (free > wanted) ballast_.hold(free - wanted);
}

StepOutcome CardPerformer::run(const Point& point, const StepAdditions& additions) {
  if (additions.besides > 0 || additions.left > 0) {
    throw InternalError("a real card was asked for a step with additions");
  }
  if (others_ != others_wanted_) serve_others();
  const StepPrograms::Program& next = programs_.next(point);
  const CountedStep step = count_step(allocator_, [&] {
    const SimTime begin = machine_time();
    const ExecutedStep done = executor_.run(next.program, next.shape);
    memory_.require_intact();
    if (done.result == StepResult::ok) compute_until(begin + next.program.duration);
    return StepOutcome{.result = done.result, .duration = machine_time() - begin, .oom = done.oom};
  });
  stats_.repeat(step.before, step.after);
  return step.outcome;
}

void CardPerformer::compute_until(SimTime end) {
  const SimTime left = end - machine_time();
  if (left.count() <= 0) return;
  VRAMLAB_CUDA(queue_compute(memory_.stream(kDefaultStream), static_cast<std::uint64_t>(left.count())));
  VRAMLAB_CUDA(cudaStreamSynchronize(memory_.stream(kDefaultStream)));
}

SimTime CardPerformer::empty_cache() {
  const CountedStep step = count_step(allocator_, [&] {
    const SimTime begin = machine_time();
    used_.empty_cache();
    return StepOutcome{.duration = machine_time() - begin};
  });
  stats_.repeat(step.before, step.after);
  return step.outcome.duration;
}

void CardPerformer::set_others(Bytes bytes) {
  others_wanted_ = bytes;
  serve_others();
}

void CardPerformer::serve_others() {
  if (others_wanted_ == 0) {
    holder_.reset();
    others_ = 0;
    return;
  }
  if (!holder_) {
    const Bytes before = card_free();
    if (before < card_.context) return;  // no room to start in; the next step tries again
    holder_ = std::make_unique<MemoryHolder>();
    holder_context_ = before - std::min(before, card_free());
  }
  const Bytes target = others_wanted_ - std::min(others_wanted_, holder_context_);
  const Bytes held = holder_->hold(target);
  others_ = held >= target ? others_wanted_ : held + holder_context_;
}

MemoryView CardPerformer::view() const {
  return view_of(stats_, setup_.allocator.limit.value_or(setup_.card_total), card_free());
}

}  // namespace vramlab
