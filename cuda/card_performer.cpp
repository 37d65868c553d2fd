#include "cuda/card_performer.hpp"

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "cuda/card.hpp"

namespace vramlab {
namespace {

constexpr Bytes kWholePage = 2_MiB;  // R10.1

SimTime machine_time() {
  return std::chrono::duration_cast<SimTime>(std::chrono::steady_clock::now().time_since_epoch());
}

// The card is opened before anything else of a performer is made on it.
std::shared_ptr<SharedCard> opened(std::shared_ptr<SharedCard> card) {
  card->info();
  return card;
}

}  // namespace

SharedCard::~SharedCard() {
  if (info_) VRAMLAB_CUDA_NOTHROW(cudaSetDevice(device_));  // what it holds goes back there
}

const CardInfo& SharedCard::info() {
  if (info_) {
    use_card(device_);
  } else {
    info_ = open_card(device_);
  }
  return *info_;
}

// In pages: what lies beside whole ones on the real card must not count as one more or one less.
void SharedCard::leave_free(Bytes bytes, Bytes needed) {
  info();
  const Bytes all = ballast_.held() / kWholePage + card_free() / kWholePage;
  ballast_.hold((all - std::min(all, bytes / kWholePage)) * kWholePage);
  const Bytes free = card_free();
  if (free / kWholePage >= needed / kWholePage) return;
  throw InputError("", "the scenario's card has " + format_bytes(bytes) + " free beside the context, " +
                           info().name + " has " + format_bytes(free) +
                           " now. Free memory of it (nvidia-smi shows who holds it), set \"limit\", or "
                           "describe this card with `vramlab validate-device --profile FILE`.");
}

Bytes SharedCard::hold_for_others(Bytes bytes) {
  if (bytes == 0) {
    holder_.reset();
    return 0;
  }
  if (!holder_) {
    const Bytes context = info().context;
    const Bytes before = card_free();
    if (before < context) return 0;  // no room to start in; the next step tries again
    holder_ = std::make_unique<MemoryHolder>(device_);
    holder_context_ = before - std::min(before, card_free());
  }
  const Bytes target = bytes - std::min(bytes, holder_context_);
  const Bytes held = holder_->hold(target);
  return held >= target ? bytes : held + holder_context_;
}

CardPerformer::CardPerformer(const ProcessWork& work, const ProcessSetup& setup,
                             std::shared_ptr<SharedCard> card)
    : setup_(setup), card_(opened(std::move(card))), process_(setup.allocator) {
  card_->give_turn(nullptr);  // one that could not be made may have had it at this address
  take_turn();
  process_.allocator.set_listener(setup_.listener);
  require_built(process_.run(work.built, 0, {}));
  stats_ = process_.allocator.stats();
  built_ = process_.executor.state();
  process_.executor.keep_failed(setup_.keep_failed);
  if (work.model != nullptr) programs_.emplace(*work.model);
}

CardPerformer::~CardPerformer() {
  VRAMLAB_CUDA_NOTHROW(cudaSetDevice(card_->device()));
  if (card_->is_turn_of(this)) card_->give_turn(nullptr);
}

// What another performer holds of the real card must not show: neither too little is free nor too much.
void CardPerformer::take_turn() const {
  card_->info();
  if (!card_->give_turn(this)) return;
  const Bytes reserved = total_of(process_.allocator.stats().reserved_bytes);
  const Bytes whole = setup_.card_total - setup_.context_bytes;
  const Bytes wanted = whole - std::min(whole, reserved + others_);
  const Bytes limit = setup_.allocator.limit.value_or(whole);
  const Bytes needed = std::min(wanted, limit - std::min(limit, reserved));
  card_->leave_free(wanted + others_, 0);
  card_->hold_for_others(others_);
  card_->leave_free(wanted, needed);
}

StepOutcome CardPerformer::run(const Point& point, const StepAdditions& additions) {
  if (!programs_) throw InternalError("a process that is given its steps is asked for a point");
  const StepPrograms::Program& next = programs_->next(point);
  return run_program(next.program, next.shape, additions);
}

StepOutcome CardPerformer::run_program(const StepProgram& program, std::uint64_t shape,
                                       const StepAdditions& additions) {
  take_turn();
  if (others_ != others_wanted_) others_ = card_->hold_for_others(others_wanted_);
  return perform([&] {
    const SimTime begin = machine_time();
    const SimTime before = process_.timed.driver_time();
    const ExecutedStep done = process_.run(program, shape, additions);
    const SimTime called = process_.timed.driver_time() - before;
    if (done.result == StepResult::ok) compute(program.duration + called - (machine_time() - begin));
    return StepOutcome{.result = done.result, .duration = time_done(program, done) + called, .oom = done.oom};
  });
}

// Every step is counted from peaks of its own, then carried over to the counters that the policy resets.
template <class Work>
StepOutcome CardPerformer::perform(const Work& work) {
  const CountedStep step = count_step(process_.allocator, work);
  stats_.repeat(step.before, step.after);
  return step.outcome;
}

// Keeps the card busy.
void CardPerformer::compute(SimTime left) {
  if (left.count() <= 0) return;
  const double scaled = card_->time_scale() * static_cast<double>(left.count());
  const auto kernel = static_cast<std::uint64_t>(scaled);
  if (kernel == 0) return;
  VRAMLAB_CUDA(queue_compute(process_.memory.stream(kDefaultStream), kernel));
  VRAMLAB_CUDA(cudaStreamSynchronize(process_.memory.stream(kDefaultStream)));
}

template <class Work>
SimTime CardPerformer::empty_cache_after(const Work& work) {
  take_turn();
  return perform([&] {
           const SimTime before = process_.timed.driver_time();
           work();
           process_.used.empty_cache();
           return StepOutcome{.duration = process_.timed.driver_time() - before};
         })
      .duration;
}

SimTime CardPerformer::empty_cache() {
  return empty_cache_after([] {});
}

SimTime CardPerformer::forget_steps(bool held_stay) {
  if (programs_) programs_->forget();
  return empty_cache_after([&] {
    if (!held_stay) process_.executor.release_failed();
    process_.executor.release_since(built_);
  });
}

void CardPerformer::use_share(double share) {
  const Bytes whole = setup_.allocator.limit.value_or(setup_.card_total);
  process_.allocator.set_limit(share >= 1 ? setup_.allocator.limit
                                          : static_cast<Bytes>(share * static_cast<double>(whole)));
}

void CardPerformer::set_others(Bytes bytes) {
  take_turn();
  others_wanted_ = bytes;
  others_ = card_->hold_for_others(bytes);
}

Bytes CardPerformer::available() const {
  take_turn();
  const Bytes limit = setup_.allocator.limit.value_or(setup_.card_total);
  return std::min(card_free(), limit - std::min(limit, total_of(stats_.reserved_bytes)));
}

MemoryView CardPerformer::view() const {
  take_turn();
  return view_of(stats_, setup_.allocator.limit.value_or(setup_.card_total), card_free());
}

}  // namespace vramlab
