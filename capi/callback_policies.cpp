// Policies that another program answers for, through one C function (capi/vramlab.h).
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capi/callbacks.hpp"
#include "capi/description.hpp"
#include "plugins/guard.hpp"

struct vramlab_reply {
  std::string text;
};

extern "C" void vramlab_reply_set(vramlab_reply* reply, const char* text) {
  if (reply == nullptr || text == nullptr) return;
  vramlab::guarded([&] { reply->text = text; });
}

namespace vramlab {
namespace {

constexpr int kRefused = 2;  // what a call returns that refuses options or a state

}  // namespace

Instance::Instance(Callback callback, Json question) : callback_(std::move(callback)) {
  question["policy"] = callback_.policy;
  made_ = ask("make", std::move(question));
  number_ = static_cast<std::uint64_t>(whole_number(made_, "instance", "/make"));
}

Instance::~Instance() {
  const std::string question = R"({"do":"drop"})";
  vramlab_reply reply;
  callback_.call(callback_.context, number_, question.c_str(), &reply);
}

bool Instance::has(const char* method) const {
  return made_.contains("methods") && std::ranges::count(made_["methods"], Json(method)) > 0;
}

Json Instance::ask(const char* what, Json question) const {
  question["do"] = what;
  const std::string text = question.dump(-1, ' ', false, Json::error_handler_t::replace);
  vramlab_reply reply;
  const int failed = callback_.call(callback_.context, number_, text.c_str(), &reply);
  if (failed == kRefused) throw InputError("", reply.text);
  if (failed != 0) throw PolicyFault(reply.text);
  if (reply.text.empty()) return Json::object();
  return parse_object(reply.text.c_str(), std::string{"its answer to \""} + what + '"');
}

Json options_json(const OptionMap& options) {
  Json json = Json::object();
  for (const OptionEntry& option : options.entries())
    std::visit([&](const auto& value) { json[option.key] = value; }, option.value);
  return json;
}

std::vector<Statistic> statistics_of(const Instance& instance) {
  if (!instance.has("statistics")) return {};
  std::vector<Statistic> statistics;
  const Json answer = instance.ask("statistics", Json::object());  // the loop must not outlive it
  for (const auto& [name, value] : answer.items()) {
    if (!value.is_number()) throw PolicyFault("its statistic \"" + name + "\" is not a number");
    statistics.push_back({name, value.get<double>()});
  }
  return statistics;
}

namespace {

constexpr std::initializer_list<const char*> kResults{"ok", "oom", "error"};
constexpr std::initializer_list<const char*> kProbeOutcomes{"ok", "oom", "held", "failed"};
constexpr std::initializer_list<const char*> kSearches{"probe", "found", "none_fits", "give_up"};
constexpr std::initializer_list<const char*> kCompositions{"run", "clean_up", "give_up"};

// ---- What questions say

Json memory_json(const MemoryView& memory) {
  return {{"allocated", memory.allocated},
          {"peak_allocated", memory.peak_allocated},
          {"reserved", memory.reserved},
          {"peak_reserved", memory.peak_reserved},
          {"total", memory.total},
          {"alloc_retries", memory.alloc_retries},
          {"allocator_ooms", memory.allocator_ooms}};
}

Json observation_json(const Observation& observation) {
  Json cards = Json::array();
  for (const MemoryView& card : observation.cards) cards.push_back(memory_json(card));
  return {{"iteration", observation.iteration},
          {"time_ns", observation.time.count()},
          {"reading", observation.reading},
          {"after_phase", observation.after_phase},
          {"new_process", observation.new_process},
          {"memory", memory_json(observation.memory)},
          {"cards", std::move(cards)}};
}

Json named(const ParameterSpace& space, const Point& point) {
  Json json = Json::object();
  for (std::size_t i = 0; i < point.size(); ++i) json[space.parameters[i].name] = point[i];
  return json;
}

// ---- The families

class CallbackTuner final : public Tuner {
 public:
  CallbackTuner(const Callback& callback, const OptionMap& options, const ParameterSpace& space)
      : space_(space), instance_(callback, question_of(options, space)) {}

