#include "lab/kinds/epoch/spec.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/kinds/epoch/data.hpp"
#include "lab/model/file.hpp"
#include "lab/scenario/cards.hpp"
#include "lab/scenario/faults.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "models/linear.hpp"
#include "models/recorded_model.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr double kMostTokens = 1e7;
constexpr double kOneMiB = 1048576;
constexpr double kMostSamples = 1e7;

struct TaskSection : TaskSort {
  double weight = 1;
};

struct DataSection {
  std::optional<std::vector<TaskSection>> tasks;
  std::int64_t samples = 0;  ///< 0 = not said
  Outliers outliers{.every = 0, .times = 100};
  std::optional<std::string> lengths;
  std::optional<std::string> list;
  std::optional<std::string> column;
  double positions_per_second = 0;  ///< 0 = lengths are positions
  std::int64_t most = 10'000'000;
  bool set_aside = false;
};

struct SampleSection {
  std::uint32_t images = 0;
  Bytes bytes = 0;
};

struct SizesSection : SampleSizes {
  std::vector<SampleSection> samples;
};

struct PhaseSection : EpochPhase {
  std::optional<std::string> model_file;
};

struct SeriesSection {
  std::string file;
  std::string origin;
};

/// From where to where a tuner may move one limit of batches.
template <class Value>
struct TunedRange {
  Value from{};
  Value to{};
  std::optional<Value> start;
};

/// The tuner of one of "policies".
struct BatchTunerSection {
  std::string use;
  std::optional<std::string> profile;
  std::optional<TunedRange<Bytes>> budget;
  std::optional<TunedRange<std::int64_t>> batch_size;
  const Json* json = nullptr;
};

/// One of "policies".
struct ComposerSection : PolicySection {
  std::optional<BatchTunerSection> tuner;
};

/// A file of kind `epoch`, as its keys are named.
struct EpochFile : EpochScenario, ScenarioSections, CardSections {
  std::vector<ComposerSection> composers;
  std::optional<std::string> model_file;
  std::optional<std::string> checkpointed_file;
  std::optional<SizesSection> sizes;
  DataSection data;
  std::vector<PhaseSection> phases;
  std::optional<SeriesSection> series;
  std::optional<Faults> faults;
};

const Record<TaskSection>& task_table() {
  using T = TaskSection;
  static const Record<T> table{
      {"name", &T::name, "", 0, 0, "what the model calls it", kRequired},
      {"share", &T::share, "", 1, 1e6, "how often, compared with the others"},
      {"images", &T::images, "", 0, 1000, "of each sample"},
      {"shortest", &T::shortest, "", 1, kMostTokens, "tokens of text, at least (needed without a `list`)"},
      {"longest", &T::longest, "", 1, kMostTokens,
       "tokens of text, at most; drawn evenly (needed without a `list`)"},
      {"weight", &T::weight, "", 0.001, 1000, "of its loss"},
  };
  return table;
}

const Record<DataSection>& data_table() {
  using D = DataSection;
  static const Record<D> table{
      {"tasks", list_of(&D::tasks, task_table()), "", 0, 0,
       "tasks to draw samples of, or those that a `list` names"},
      {"samples", &D::samples, "", 1, kMostSamples, "how many; with a file at most this many of its lines"},
      {"outliers_every", within(&D::outliers, &Outliers::every), "", 1, kMostSamples,
       "one sample in this many is far longer (default: none)"},
      {"outliers_times", within(&D::outliers, &Outliers::times), "", 1, 10000,
       "its text has this many times the tokens"},
      {"lengths", &D::lengths, "", 0, 0,
       "instead of tasks: a file of lengths, CSV or JSON lines (one object a line), looked up as models are"},
      {"list", &D::list, "", 0, 0,
       "instead of drawing: a file of samples, CSV or JSON lines, with task, images and length of each"},
      {"column", &D::column, "", 0, 0,
       "of such a file, or the key of its lines: the lengths (default: tokens of `lengths`, length of a "
       "`list`; duration with `positions_per_second`)"},
      {"positions_per_second", &D::positions_per_second, "", 0.001, 1e6,
       "lengths are seconds, and each has this many positions; a part of one counts as one (default: lengths "
       "are positions)"},
      {"most", &D::most, "", 1, kMostTokens, "longer ones are cut to this many tokens"},
      {"set_aside", &D::set_aside, "", 0, 0,
       "samples that the empty card does not hold even alone are set aside before the epoch, and counted"},
  };
  return table;
}

