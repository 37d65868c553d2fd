#include "cuda/job_worker.hpp"

#include <algorithm>
#include <iostream>
#include <sstream>
#include <utility>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr const char* kJobRole = "the process of a job";
constexpr const char* kNoLimit = "-";
constexpr Bytes kOpeningRoom = 64_MiB;  // for what a process takes beside its context, until its first step

// The first request. A settings string stands at its end, and may be empty.
std::string allocator_request(const AllocatorOptions& options) {
  const AllocatorSettings& settings = options.settings;
  AllocatorSettings read;
  read.torch = settings.torch;
  if (settings.text.find('\n') != std::string::npos ||
      parse_allocator_settings(settings.text, read) != settings) {
    throw InternalError("a job's process cannot be told allocator settings that no string of theirs says");
  }
  return "allocator " + to_text(settings.torch) + " " +
         (options.limit ? std::to_string(*options.limit) : kNoLimit) + " " + settings.text + "\n";
}

AllocatorOptions read_allocator(std::istream& in) {
  std::string torch;
  std::string limit;
  std::string conf;
  in >> torch >> limit;
  in.get();  // the space before the settings
  std::getline(in, conf);
  if (!in) throw InternalError("a job's process was told no allocator");
  AllocatorOptions options;
  AllocatorSettings read;
  read.torch = parse_torch_version(torch);
  options.settings = parse_allocator_settings(conf, read);
  if (limit != kNoLimit) options.limit = std::stoull(limit);
  return options;
}

// A program has a head with its counts, a line for each operation, and one for the attempts of each kernel.
std::string step_request(const StepProgram& program, std::uint64_t shape) {
  std::string text = "step";
  const auto put = [&](std::uint64_t number) { text += ' ' + std::to_string(number); };
  for (const std::uint64_t number :
       {shape, std::uint64_t{program.persistent_slots}, std::uint64_t{program.slots},
        std::uint64_t{program.workspace_refusals}, std::uint64_t{program.ops.size()},
        std::uint64_t{program.attempts.size()}}) {
    put(number);
  }
  for (const MemoryOp& op : program.ops) {
    text += '\n';
    for (const std::uint64_t number :
         {std::uint64_t{static_cast<std::uint8_t>(op.kind)}, std::uint64_t{op.slot}, op.size,
          std::uint64_t{op.attempts}, std::uint64_t{op.stream}}) {
      put(number);
    }
  }
  for (const WorkspaceAttempts& attempts : program.attempts) {
    text += '\n';
    put(attempts.kernel);
    put(attempts.sizes.size());
    for (const Bytes size : attempts.sizes) put(size);
  }
  return text + '\n';
}

// Its duration is the parent's business.
StepProgram read_program(std::istream& in) {
  StepProgram program;
  std::size_t ops = 0;
  std::size_t attempts = 0;
  in >> program.persistent_slots >> program.slots >> program.workspace_refusals >> ops >> attempts;
  for (std::size_t i = 0; i < ops && in; ++i) {
    MemoryOp op;
    unsigned kind = 0;
    in >> kind >> op.slot >> op.size >> op.attempts >> op.stream;
    if (kind > static_cast<unsigned>(MemoryOpKind::workspace)) in.setstate(std::ios::failbit);
    op.kind = static_cast<MemoryOpKind>(kind);
    program.ops.push_back(op);
  }
  for (std::size_t i = 0; i < attempts && in; ++i) {
    WorkspaceAttempts one;
    std::size_t sizes = 0;
    in >> one.kernel >> sizes;
    for (Bytes size = 0; one.sizes.size() < sizes && in >> size;) one.sizes.push_back(size);
    program.attempts.push_back(std::move(one));
  }
  if (!in) throw InternalError("a job's process was sent a step that it cannot read");
  return program;
}

/// What a job's process says after each request: how the step went, if it was one, and what it has then.
struct JobAnswer {
  ExecutedStep step;
  SimTime driver_time{0};                  ///< so far
  MemoryView memory;                       ///< its total aside
  std::vector<std::int64_t> driver_calls;  ///< so far
};