  TunerAnswer decide(const TunerQuestion& question, const Observation& observation) override {
    return answer_of(instance_.ask("decide", {{"point", named(space_, question.point)},
                                              {"ran", named(space_, question.ran_at())},
                                              {"result", word_for(question.result, kResults)},
                                              {"asked", question.asked},
                                              {"observation", observation_json(observation)}}));
  }

  TunerAnswer note_phase(const PhaseReport& phase, const Observation& observation) override {
    if (!instance_.has("phase")) return {};
    return answer_of(instance_.ask("phase", {{"name", phase.name},
                                             {"point", named(space_, phase.point)},
                                             {"ran", named(space_, phase.ran)},
                                             {"follow", named(space_, phase.follow)},
                                             {"begins", phase.begins},
                                             {"result", word_for(phase.result, kResults)},
                                             {"peak_allocated", phase.peak_allocated},
                                             {"asked", phase.asked},
                                             {"observation", observation_json(observation)}}));
  }

  [[nodiscard]] std::string save() const override {
    return instance_.has("save") ? text_of(instance_.ask("save", Json::object()), "state") : "";
  }

  void load(const std::string& text) override {
    if (!instance_.has("save")) return Tuner::load(text);
    instance_.ask("load", {{"state", text}});
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override { return statistics_of(instance_); }

 private:
  static Json question_of(const OptionMap& options, const ParameterSpace& space) {
    Json parameters = Json::object();
    for (const Parameter& one : space.parameters) parameters[one.name] = {one.low, one.high};
    return {{"options", options_json(options)}, {"parameters", std::move(parameters)}};
  }

  [[nodiscard]] TunerAnswer answer_of(const Json& json) const {
    TunerAnswer answer{.reset_peak = flag_or(json, "reset_peak", false),
                       .empty_cache = flag_or(json, "empty_cache", false),
                       .retry = flag_or(json, "retry", false),
                       .end_run = flag_or(json, "end_run", false),
                       .reason = text_of(json, "reason")};
    if (json.contains("change")) {
      answer.delta.resize(space_.size(), 0);
      for (const auto& [name, value] : json["change"].items()) {
        const auto place = space_.find(name);
        if (!place) throw PolicyFault("changed \"" + name + "\", which is no parameter here");
        answer.delta[*place] = whole_number(json["change"], name.c_str(), "/change");
      }
    }
    if (json.contains("log")) {
      for (const Json& line : json["log"]) answer.log.push_back(line.get<std::string>());
    }
    return answer;
  }

  ParameterSpace space_;
  Instance instance_;
};

class CallbackSearcher final : public Searcher {
 public:
  CallbackSearcher(const Callback& callback, const OptionMap& options)
      : instance_(callback, {{"options", options_json(options)}}) {}

  SearcherAnswer decide(const SearcherQuestion& question, const Observation& observation) override {
    const Json json = instance_.ask("decide", {{"low", question.low},
                                               {"high", question.high},
                                               {"last", probe_json(question.last)},
                                               {"observation", observation_json(observation)}});
    return {.action = value_of<SearcherAnswer::Action>(text_of(json, "action"), kSearches, "/action"),
            .batch = whole_number_or(json, "batch", 0),
            .extrapolated = flag_or(json, "extrapolated", false),
            .largest_good = whole_number_or(json, "largest_good", 0),
            .by_option = flag_or(json, "by_option", false),
            .reason = text_of(json, "reason")};
  }