const Record<SampleSection>& sample_table() {
  using S = SampleSection;
  static const Record<S> table{
      {"images", &S::images, "", 0, 64, "how many", kRequired},
      {"bytes", &S::bytes, "", 0, kLargestCard, "and this much; more images than listed count as the last",
       kRequired},
  };
  return table;
}

const Record<SizesSection>& sizes_table() {
  using S = SizesSection;
  const auto seconds = [](double milliseconds) { return milliseconds / 1000; };
  const auto milliseconds = [](double seconds_) { return seconds_ * 1000; };
  const auto from_microseconds = [](double microseconds) { return microseconds / 1e6; };
  const auto microseconds = [](double seconds_) { return seconds_ * 1e6; };
  static const Record<S> table{
      {"resident", &S::resident, "", 0, kLargestCard, "weights"},
      {"samples", list_of(&S::samples, sample_table()), "", 0, 0, "what a sample takes, by its images"},
      {"per_token", &S::per_token, "", 0, 1073741824.0, "for each position, padding included"},
      {"floor_ms", converted(&SampleSizes::floor_seconds, seconds, milliseconds), "", 0, 1e6,
       "a step takes at least"},
      {"ms_per_sample", converted(&SampleSizes::seconds_per_sample, seconds, milliseconds), "", 0, 1e6,
       "or this long for each sample"},
      {"us_per_token", converted(&SampleSizes::seconds_per_position, from_microseconds, microseconds), "", 0,
       1e6, "and this long for each position, padding included"},
  };
  return table;
}

const Record<SeriesSection>& series_table() {
  using S = SeriesSection;
  static const Record<S> table{
      {"file", &S::file, "", 0, 0, "CSV with the columns task, loss, gradient_norm", kRequired},
      {"origin", as(FieldKind::choice, &S::origin, {"synthetic", "measured"}), "", 0, 0,
       "where its figures come from", kRequired},
  };
  return table;
}

const Record<PhaseSection>& phase_table() {
  using P = PhaseSection;
  static const Record<P> table{
      {"name", &P::name, "", 0, 0, "what it is called", kRequired},
      {"every", &P::every, "", 1, 1e9, "it runs after every so many batches", kRequired},
      {"samples", &P::samples, "", 1, kMostSamples, "how many of the data set, from the first on", kRequired},
      {"model", &P::model_file, "", 0, 0, "a recorded model of its own, in a process of its own"},
  };
  return table;
}

template <class Value>
const Record<TunedRange<Value>>& tuned_range_table(double low, double high) {
  using R = TunedRange<Value>;
  static const Record<R> table{
      {"from", &R::from, "", low, high, "the least", kRequired},
      {"to", &R::to, "", low, high, "the most", kRequired},
      {"start", &R::start, "", low, high, "of the first batch (default: `from`)"},
  };
  return table;
}

const Record<BatchTunerSection>& batch_tuner_table() {
  using T = BatchTunerSection;
  static const Record<T> table{
      {{"use", &T::use, "", 0, 0, "a tuner of `vramlab policies` that moves one parameter", kRequired},
       {"profile", &T::profile, "", 0, 0, "a named set of its options"},
       {"budget", object_of(&T::budget, tuned_range_table<Bytes>(kOneMiB, kLargestCard)), "", 0, 0,
        "it moves the bytes that may be allocated at a batch's peak, in MiB, in place of the composer's own "
        "budget and margin (or give `batch_size`)"},
       {"batch_size", object_of(&T::batch_size, tuned_range_table<std::int64_t>(1, 1e6)), "", 0, 0,
        "it moves the samples that a batch may have"}},
      raw(FieldKind::object, &T::json)};
  return table;
}

const Record<ComposerSection>& composer_table() {
  using C = ComposerSection;
  static const Record<C> table{
      joined<C>(policy_rows(),
                std::vector<Row<C>>{{"tuner", object_of(&C::tuner, batch_tuner_table()), "", 0, 0,
                                     "a tuner that moves a limit of the batches between them; further keys "
                                     "are its options (default: none)"}}),
      raw(FieldKind::object, &PolicySection::json)};
  return table;
}

