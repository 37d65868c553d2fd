// vramlab advise: what to change in a recorded model so that it needs less memory, and what that costs in
// time.
#include "lab/advise/advise.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/model/file.hpp"
#include "lab/model/prediction.hpp"
#include "models/accumulation.hpp"
#include "models/gpu_catalogue.hpp"
#include "models/recorded_model.hpp"
#include "recordings/open.hpp"

namespace vramlab {
namespace {

using Words = std::vector<std::string>;

constexpr double kGiga = 1e9;

void add_advise_options(Options& options) {
  options.add_options()("capacity", text_value("SIZE"), "the card to fit on by its size, such as 12GiB")(
      "gpu", text_value("NAME"), "the card to fit on, one of vramlab gpus")(
      "limit", text_value("SIZE"), "the most that the allocator may reserve")(
      "alloc-conf", po::value<std::string>()->value_name("STRING"),
      "settings to replay under, as in PYTORCH_ALLOC_CONF (default: the recording's)")(
      "only", po::value<Words>()->value_name("WAY"),
      "recompute, offload, optimizer (its state in host memory) or parts (of the batch, of a model made by "
      "fit "
      "with times); repeatable (default: all)")(
      "times", text_value("FILE"), "times of the recorder's second pass, for how long a step takes")(
      "host-bandwidth", po::value<double>()->value_name("GB/S"),
      "of copies between card and pinned host memory (default: assumed from the card's PCIe)")(
      "set", po::value<Words>()->value_name("NAME=N"),
      "of a model made by fit: parameters, batch=16; repeatable")(
      "batch", text_value("NAME"),
      "of a model: the parameter that may be cut into parts (default: batch, where it has one)");
  add_torch_version_option(options);
  add_threads_option(options);
  add_report_option(options);
  add_output_options(options);
}

std::optional<Bytes> chosen_size(const Arguments& arguments, const char* option) {
  const std::string text = text_of(arguments, option);
  if (text.empty()) return std::nullopt;
  const std::optional<Bytes> size = parse_bytes(text);
  if (size && *size > 0 && *size < kNeverFull) return size;
  throw InputError(std::string{"--"} + option, '"' + text +
                                                   "\" is not a size. Write 24GiB, 24576MiB or a number of "
                                                   "bytes, above 0 and below 4096GiB.");
}

/// The program that is asked about, of a model with its steps in parts of the batch.
struct AdvisedProgram {
  std::vector<ProgramVariant> variants{1};
  std::size_t others = 0;      ///< devices of the file that are not looked at
  Json parameters{};           ///< of a model: name → value
  bool outside_range = false;  ///< of what the model was fitted to
};

std::optional<SourcedFigure> seconds_of_model(const StepProgram& step) {
  return SourcedFigure{to_seconds(step.duration), "the model's"};
}

// Halves, quarters, … of the batch, as far as the model goes.
void add_parts(const WorkloadModel& model, const PredictionQuestion& question, const std::string& name,
               AdvisedProgram& advised) {
  const std::size_t batch = *model.parameters().find(name);
  const std::int64_t whole = question.point[batch];
  const double seconds = to_seconds(model.step(question.point).duration);
  std::int64_t before = whole;
  for (std::int64_t size = (whole + 1) / 2; size < before; size = (size + 1) / 2) {
    if (size < model.parameters().parameters[batch].low) return;
    before = size;
    ProgramVariant variant{.program = advised.variants.front().program, .part = {name, size}};
    const StepProgram step = step_in_parts(model, question.point, batch, size);
    variant.step_seconds = seconds_of_model(step);
    variant.time_ratio = variant.step_seconds->value / seconds;
    variant.program = predicted_program(model, question.point, variant.program, BatchPart{batch, size});
    advised.variants.push_back(std::move(variant));
  }
}

// The parameter that may be cut into parts; empty where there is none, or where the model has no times.
std::string batch_of(const Arguments& arguments, const WorkloadModel& model,
                     std::vector<std::string>& notes) {
  const std::string asked = text_of(arguments, "batch");
  const std::string name = asked.empty() ? "batch" : asked;
  if (!model.parameters().find(name)) {
    if (asked.empty()) return "";
    std::vector<std::string> names;
    for (const Parameter& parameter : model.parameters().parameters) names.push_back(parameter.name);
    throw InputError("--batch",
                     '"' + name + "\" is not a parameter of the model." + suggest_name(name, names));
  }
  if (model.timed()) return name;
  notes.push_back("Parts of " + name + " are not advised: the model has no times (vramlab fit --times).");
  return "";
}

AdvisedProgram program_of_model(const Arguments& arguments, const std::string& file, const Words& settings) {
  const std::unique_ptr<WorkloadModel> model = load_model_file(file);
  PredictionQuestion question(*model);
  require_names_once(settings, "--set");
  for (const std::string& setting : settings) question.set(setting);
  ClientProgram recording;
  recording.file = file;
  AdvisedProgram advised{.parameters = point_json(question)};
  ProgramVariant& whole = advised.variants.front();
  whole.program = predicted_program(*model, question.point, recording);
  std::string note = "Nothing was recorded of this: three steps of the model at";
  for (const auto& [name, value] : advised.parameters.items())
    note += fmt::format(" {}={}", name, value.dump());
  const auto* recorded = dynamic_cast<const RecordedModel*>(model.get());
  advised.outside_range =
      recorded != nullptr && !recorded->in_recorded_range(recorded->with_items(question.point));
  note += advised.outside_range ? ", which lie outside what was recorded." : ".";
  whole.program.notes.push_back(note);
  if (model->timed()) whole.step_seconds = seconds_of_model(model->step(question.point));
  const std::string batch = batch_of(arguments, *model, whole.program.notes);
  if (!batch.empty()) add_parts(*model, question, batch, advised);
  return advised;
}

AdvisedProgram read_program(const Arguments& arguments) {
  const std::string file = operands(arguments).front();
  const Words settings = texts_of(arguments, "set");
  InputFile input{file};
  const FileKind kind = require_kind(
      input, {FileKind::snapshot, FileKind::allocation_script, FileKind::oracle_log, FileKind::model});
  if (kind == FileKind::model) return program_of_model(arguments, file, settings);
  std::vector<ClientProgram> programs =
      read_client_programs(file, {.torch = chosen_torch_version(arguments), .device = {}});
  for (const char* option : {"batch", "set"}) {
    if (arguments[option].defaulted() || !arguments.contains(option)) continue;
    throw InputError(std::string("--") + option,
                     "is for a model that vramlab fit made; " + file + " is a recording. Fit it first.");
  }
  // That with the most memory counts.
  const auto most = std::ranges::max_element(programs, {}, [](const ClientProgram& program) {
    return replay_program(program, {.settings = program.settings}).highest_reserved;
  });
  AdvisedProgram advised{.others = programs.size() - 1};
  advised.variants.front().program = std::move(*most);
  return advised;
}

const Gpu* recorded_gpu(const ClientProgram& program) {
  for (const Gpu& gpu : gpu_catalogue()) {
    if (program.device_total && gpu.total == *program.device_total) return &gpu;
  }
  return nullptr;
}

void read_card(const Arguments& arguments, const ClientProgram& program, AdviceQuestion& question) {
  const std::string name = text_of(arguments, "gpu");
  const std::optional<Bytes> capacity = chosen_size(arguments, "capacity");
  if (!name.empty() && capacity) throw InputError("--capacity", "and --gpu both name a card. Leave one out.");
  const Gpu* gpu = recorded_gpu(program);
  if (!name.empty()) {
    gpu = &find_gpu(name, "--gpu");
    question.card = gpu->id;
    question.total = gpu->total;
    question.context = gpu->context;
    question.context_assumed = gpu->context_assumed();
  } else if (capacity) {
    question.card = "a card of " + format_bytes(*capacity);
    question.total = capacity;
  }
  if (question.total && program.outside) {
    question.context = *program.outside;
    question.context_assumed = false;
  }
  question.limit = chosen_size(arguments, "limit");
  if (question.limit && !question.total) {
    question.card = "a limit of " + format_bytes(*question.limit);
    question.context_assumed = false;
  }
  const HostLink link = host_link(gpu);
  question.host_bandwidth = {link.bytes_per_second,
                             link.measured ? "measured on such a card" : "assumed from its PCIe"};
  if (arguments.contains("host-bandwidth")) {
    question.host_bandwidth = {arguments["host-bandwidth"].as<double>() * kGiga, "given"};
    if (!(question.host_bandwidth.value >= 1e6 && question.host_bandwidth.value <= 1e13))
      throw InputError("--host-bandwidth", "must be 0.001 to 10000 GB/s.");
  }
}

AdviceQuestion read_advice_question(const Arguments& arguments, const ProgramVariant& asked) {
  AdviceQuestion question;
  question.settings = asked.program.settings;
  if (arguments.contains("alloc-conf")) {
    AllocatorSettings base;
    base.torch = question.settings.torch;
    question.settings = parse_allocator_settings(arguments["alloc-conf"].as<std::string>(), base);
  }
  if (question.settings.backend != AllocatorBackend::native)
    throw InputError("--alloc-conf",
                     "backend:cudaMallocAsync cannot be replayed: where the driver puts its blocks "
                     "is not known. Give other settings, \"\" for the defaults.");
  read_card(arguments, asked.program, question);
  for (const std::string& word : texts_of(arguments, "only")) {
    const auto way = std::ranges::find(kWayNames, word);
    if (way == kWayNames.end()) {
      throw InputError("--only", '"' + word + "\" is not a way." +
                                     suggest_name(word, {kWayNames.begin(), kWayNames.end()}));
    }
    question.ways.push_back(static_cast<Way>(way - kWayNames.begin()));
  }
  const std::string times = text_of(arguments, "times");
  std::optional<MeasuredGrid> grid;
  if (!times.empty()) grid = read_grid_file(times);
  question.step_seconds = asked.step_seconds;
  if (!question.step_seconds)
    question.step_seconds = step_time(asked.program, operands(arguments).front(), grid ? &*grid : nullptr);
  question.threads = chosen_threads(arguments);
  return question;
}

int run_advise(const Arguments& arguments, Output& output) {
  Words inputs = operands(arguments);
  if (const std::string times = text_of(arguments, "times"); !times.empty()) inputs.push_back(times);
  require_output_names(with_siblings(inputs), {text_of(arguments, "json"), output.report_file()});
  AdvisedProgram advised = read_program(arguments);
  const ClientProgram& program = advised.variants.front().program;
  const AdviceQuestion question = read_advice_question(arguments, advised.variants.front());
  if (!question.allows(Way::parts)) advised.variants.resize(1);
  Advice advice = advise(advised.variants, question);
  if (advised.others > 0) {
    advice.notes.push_back(fmt::format("Of {} devices this is the one with the most memory: device {}.",
                                       advised.others + 1, program.device));
  }
  for (const std::string& sentence : advice_verdict(advice, question)) output.line(sentence);
  output.next_table(front_table(advice, question));
  const std::size_t shown = advice.best.value_or(advice.front.size() - 1);
  const std::vector<std::string> lines = pytorch_lines(advice, advice.front[shown]);
  if (!lines.empty())
    output.line("\nTo write for {} reserved:", format_bytes(advice.front[shown].peak_reserved));
  for (const std::string& line : lines) output.line("  " + line);
  if (!advice.units.empty()) output.next_table(units_table(advice));
  if (!advice.notes.empty()) output.line("");
  for (const std::string& note : advice.notes) output.line("note: " + note);
  for (const std::string& warning : program.warnings) output.line("warning: " + warning);
  if (output.wants_report()) {
    output.add_section(
        advice_section(advice, question, std::filesystem::path{program.file}.filename().string()));
  }
  output.write_report();
  Json json{{"file", program.file}, {"device", program.device}};
  json.update(advice_json(advice, question));
  if (!advised.parameters.is_null()) {
    json["parameters"] = advised.parameters;
    json["outside_range"] = advised.outside_range;
  }
  output.json(json);
  return kDone;
}

}  // namespace

Verb advise_verb() {
  return {.name = "advise",
          .summary = "what to compute again or keep in host memory so that this recorded program fits",
          .operands = "FILE",
          .count = {1, 1},
          .example = "vramlab advise tests/data/recorded/sr_limits.pickle.gz --capacity 4GiB",
          .add_options = add_advise_options,
          .run = run_advise};
}

}  // namespace vramlab