  [[nodiscard]] ProbeDepth depth() const override {
    const Json json = instance_.made().value("depth", Json::object());
    const ProbeDepth usual;
    return {.steps = whole_number_or(json, "steps", usual.steps, "/depth"),
            .all_phases = flag_or(json, "all_phases", usual.all_phases),
            .varied_steps = whole_number_or(json, "varied_steps", usual.varied_steps, "/depth"),
            .varied_starts = whole_number_or(json, "varied_starts", usual.varied_starts, "/depth"),
            .share = json.value("share", usual.share)};
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override { return statistics_of(instance_); }

 private:
  static Json probe_json(const Probe* probe) {
    if (probe == nullptr) return nullptr;
    Json cards = Json::array();
    for (const ProbedCard& card : probe->cards) {
      cards.push_back({{"start", card.start},
                       {"free", card.free},
                       {"peak", card.peak},
                       {"peak_reserved", card.peak_reserved},
                       {"current", card.current},
                       {"total", card.total}});
    }
    return {{"batch", probe->batch},
            {"outcome", word_for(probe->outcome, kProbeOutcomes)},
            {"phase", probe->phase},
            {"error", probe->error},
            {"cards", std::move(cards)}};
  }

  Instance instance_;
};

class CallbackComposer final : public Composer {
 public:
  CallbackComposer(const Callback& callback, const OptionMap& options, const std::vector<std::string>& tasks)
      : instance_(callback, {{"options", options_json(options)}, {"tasks", tasks}}),
        window_(whole_number_or(instance_.made(), "window", 256)) {
    if (window_ < 1) throw PolicyFault("wants to see " + std::to_string(window_) + " waiting samples");
  }

  ComposerAnswer decide(const ComposerQuestion& question, const Observation& observation) override {
    const std::size_t left = question.candidates.left();
    Json asked = {{"waiting", question.candidates.look(static_cast<std::size_t>(window_))},
                  {"left", left},
                  {"most", question.most},
                  {"packs", question.packs},
                  {"accumulates", question.accumulates},
                  {"cleaned_up", question.event == ComposerEvent::cleaned_up},
                  {"observation", observation_json(observation)}};
    if (!std::exchange(knows_samples_, true)) {
      for (const Sample& one : question.samples)
        asked["samples"].push_back({one.task, one.images, one.length, one.tokens});
    }
    const Json json = instance_.ask("decide", std::move(asked));
    const Bytes likely = bytes_or(json, "likely", 0);
    return {.action = value_of<ComposerAnswer::Action>(text_of(json, "action"), kCompositions, "/action"),
            .batch = json.contains("batch") ? numbers_of<SampleId>(json, "batch") : std::vector<SampleId>{},
            .predicted = {.likely = likely, .at_most = bytes_or(json, "at_most", likely)},
            .oversize = flag_or(json, "oversize", false),
            .checkpointing = flag_or(json, "checkpointing", false),
            .reason = text_of(json, "reason")};
  }

  AfterOom told(const BatchOutcome& outcome) override {
    if (!instance_.has("told")) return AfterOom::ask;
    const Json json = instance_.ask("told", {{"batch", outcome.batch},
                                             {"result", word_for(outcome.result, kResults)},
                                             {"rise", outcome.rise},
                                             {"typical", outcome.typical}});
    return flag_or(json, "skip", false) ? AfterOom::skip : AfterOom::ask;
  }

  void epoch_ends() override {
    if (instance_.has("epoch_ends")) instance_.ask("epoch_ends", Json::object());
  }

  [[nodiscard]] AccumulationRule accumulation() const override {
    const AccumulationRule usual;
    const bool adaptive = flag_or(instance_.made(), "adaptive", false);
    return {.kind = adaptive ? AccumulationRule::Kind::adaptive : AccumulationRule::Kind::exact,
            .batch_size = whole_number_or(instance_.made(), "batch_size", usual.batch_size)};
  }

  [[nodiscard]] std::vector<double> save() const override {
    if (!instance_.has("save")) return {};
    return numbers_of<double>(instance_.ask("save", Json::object()), "state");
  }

  void restore(std::span<const double> state) override {
    if (instance_.has("save")) {
      instance_.ask("load", {{"state", state}});
    } else if (!state.empty()) {
      throw InputError("", "this composer saves nothing, so there is nothing it could load.");
    }
  }

  [[nodiscard]] std::vector<Statistic> statistics() const override { return statistics_of(instance_); }