const Record<EpochFile>& workload_table() {
  using F = EpochFile;
  const auto in_setup = [](Member<EpochSetup> member) { return within(&F::setup, std::move(member)); };
  const auto in_loss = [&](Member<LossRules> member) {
    return in_setup(within(&EpochSetup::loss, std::move(member)));
  };
  static const Record<F> table{
      {"model", &F::model_file, "", 0, 0, "a recorded model's file (or give `sizes`)"},
      {"checkpointed", &F::checkpointed_file, "", 0, 0,
       "the same workload recorded with activation checkpointing"},
      {"sizes", object_of(&F::sizes, sizes_table()), "", 0, 0,
       "instead of a model: a table of what samples take"},
      {"data", object_of(&F::data, data_table()), "", 0, 0, "the data set", kRequired},
      {"target_batch", in_setup(&EpochSetup::target_batch), "", 1, 1e6,
       "samples of an effective batch, in as many batches as it takes (default: each batch is one)"},
      {"epochs", in_setup(&EpochSetup::epochs), "", 1, 1e4, "times through the data"},
      {"restart_every", &F::restart_every, "", 1, 1e9,
       "batches after which the process ends and a new one goes on from the saved state (default: never)"},
      {"max_steps", in_setup(&EpochSetup::max_steps), "", 1, 1e9,
       "batches after which a run ends, whatever is left (default: no limit)"},
      {"phases", list_of(&F::phases, phase_table()), "", 0, 0,
       "further steps over samples of their own, such as validation"},
      {"shuffle", in_setup(&EpochSetup::shuffle), "", 0, 0, "each epoch in a new order"},
      {"collator", in_setup(one_of<&EpochSetup::packs>({"pad", "pack"})), "", 0, 0,
       "rows are padded to the longest, or hold several samples (with `sizes`: end to end, without padding)"},
      {"series", object_of(&F::series, series_table()), "", 0, 0,
       "losses and gradient norms, which no simulation knows"},
      {"balance_losses", in_loss(&LossRules::balance), "", 0, 0, "weigh tasks by their gradient norms"},
      {"balance_alpha", in_loss(&LossRules::alpha), "", 0, 10, "its exponent"},
      {"scale_gradient", in_loss(&LossRules::scale_gradient), "", 0, 0,
       "the original's gradient times target over effective batch"},
      {"scale_learning_rate", in_loss(&LossRules::scale_learning_rate), "", 0, 0,
       "the original's learning rate times sqrt(effective batch over target)"},
  };
  return table;
}

const Record<EpochFile>& file_table() {
  static const Record<EpochFile> table{joined<EpochFile>(
      head_rows("epoch"), seed_rows(), device_rows(), allocator_rows(),
      std::vector<Row<EpochFile>>{
          {"workload", group_of(workload_table()), "", 0, 0, "what is trained on what", kRequired},
          {"faults", object_of(&EpochFile::faults, faults_table(FaultsOf::epoch)), "", 0, 0, kFaultsHelp}},
      plugins_rows(),
      std::vector<Row<EpochFile>>{
          {"policies", list_of(&EpochFile::composers, composer_table()), "", 0, 0, kPoliciesHelp, kRequired}},
      expectations_rows(metric_expectation_table()), sweep_rows())};
  return table;
}

/// Turns a document whose fields passed their checks into a scenario.
class EpochReader {
 public:
  explicit EpochReader(const ScenarioDocument& document) : path_(document.file), problems_(path_) {
    read_file(document, file_table(), file_);
    file_.known = with_plugins(file_.plugins, path_, document.policies, problems_);
  }

  EpochScenario read() {
    file_.setup.seed = file_.seed;
    ScenarioCards cards = read_cards(file_, path_, problems_);
    file_.gpu = std::move(cards.gpu);
    file_.context_assumed = cards.context_assumed;
    file_.notes.insert(file_.notes.end(), cards.notes.begin(), cards.notes.end());
    file_.setup.process = cards.cards.front();
    file_.setup.more_cards.assign(cards.cards.begin() + 1, cards.cards.end());
    file_.setup.others = std::move(cards.others);
    file_.setup.faults = read_faults(file_.faults, file_.seed, problems_);
    problems_.guarded("/workload", [&] { read_workload(); });
    PolicyList list = read_policies();
    if (!file_.tuners.empty()) name_oracle(list);
    require_metric_expectations(file_.expectations, list.labels, list.complete,
                                names_of(epoch_metric_table()), problems_);
    problems_.throw_if_any();
    return std::move(file_);
  }

 private:
  // Where a tuner is there is an oracle, which expectations may name.
  void name_oracle(PolicyList& list) {
    for (const PolicyEntry& entry : file_.policies) {
      if (entry.label != "oracle") continue;
      problems_.add(entry.choice.where + "/label",
                    "\"oracle\" is the best fixed choice; choose another label.");
    }
    list.labels.insert("oracle");
  }