void write_answer(std::ostream& out, const ExecutedStep& done, const JobStepper& stepper) {
  const MemoryStats& stats = stepper.stats();
  const MemoryView memory = view_of(stats, 0, stepper.free());
  const OutOfMemory oom = done.oom.value_or(OutOfMemory{});
  out << (done.result == StepResult::ok ? "ok" : "oom") << ' ' << done.ops_done << ' ' << oom.segment << ' '
      << oom.requested << ' ' << oom.allocated << ' ' << stepper.driver_time().count() << ' '
      << memory.allocated << ' ' << memory.peak_allocated << ' ' << memory.reserved << ' '
      << memory.peak_reserved << ' ' << *memory.device_free << ' ' << stats.num_device_alloc << ' '
      << stats.num_device_free << ' ' << stats.num_alloc_retries << ' ' << stats.num_ooms << std::endl;
}

JobAnswer read_answer(const std::string& text, const ChildProcess& process) {
  std::istringstream words{text};
  std::string result;
  JobAnswer answer{.driver_calls = std::vector<std::int64_t>(4)};
  OutOfMemory oom;
  std::int64_t driver_time = 0;
  Bytes free = 0;
  words >> result >> answer.step.ops_done >> oom.segment >> oom.requested >> oom.allocated >> driver_time >>
      answer.memory.allocated >> answer.memory.peak_allocated >> answer.memory.reserved >>
      answer.memory.peak_reserved >> free;
  for (std::int64_t& calls : answer.driver_calls) words >> calls;
  const bool whole = !words.fail() && (words >> std::ws).eof() && (result == "ok" || result == "oom");
  if (!whole) process.fail("answered \"" + text + "\", which does not say how its step went.");
  if (result == "oom") {
    answer.step.result = StepResult::oom;
    answer.step.oom = oom;
  }
  answer.driver_time = SimTime{driver_time};
  answer.memory.device_free = free;
  answer.memory.alloc_retries = static_cast<std::uint64_t>(answer.driver_calls[2]);
  answer.memory.allocator_ooms = static_cast<std::uint64_t>(answer.driver_calls[3]);
  return answer;
}

class CardJob final : public JobStepper {
 public:
  explicit CardJob(const AllocatorOptions& options) : process_(options) {}
  ExecutedStep run(const StepProgram& program, std::uint64_t shape) override {
    return process_.run(program, shape, {});
  }
  void empty_cache() override { process_.used.empty_cache(); }
  void reset_peak() override { process_.allocator.reset_peak_stats(); }
  [[nodiscard]] const MemoryStats& stats() const override { return process_.allocator.stats(); }
  [[nodiscard]] Bytes free() const override { return card_free(); }
  [[nodiscard]] SimTime driver_time() const override { return process_.modelled.driver_time(); }

 private:
  CardProcess process_;
};

}  // namespace

/// The queue's side of one job on the card.
class JobWorker final : public JobOnCard {
 public:
  JobWorker(CardOfJobs& card, const AllocatorOptions& options) : card_(card), options_(options) {}
  ~JobWorker() override {
    process_.reset();  // its memory is back when it has ended
    card_.taken_ -= held_.reserved;
  }

  // Refused by the scenario's books, where a context may take more or less than a real one.
  [[nodiscard]] bool open() override {
    if (process_) return true;
    if (card_.free() < card_.context_) return false;
    card_.card_->leave_free(card_.free() - card_.context_ + card_.card_->info().context + kOpeningRoom, 0);
    process_ = card_.start_job_();
    const std::string answer = process_->ask(allocator_request(options_));
    if (answer != "open") process_->fail("answered \"" + answer + "\" when it was to open the card.");
    hold({.allocated = 0, .reserved = card_.context_});
    return true;
  }

  Step run(const StepProgram& program, std::uint64_t key, std::uint64_t shape) override {
    SimTime driver_time{0};
    const JobAnswer answer = ask(step_request(program, shape), driver_time);
    const bool ok = answer.step.result == StepResult::ok;
    return {.ok = ok,
            .driver_time = driver_time,
            .done = time_done(program, answer.step),
            .oom = answer.step.oom,
            .refused = answer.step.oom ? answer.step.oom->segment : 0,
            .settled = ok && is_settled(key, answer.driver_calls)};
  }

  [[nodiscard]] Holding holding() const override { return held_; }

  // The process looks at the card, where as much is free as the books say.
  [[nodiscard]] MemoryView view() const override {
    MemoryView view = read_answer(request("look\n"), *process_).memory;
    view.total = options_.limit.value_or(card_.total_);
    return view;
  }