 private:
  Instance instance_;
  std::int64_t window_;
  bool knows_samples_ = false;
};

// ---- Descriptions

Field option_of(const Json& json) {
  const Json value = json.value("default", Json{});
  Field field{.key = text_of(json, "name"), .help = text_of(json, "help")};
  if (field.key.empty()) throw InputError("/name", "is missing.");
  if (value.is_boolean()) {
    field.kind = FieldKind::boolean;
    field.default_value = value.get<bool>();
  } else if (value.is_number_integer()) {
    field.kind = FieldKind::integer;
    field.default_value = whole_number(json, "default", "");
  } else if (value.is_number()) {
    field.kind = FieldKind::number;
    field.default_value = value.get<double>();
  } else if (value.is_string()) {
    field.kind = json.contains("choices") ? FieldKind::choice : FieldKind::text;
    field.default_value = value.get<std::string>();
  } else {
    throw InputError("/default", "must be a number, true or false, or text in quotes.");
  }
  if (json.contains("choices")) field.choices = json["choices"].get<std::vector<std::string>>();
  // A number without bounds of its own has those that every double and every integer here is within.
  constexpr double kWidest = 9007199254740992;  // 2^53
  const bool number = field.kind == FieldKind::integer || field.kind == FieldKind::number;
  if (number) field.low = json.value("low", -kWidest);
  if (number) field.high = json.value("high", kWidest);
  if (field.low > field.high) throw InputError("/low", "is above /high.");
  return field;
}

std::vector<Field> options_of(const Json& json) {
  std::vector<Field> options;
  if (!json.contains("options")) return options;
  for (std::size_t i = 0; i < json["options"].size(); ++i) {
    try {
      options.push_back(option_of(json["options"][i]));
    } catch (const InputError& error) {
      const Problem& first = error.problems().front();
      throw InputError("/options/" + std::to_string(i) + first.where, first.what);
    }
  }
  return options;
}

template <class Made, class Entry>
Entry entry_of(const Json& json, Callback callback) {
  Entry entry{.name = callback.policy, .summary = text_of(json, "summary"), .options = options_of(json)};
  OptionMap defaults;  // the caller is told the value of every option
  for (const Field& option : entry.options) {
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_constructible_v<OptionValue, decltype(value)>)
            defaults.set(option.key, OptionValue{value});
        },
        *option.default_value);
  }
  entry.make = [callback = std::move(callback), defaults](const OptionMap& given, const auto&... setting) {
    return std::make_unique<Made>(callback, overlay(defaults, given), setting...);
  };
  return entry;
}

}  // namespace

std::shared_ptr<const PolicySet> with_callback_policy(const std::shared_ptr<const PolicySet>& known,
                                                      const Json& json, vramlab_policy_call call,
                                                      void* context) {
  if (call == nullptr) throw InputError("", "the function that answers is NULL.");
  const std::string name = text_of(json, "name");
  if (name.empty()) throw InputError("/name", "is missing: a policy has one.");
  const auto taken = taken_names(*known);
  if (std::ranges::find(taken, name) != taken.end()) {
    throw InputError("/name", "there is a policy \"" + name + "\" already. Choose another name.");
  }
  const std::string family = text_of(json, "family");
  const Callback callback{call, context, name};
  PolicySet added;
  if (family == "tuner") {
    added.tuners.add(entry_of<CallbackTuner, TunerEntry>(json, callback));
  } else if (family == "composer") {
    added.composers.add(entry_of<CallbackComposer, ComposerEntry>(json, callback));
  } else if (family == "searcher") {
    added.searchers.add(entry_of<CallbackSearcher, SearcherEntry>(json, callback));
  } else if (family == "admitter") {
    added.admitters.add(entry_of<CallbackAdmitter, AdmitterEntry>(json, callback));
  } else {
    throw InputError("/family",
                     "\"" + family + "\" is not known. Allowed: tuner, composer, searcher, admitter.");
  }
  auto all = std::make_shared<PolicySet>(*known);
  add_guarded(*all, added, nullptr);
  return all;
}

}  // namespace vramlab