  PolicyList read_policies() {
    const auto& known = file_.known->composers;
    const auto try_out = [&](const PolicyChoice& choice) { known.make(choice, file_.setup.tasks); };
    for (ComposerSection& section : file_.composers) name_after_tuner(section);
    PolicyList list = read_policy_list({file_.composers.begin(), file_.composers.end()},
                                       {find_in(known), try_out}, problems_, composer_table());
    for (std::size_t i = 0; i < file_.composers.size(); ++i) {
      const std::string pointer = "/policies/" + std::to_string(i);
      const auto entry =
          std::ranges::find(list.entries, pointer, [](const PolicyEntry& one) { return one.choice.where; });
      if (!file_.composers[i].tuner || entry == list.entries.end()) continue;
      problems_.guarded(pointer + "/tuner",
                        [&] { read_tuner(*file_.composers[i].tuner, *entry, pointer + "/tuner"); });
    }
    file_.policies = list.entries;
    return list;
  }

  // "dense + predictive", where it has no label of its own.
  void name_after_tuner(ComposerSection& section) const {
    if (!section.tuner || section.label) return;
    const auto& all = file_.known->composers;
    const auto kind = std::ranges::find(all.entries, section.use, &ComposerEntry::name);
    if (kind == all.end()) return;  // which is a problem of its own
    const std::string profile = section.profile.value_or(kind->default_profile);
    section.label = (profile.empty() ? kind->name : profile) + " + " + section.tuner->use;
  }

  void read_tuner(const BatchTunerSection& section, const PolicyEntry& entry, const std::string& pointer) {
    if (section.budget.has_value() == section.batch_size.has_value()) {
      throw InputError(pointer, "give either \"budget\" or \"batch_size\", which the tuner moves.");
    }
    BatchTuner tuner;
    tuner.choice = {.use = section.use,
                    .profile = section.profile.value_or(""),
                    .options = policy_options(*section.json, batch_tuner_table(), pointer, problems_),
                    .where = pointer};
    const auto& known = file_.known->tuners;
    const PolicyProfile* profile =
        known.find(tuner.choice).find_profile(tuner.choice.profile, pointer + "/profile");
    if (profile != nullptr) tuner.choice.profile = profile->name;
    if (section.budget) {
      const auto composer = file_.known->composers.make(entry.choice, file_.setup.tasks);
      if (!composer->obeys_budget()) {
        throw InputError(pointer + "/budget", "the composer " + entry.choice.use +
                                                  " obeys no budget, as it foresees no memory; give "
                                                  "\"batch_size\" instead.");
      }
      tuner.tuning.moves = BatchTuning::Moves::budget;
      require_on_card(section.budget->to, pointer + "/budget/to");
      read_range(*section.budget, "budget", 1_MiB, pointer + "/budget", tuner.tuning);
    } else {
      tuner.tuning.moves = BatchTuning::Moves::batch_size;
      read_range(*section.batch_size, "batch_size", std::int64_t{1}, pointer + "/batch_size", tuner.tuning);
    }
    known.make(tuner.choice, tuner.tuning.space);
    file_.tuners.emplace(entry.label, std::move(tuner));
  }

  // Its only parameter, in units of `unit`.
  template <class Value>
  void read_range(const TunedRange<Value>& range, const char* name, Value unit, const std::string& pointer,
                  BatchTuning& tuning) {
    const auto text = [](Value value) { return tuned_text(value); };
    const Value start = range.start.value_or(range.from);
    if (range.to < range.from) {
      throw InputError(pointer + "/to", text(range.to) + " is below \"from\", " + text(range.from) + ".");
    }
    if (start < range.from || start > range.to) {
      throw InputError(pointer + "/start", text(start) + " is out of range; allowed is " + text(range.from) +
                                               " to " + text(range.to) + ".");
    }
    const auto in_units = [unit](Value value) { return static_cast<std::int64_t>(value / unit); };
    tuning.space.parameters = {{.name = name, .low = in_units(range.from), .high = in_units(range.to)}};
    tuning.start = {in_units(start)};
  }

  static std::string tuned_text(Bytes value) { return exact_size_text(value); }
  static std::string tuned_text(std::int64_t value) { return std::to_string(value); }

