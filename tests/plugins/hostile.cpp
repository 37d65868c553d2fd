// Policies of a plugin that do what no policy may.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include <signal.h>
#include <unistd.h>

#include "core/error.hpp"
#include "plugins/plugin.hpp"

namespace {

using namespace vramlab;

/// A tuner that is one function.
class TunerOf final : public Tuner {
 public:
  using Decide = TunerAnswer (*)(const TunerQuestion&, std::vector<std::vector<char>>& state);
  explicit TunerOf(Decide what) : decide_(what) {}
  TunerAnswer decide(const TunerQuestion& question, const Observation&) override {
    return decide_(question, state_);
  }

 private:
  Decide decide_;
  std::vector<std::vector<char>> state_;
};

void add_tuner(PolicySet& policies, const std::string& name, TunerOf::Decide decide) {
  policies.tuners.add({.name = name,
                       .summary = "hostile",
                       .options = {},
                       .profiles = {},
                       .default_profile = {},
                       .make = [decide](const OptionMap&, const ParameterSpace&) {
                         return std::make_unique<TunerOf>(decide);
                       }});
}

TunerAnswer by(std::int64_t change, std::size_t parameters) {
  TunerAnswer answer;
  answer.delta.assign(parameters, change);
  answer.reason = "no good one";
  return answer;
}

/// A tuner that changes nothing, and fails in what it keeps.
class KeeperOf final : public Tuner {
 public:
  explicit KeeperOf(std::string fault) : fault_(std::move(fault)) {}
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return {}; }
  [[nodiscard]] std::string save() const override {
    if (fault_ == "save-throws") throw std::runtime_error("no words");
    if (fault_ == "save-refuses") throw InputError("", "not now");
    return std::string(fault_ == "save-too-long" ? (std::size_t{1} << 26) + 1 : 1, 'x');
  }
  void load(const std::string&) override {
    if (fault_ == "load-throws") throw std::runtime_error("cannot read");
    if (fault_ == "load-refuses") throw InputError("", "not mine");
    if (fault_ == "load-without-words") throw InputError(std::vector<Problem>{});
  }

 private:
  std::string fault_;
};

void add_keepers(PolicySet& policies) {
  for (const char* fault : {"save-throws", "save-refuses", "save-too-long", "load-throws", "load-refuses",
                            "load-without-words"}) {
    policies.tuners.add({.name = fault,
                         .summary = "hostile",
                         .options = {},
                         .profiles = {},
                         .default_profile = {},
                         .make = [fault](const OptionMap&, const ParameterSpace&) {
                           return std::make_unique<KeeperOf>(fault);
                         }});
  }
}