  SimTime empty_cache() override {
    SimTime driver_time{0};
    ask("empty\n", driver_time);
    return driver_time;
  }

  void reset_peak() override { read_answer(request("reset\n"), *process_); }

 private:
  [[nodiscard]] std::string request(const std::string& text) const {
    if (!process_) throw InternalError("a job works before it has opened the card");
    card_.card_->leave_free(card_.free(), card_.free());
    return process_->ask(text);
  }

  // What may take memory or give it back, and the driver's time for it.
  JobAnswer ask(const std::string& text, SimTime& driver_time) {
    JobAnswer answer = read_answer(request(text), *process_);
    hold({answer.memory.allocated, card_.context_ + answer.memory.reserved});
    driver_time = answer.driver_time - std::exchange(driver_time_, answer.driver_time);
    return answer;
  }

  void hold(const Holding& now) {
    card_.taken_ = card_.taken_ - held_.reserved + now.reserved;
    held_ = now;
    if (card_.taken_ + card_.others_ > card_.total_) {
      process_->fail("says that it holds " + format_bytes(now.reserved) + ", more than the card has.");
    }
  }

  // The assumption of Step::settled; equal states are not looked for.
  bool is_settled(std::uint64_t key, const std::vector<std::int64_t>& calls) {
    const bool same_step = std::exchange(last_key_, key) == key;
    const bool no_calls = std::exchange(calls_, calls) == calls;
    quiet_steps_ = same_step && no_calls ? quiet_steps_ + 1 : 0;
    return quiet_steps_ >= kSettledAfter;
  }

  CardOfJobs& card_;
  AllocatorOptions options_;
  std::unique_ptr<ChildProcess> process_;
  Holding held_{};
  SimTime driver_time_{0};  ///< of its calls so far
  std::uint64_t last_key_ = 0;
  std::vector<std::int64_t> calls_;
  int quiet_steps_ = 0;
};

CardOfJobs::CardOfJobs(Bytes total, Bytes context, std::shared_ptr<SharedCard> card, StartJob start_job)
    : total_(total), context_(context), card_(std::move(card)), start_job_(std::move(start_job)) {
  card_->info();
  card_->give_turn(nullptr);  // a performer that takes its turn later sets it up anew
  card_->hold_for_others(0);
  card_->leave_free(total_, total_);
}

void CardOfJobs::set_others(Bytes bytes) {
  const Bytes wanted = std::min(bytes, total_ - taken_);
  if (wanted == others_) return;
  // However little it is to hold, its context needs room; what that takes beyond the books comes back to the
  // jobs before their next step.
  card_->leave_free(total_ - taken_ + card_->info().context, 0);
  const Bytes held = card_->hold_for_others(wanted);
  if (held < wanted) {
    throw InputError("", "others are to hold " + format_bytes(wanted) + " of the card, and got " +
                             format_bytes(held) + ".");
  }
  others_ = wanted;
}

std::unique_ptr<JobOnCard> CardOfJobs::start(const AllocatorOptions& options) {
  return std::make_unique<JobWorker>(*this, options);
}

std::unique_ptr<ChildProcess> start_job_process(int device) {
  return std::make_unique<ChildProcess>(kOwnProgram, kJobVerb, kJobRole, device);
}

int serve_job(std::istream& in, std::ostream& out,
              const std::function<std::unique_ptr<JobStepper>(const AllocatorOptions&)>& make) {
  std::unique_ptr<JobStepper> stepper;
  for (std::string word; in >> word;) {
    if (word == "allocator" && !stepper) {
      stepper = make(read_allocator(in));
      out << "open" << std::endl;
    } else if (word == "step" && stepper) {
      std::uint64_t shape = 0;
      in >> shape;
      const ExecutedStep done = stepper->run(read_program(in), shape);
      write_answer(out, done, *stepper);
    } else if ((word == "empty" || word == "reset" || word == "look") && stepper) {
      if (word == "empty") stepper->empty_cache();
      if (word == "reset") stepper->reset_peak();
      write_answer(out, {}, *stepper);
    } else {
      throw InternalError("a job's process was sent \"" + word + "\"");
    }
  }
  return 0;
}

int run_job_worker(int device) {
  open_card(device);
  return serve_job(std::cin, std::cout,
                   [](const AllocatorOptions& options) { return std::make_unique<CardJob>(options); });
}

}  // namespace vramlab