  void require_on_card(Bytes most, const std::string& pointer) {
    std::vector<ProcessSetup> cards{file_.setup.process};
    cards.insert(cards.end(), file_.setup.more_cards.begin(), file_.setup.more_cards.end());
    for (const ProcessSetup& card : cards) {
      const Bytes offered = card.allocator.limit.value_or(card.card_total);
      if (offered == 0 || most <= offered) continue;  // 0: a card that could not be read
      problems_.add(pointer, exact_size_text(most) + " is more than the program may use of the card, " +
                                 exact_size_text(offered) + ".");
      return;
    }
  }

  void read_workload() {
    read_tasks(file_.data);
    read_models();
    read_samples(file_.data);
    if (file_.data.set_aside) set_aside();
    read_phases();
    if (file_.setup.target_batch == 0) require_no_scale();
    if (file_.series) read_declared(*file_.series);
    if (file_.setup.loss.balance && file_.setup.gradient_norms.by_task.empty()) {
      problems_.add("/workload/balance_losses", "needs gradient norms: declare them with \"series\".");
    }
  }

  void read_phases() {
    for (std::size_t i = 0; i < file_.phases.size(); ++i) {
      EpochPhase phase = file_.phases[i];
      const std::string pointer = "/workload/phases/" + std::to_string(i);
      if (std::cmp_greater(phase.samples, file_.setup.samples.size())) {
        problems_.add(pointer + "/samples",
                      "the data set has " + std::to_string(file_.setup.samples.size()) + " samples.");
      }
      if (file_.phases[i].model_file) {
        file_.phase_models.push_back(recorded_model(*file_.phases[i].model_file, pointer + "/model"));
        phase.model = file_.phase_models.back().get();
      }
      file_.setup.phases.push_back(std::move(phase));
    }
  }

  void read_tasks(const DataSection& data) {
    if (data.lengths.has_value() == data.tasks.has_value() || (data.list && !data.tasks)) {
      throw InputError("/workload/data",
                       "give either \"tasks\", with a \"list\" if it is not to be drawn, or \"lengths\".");
    }
    if ((data.lengths || data.list) && data.outliers.every > 0) {
      problems_.add("/workload/data/outliers_every",
                    "outliers are drawn; with a file of samples leave it out.");
    }
    if (!data.lengths && !data.list && (data.column || data.positions_per_second > 0)) {
      problems_.add("/workload/data", "\"column\" and \"positions_per_second\" are of a file of samples.");
    }
    if (data.lengths) {
      file_.setup.tasks = {"text"};
      file_.setup.loss.weights = {1};
      return;
    }
    for (std::size_t i = 0; i < data.tasks->size(); ++i) {
      const TaskSection& task = (*data.tasks)[i];
      const std::string fault = fault_of(task, data.list.has_value());
      if (!fault.empty()) problems_.add("/workload/data/tasks/" + std::to_string(i), fault);
      file_.setup.tasks.push_back(task.name);
      file_.setup.loss.weights.push_back(task.weight);
    }
    if (data.tasks->size() > kMostTasks) {
      throw InputError("/workload/data/tasks", std::to_string(kMostTasks) + " tasks are the most.");
    }
    if (data.tasks->empty()) throw InputError("/workload/data/tasks", "the list is empty.");
  }

  // What is wrong with a task; empty if nothing is.
  static std::string fault_of(const TaskSection& task, bool listed) {
    if (listed && (task.shortest > 0 || task.longest > 0)) {
      return "its lengths are in the \"list\"; leave \"shortest\" and \"longest\" out.";
    }
    if (listed) return {};
    if (task.shortest == 0 || task.longest == 0) {
      return "give \"shortest\" and \"longest\" to draw from, or a \"list\" of samples in \"data\".";
    }
    return task.shortest > task.longest ? "\"shortest\" is above \"longest\"." : "";
  }

  void read_models() {
    if (file_.model_file.has_value() == file_.sizes.has_value()) {
      throw InputError("/workload", "give either \"model\" or \"sizes\".");
    }
    if (file_.sizes) {
      file_.model = model_of(*file_.sizes, file_.setup.packs);
    } else {
      const auto recorded = recorded_model(*file_.model_file, "/workload/model");
      tokens_per_image_ = recorded->tokens_per_image();
      file_.model = recorded;
    }
    if (file_.checkpointed_file) {
      file_.checkpointed = recorded_model(*file_.checkpointed_file, "/workload/checkpointed");
    }
    file_.setup.model = file_.model.get();
    if (!file_.model->timed()) {
      file_.notes.emplace_back(
          "The model's steps were never timed: there are no rates (vramlab fit --times).");
    }
    file_.setup.checkpointed = file_.checkpointed.get();
  }