void add_tuners(PolicySet& policies) {
  add_keepers(policies);
  policies.tuners.add({.name = "throwing-constructor",
                       .summary = "hostile",
                       .options = {},
                       .profiles = {},
                       .default_profile = {},
                       .make = [](const OptionMap&, const ParameterSpace&) -> std::unique_ptr<Tuner> {
                         throw std::runtime_error("no room for me");
                       }});
  policies.tuners.add(
      {.name = "exiting-constructor",
       .summary = "hostile",
       .options = {},
       .profiles = {},
       .default_profile = {},
       .make = [](const OptionMap&, const ParameterSpace&) -> std::unique_ptr<Tuner> { std::exit(7); }});
  policies.tuners.add(
      {.name = "null",
       .summary = "hostile",
       .options = {},
       .profiles = {},
       .default_profile = {},
       .make = [](const OptionMap&, const ParameterSpace&) -> std::unique_ptr<Tuner> { return nullptr; }});
  add_tuner(policies, "throws", [](const TunerQuestion&, auto& state) -> TunerAnswer {
    state.emplace_back();
    if (state.size() == 3) throw std::runtime_error("divided by zero");
    return {};
  });
  add_tuner(policies, "throws-input", [](const TunerQuestion&, auto&) -> TunerAnswer {
    throw InputError("/workload", "is not to my liking");
  });
  add_tuner(policies, "throws-number", [](const TunerQuestion&, auto&) -> TunerAnswer { throw 7; });
  add_tuner(policies, "nan", [](const TunerQuestion& question, auto&) {
    const volatile double nothing = std::numeric_limits<double>::quiet_NaN();
    return by(static_cast<std::int64_t>(nothing), question.point.size());
  });
  add_tuner(policies, "wrong-size",
            [](const TunerQuestion& question, auto&) { return by(1, question.point.size() + 1); });
  add_tuner(policies, "out-of-bounds",
            [](const TunerQuestion& question, auto&) { return by(1'000'000'000, question.point.size()); });
  add_tuner(policies, "grows", [](const TunerQuestion&, auto& state) {
    state.emplace_back().reserve(std::size_t{64} << 20);  // not touched: it takes no real memory
    return TunerAnswer{};
  });
  add_tuner(policies, "asks-for-all-memory", [](const TunerQuestion&, auto& state) {
    state.emplace_back(std::size_t{1} << 60);
    return TunerAnswer{};
  });
  add_tuner(policies, "talks", [](const TunerQuestion&, auto&) {
    TunerAnswer answer;
    answer.reason.assign(100'000, 'x');
    return answer;
  });
  add_tuner(policies, "exits", [](const TunerQuestion&, auto&) -> TunerAnswer { std::exit(0); });
  add_tuner(policies, "aborts", [](const TunerQuestion&, auto&) -> TunerAnswer { std::abort(); });
  add_tuner(policies, "crashes", [](const TunerQuestion&, auto&) {
    ::signal(SIGSEGV, SIG_DFL);
    ::raise(SIGSEGV);
    return TunerAnswer{};
  });
  add_tuner(policies, "crashes-late", [](const TunerQuestion&, auto& state) {
    state.emplace_back();
    if (state.size() == 3) ::raise(SIGKILL);
    return TunerAnswer{};
  });
  add_tuner(policies, "never-answers", [](const TunerQuestion&, auto&) -> TunerAnswer {
    for (;;) ::pause();
  });
  add_tuner(policies, "ends-without-words", [](const TunerQuestion&, auto&) {
    TunerAnswer answer;
    answer.end_run = true;
    return answer;
  });
  add_tuner(policies, "speaks-latin-1", [](const TunerQuestion&, auto&) {
    TunerAnswer answer;
    answer.reason =
        "gr\xF6\xDF"
        "er";
    return answer;
  });
  add_tuner(policies, "logs-latin-1", [](const TunerQuestion&, auto&) {
    TunerAnswer answer;
    answer.log = {"fine: \xC3\xB6", "cut: \xC3"};
    return answer;
  });
  add_tuner(policies, "logs", [](const TunerQuestion&, auto&) {
    TunerAnswer answer;
    answer.log.assign(5000, "line");
    return answer;
  });
}

class SearcherOf final : public Searcher {
 public:
  SearcherOf(SearcherAnswer answer, ProbeDepth depth) : answer_(std::move(answer)), depth_(depth) {}
  SearcherAnswer decide(const SearcherQuestion&, const Observation&) override {
    if (answer_.reason == "throw") throw std::runtime_error("lost the way");
    if (answer_.reason == "abort") std::abort();
    return answer_;
  }
  [[nodiscard]] ProbeDepth depth() const override { return depth_; }

 private:
  SearcherAnswer answer_;
  ProbeDepth depth_;
};

void add_searcher(PolicySet& policies, const std::string& name, const SearcherAnswer& answer,
                  const ProbeDepth& depth = {}) {
  policies.searchers.add(
      {.name = name,
       .summary = "hostile",
       .options = {},
       .profiles = {},
       .default_profile = {},
       .make = [answer, depth](const OptionMap&) { return std::make_unique<SearcherOf>(answer, depth); }});
}

void add_searchers(PolicySet& policies) {
  using Action = SearcherAnswer::Action;
  add_searcher(policies, "search-throws", {.action = Action::probe, .batch = 1, .reason = "throw"});
  add_searcher(policies, "search-aborts", {.action = Action::probe, .batch = 1, .reason = "abort"});
  add_searcher(policies, "search-nan",
               {.action = Action::found, .batch = std::numeric_limits<std::int64_t>::min(), .reason = ""});
  add_searcher(policies, "search-no-action", {.action = static_cast<Action>(99), .batch = 1, .reason = ""});
  add_searcher(policies, "search-for-ever", {.action = Action::probe, .batch = 1, .reason = ""});
  add_searcher(policies, "search-no-depth", {.action = Action::probe, .batch = 1, .reason = ""},
               {.steps = -1, .all_phases = true});
}

class ComposerOf final : public Composer {
 public:
  explicit ComposerOf(std::string fault) : fault_(std::move(fault)) {}
  ComposerAnswer decide(const ComposerQuestion& question, const Observation&) override {
    ComposerAnswer answer;
    const auto waiting = question.candidates.look(1);
    answer.batch.assign(waiting.begin(), waiting.end());
    if (fault_ == "all") {  // however much memory they take
      const auto all = question.candidates.look(static_cast<std::size_t>(question.most));
      answer.batch.assign(all.begin(), all.end());
    }
    if (fault_ == "throw") throw std::runtime_error("lost count");
    if (fault_ == "nothing") answer.batch.clear();
    if (fault_ == "unknown") answer.batch = {4'000'000'000u};
    if (fault_ == "twice") answer.batch.push_back(answer.batch.front());
    if (fault_ == "clean-up") answer.action = ComposerAnswer::Action::clean_up;
    if (fault_ == "prediction") answer.predicted = {.likely = 2, .at_most = 1};
    return answer;
  }
  AfterOom told(const BatchOutcome&) override {
    if (fault_ == "told") throw std::runtime_error("would not hear");
    if (fault_ == "exit") std::exit(5);
    return AfterOom::ask;
  }
  [[nodiscard]] AccumulationRule accumulation() const override {
    if (fault_ == "rule") return {.kind = AccumulationRule::Kind::adaptive, .batch_size = -4};
    return {};
  }
  [[nodiscard]] std::vector<double> save() const override {
    if (fault_ == "save") return {1, std::nan("")};
    if (fault_ == "long-save") return std::vector<double>((std::size_t{1} << 23) + 1);
    return {};
  }
  void restore(std::span<const double>) override {
    if (fault_ == "restore") throw std::runtime_error("cannot read");
    if (fault_ == "refuse") throw InputError("", "not mine");
  }

 private:
  std::string fault_;
};

void add_composers(PolicySet& policies) {
  for (const char* fault : {"all", "exit", "throw", "nothing", "unknown", "twice", "clean-up", "prediction",
                            "told", "rule", "save", "long-save", "restore", "refuse"}) {
    policies.composers.add({.name = std::string("compose-") + fault,
                            .summary = "hostile",
                            .options = {},
                            .profiles = {},
                            .default_profile = {},
                            .make = [fault](const OptionMap&, const std::vector<std::string>&) {
                              return std::make_unique<ComposerOf>(fault);
                            }});
  }
}

class AdmitterOf final : public Admitter {
 public:
  explicit AdmitterOf(std::string fault) : fault_(std::move(fault)) {}
  AdmitterAnswer decide(const AdmitterQuestion& question, const Observation&) override {
    AdmitterAnswer answer;
    if (question.event != QueueEvent::examine) return answer;
    if (fault_ == "throw") throw std::runtime_error("lost the list");
    answer.action = AdmitterAnswer::Action::start;
    answer.cards = {0};
    const auto& jobs = question.cluster.waiting.jobs(question.cluster.waiting.occupied().front());
    answer.job = jobs.begin()->job;
    if (fault_ == "job") answer.job = 4'000'000'000u;
    if (fault_ == "cards") answer.cards = {0, 77};
    if (fault_ == "no-card") answer.cards = {};
    if (fault_ == "promise") answer.need = ~Bytes{0};
    if (fault_ == "batch") answer.split.batch = 0;
    if (fault_ == "for-ever") answer.action = AdmitterAnswer::Action::to_back;
    return answer;
  }
  [[nodiscard]] QueueRules rules() const override {
    if (fault_ == "rules") return {.poll = SimTime{-1}};
    return {};
  }
  [[nodiscard]] std::optional<Bytes> available(const CardView& card) const override {
    if (fault_ == "available") throw std::runtime_error("cannot say");
    while (fault_ == "loop") ::pause();
    return card.total;
  }

 private:
  std::string fault_;
};

void add_admitters(PolicySet& policies) {
  for (const char* fault :
       {"throw", "job", "cards", "no-card", "promise", "batch", "for-ever", "rules", "available", "loop"}) {
    policies.admitters.add(
        {.name = std::string("admit-") + fault,
         .summary = "hostile",
         .options = {},
         .profiles = {},
         .default_profile = {},
         .make = [fault](const OptionMap&) { return std::make_unique<AdmitterOf>(fault); }});
  }
}

void add(PolicySet& policies) {
  add_tuners(policies);
  add_searchers(policies);
  add_composers(policies);
  add_admitters(policies);
}

}  // namespace

VRAMLAB_PLUGIN("hostile", "1.0", add)