  [[nodiscard]] std::shared_ptr<const RecordedBatches> recorded_model(const std::string& name,
                                                                      const std::string& pointer) const {
    std::shared_ptr<const WorkloadModel> model = load_model_file(data_file(name, path_, pointer));
    auto recorded = std::dynamic_pointer_cast<const RecordedModel>(model);
    if (recorded == nullptr) {
      throw InputError(pointer,
                       "\"" + name + "\" is not a recorded model; only these know batches of samples.");
    }
    try {
      return std::make_shared<const RecordedBatches>(recorded, file_.setup.tasks, file_.setup.packs);
    } catch (const InputError& error) {
      throw InputError(pointer, error.problems().front().what);
    }
  }

  [[nodiscard]] static std::shared_ptr<const BatchModel> model_of(SizesSection sizes, bool packs) {
    for (const SampleSection& sample : sizes.samples) {
      if (sizes.by_images.size() <= sample.images) sizes.by_images.resize(sample.images + 1);
      sizes.by_images[sample.images] = sample.bytes;
    }
    return std::make_shared<const SampleSizeModel>(std::move(sizes), packs);
  }

  void read_samples(const DataSection& data) {
    if (data.lengths || data.list) return read_file_of_samples(data);
    if (data.samples == 0) throw InputError("/workload/data", "say how many \"samples\".");
    problems_.throw_if_any();  // nothing can be drawn from a task whose range is empty
    const std::vector<TaskSort> tasks(data.tasks->begin(), data.tasks->end());
    file_.setup.samples = draw_samples(tasks, data.samples, data.outliers, tokens_per_image_, file_.seed);
  }

  void read_file_of_samples(const DataSection& data) {
    const bool listed = data.list.has_value();
    const std::string usual = data.positions_per_second > 0 ? "duration" : listed ? "length" : "tokens";
    const std::string& name = listed ? *data.list : *data.lengths;
    SampleList list = vramlab::read_samples(
        {.file = data_file(name, path_, std::string("/workload/data/") + (listed ? "list" : "lengths")),
         .column = data.column.value_or(usual),
         .positions_per_second = data.positions_per_second,
         .most = data.most,
         .count = data.samples,
         .tasks = listed ? file_.setup.tasks : std::vector<std::string>{},
         .tokens_per_image = tokens_per_image_});
    file_.setup.samples = std::move(list.samples);
    if (list.skipped == 0) return;
    const std::size_t lines = file_.setup.samples.size() + static_cast<std::size_t>(list.skipped);
    file_.notes.push_back(fmt::format("{}: skipped {} of {} lines, of length 0", name, list.skipped, lines));
  }

  void set_aside() {
    problems_.throw_if_any();  // a card that is not there holds nothing
    const std::size_t all = file_.setup.samples.size();
    file_.setup.set_aside = take_out_misfits(file_.setup);
    if (file_.setup.samples.empty()) {
      throw InputError("/workload/data/set_aside", "the card holds none of the samples, not even alone.");
    }
    file_.notes.push_back(
        fmt::format("set aside: {} of {} samples, which the empty card does not hold even alone",
                    file_.setup.set_aside, all));
  }

  // The original's factors compare an effective batch with the one that is wanted.
  void require_no_scale() {
    for (const auto& [key, is_on] :
         {std::pair{"scale_gradient", file_.setup.loss.scale_gradient},
          std::pair{"scale_learning_rate", file_.setup.loss.scale_learning_rate}}) {
      if (is_on) problems_.add(std::string("/workload/") + key, "needs a \"target_batch\" to compare with.");
    }
  }

  void read_declared(const SeriesSection& section) {
    SeriesFile series =
        read_series(data_file(section.file, path_, "/workload/series/file"), file_.setup.tasks);
    file_.setup.losses = std::move(series.losses);
    file_.setup.gradient_norms = std::move(series.gradient_norms);
    file_.series_origin = section.origin;
  }

  fs::path path_;
  EpochFile file_;
  std::int64_t tokens_per_image_ = 0;
  FileProblems problems_;
};

}  // namespace

const RecordBase& epoch_table() { return file_table(); }

EpochScenario read_epoch(const ScenarioDocument& document) { return EpochReader{document}.read(); }

}  // namespace vramlab
