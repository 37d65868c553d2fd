// vramlab estimate --config: a network's memory from its config.json, through the allocator.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "cli/estimate/estimate.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "lab/model/layers.hpp"
#include "lab/model/network_config.hpp"
#include "lab/model/prediction.hpp"
#include "lab/model/recorded.hpp"
#include "report/output_file.hpp"

namespace vramlab {

using layers::LayersSpec;

void add_config_options(Options& options) {
  options.add_options()
      // clang-format off
      ("config", text_value("FILE"), "a network by its Hugging Face config.json")
      ("dtype", text_value("NUMBER"), "with --config: of the weights: fp32, bf16, fp16; default what the config says, else fp32")
      ("autocast", text_value("NUMBER"), "with --config: mixed precision with weights in fp32: bf16, fp16")
      ("optimizer", text_value("NAME"), "with --config: adamw (default), adamw-fused, adamw-8bit, adam, sgd, sgd-momentum")
      ("zero-grad", text_value("WHEN"), "with --config: before-backward (default) or before-forward frees old gradients")
      ("recompute", text_value("every=N"), "with --config: the first of every N layers is recomputed (activation checkpointing)")
      ("micro-batch", po::value<std::int64_t>(), "with --config: rows of a part whose gradients add up")
      ("shard", po::value<std::int64_t>(), "with --config: cards that share weights, gradients and optimizer state")
      ("adapter", text_value("rank=N"), "with --config: low-rank adapters of queries and values alone are trained")
      ("generate", po::value<std::int64_t>(), "with --config: inference of so many tokens behind a prompt of --seq, with a cache of keys and values")
      ("forward", "with --config: the forward pass alone")
      ("target", po::value<std::int64_t>(), "with --config: length of the rows of a decoder beside an encoder; default --seq")
      ("px", po::value<std::int64_t>(), "with --config: side of an image; default image_size")
      ("gpu", text_value("CARD"), "with --config: the card; default h100-80gb")
      ("alloc-conf", text_value("CONF"), "with --config: allocator settings, as PYTORCH_CUDA_ALLOC_CONF")
      ("output,o", text_value("FILE"), "with --config: the model file to write, for predict, compare and scenarios");
  // clang-format on
}

namespace {

constexpr const char* kOptions[] = {"dtype",       "autocast", "optimizer", "zero-grad",  "recompute",
                                    "micro-batch", "shard",    "adapter",   "generate",   "forward",
                                    "target",      "px",       "gpu",       "alloc-conf", "output"};

bool given(const Arguments& arguments, const char* option) {
  return arguments.contains(option) && !arguments[option].defaulted();
}

std::int64_t number_within(const Arguments& arguments, const char* option, std::int64_t most) {
  const auto value = arguments[option].as<std::int64_t>();
  if (value >= 1 && value <= most) return value;
  throw InputError(std::string("--") + option,
                   fmt::format("{} is out of range. Allowed: 1 to {}.", value, most));
}

// "every=1": the number behind the one word that is allowed.
std::int64_t setting_of(const Arguments& arguments, const char* option, const std::string& name,
                        std::int64_t most) {
  const std::string text = text_of(arguments, option);
  std::int64_t value = 0;
  const std::string front = name + "=";
  const char* end = text.data() + text.size();
  const char* begin = text.starts_with(front) ? text.data() + front.size() : end;
  const auto [rest, error] = std::from_chars(begin, end, value);
  if (error == std::errc{} && rest == end && value >= 1 && value <= most) return value;
  throw InputError(std::string("--") + option,
                   fmt::format("\"{}\" is not {}=N with N of 1 to {}. Write {}=1.", text, name, most, name));
}

template <class Enum>
Enum word_of(const Arguments& arguments, const char* option, const std::vector<std::string>& words,
             Enum otherwise) {
  const std::string text = text_of(arguments, option);
  if (text.empty()) return otherwise;
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<Enum>(found - words.begin());
  throw InputError(std::string("--") + option, '"' + text + "\" is not known." + suggest_name(text, words));
}

layers::Number weights_number(const Arguments& arguments, std::optional<layers::Number> in_config) {
  static const std::vector<std::string> words{"fp32", "bf16", "fp16", "float32", "bfloat16", "float16"};
  constexpr std::size_t kSorts = 3;
  const bool mixed = !text_of(arguments, "autocast").empty();
  const auto otherwise = mixed ? layers::Number::float32 : in_config.value_or(layers::Number::float32);
  const auto place = word_of<std::size_t>(arguments, "dtype", words, static_cast<std::size_t>(otherwise));
  return static_cast<layers::Number>(place % kSorts);
}

layers::RunSpec read_run(const Arguments& arguments, const NetworkConfig& config) {
  constexpr std::int64_t kMost = 4096;
  static const std::vector<std::string> mixed{"none", "bf16", "fp16"};
  layers::RunSpec run;
  run.weights = weights_number(arguments, config.number);
  run.autocast = word_of(arguments, "autocast", mixed, layers::MixedPrecision::none);
  run.optimizer = word_of(arguments, "optimizer", layers::kOptimizers, layers::Optimizer::adamw);
  run.zero_gradients =
      word_of(arguments, "zero-grad", layers::kZeroGradients, layers::ZeroGradients::before_backward);
  if (!text_of(arguments, "recompute").empty())
    run.recompute_every = setting_of(arguments, "recompute", "every", kMost);
  if (!text_of(arguments, "adapter").empty())
    run.adapter_rank = setting_of(arguments, "adapter", "rank", kMost);
  if (arguments.contains("micro-batch")) run.micro_batch = number_within(arguments, "micro-batch", kMost);
  if (arguments.contains("shard")) run.shards = number_within(arguments, "shard", 1024);
  if (arguments.contains("generate") && arguments.contains("forward")) {
    throw InputError("--forward", "does not go with --generate. Give one of them.");
  }
  if (arguments.contains("generate")) run.task = layers::Task::generation;
  if (arguments.contains("forward")) run.task = layers::Task::forward;
  for (const char* option : {"optimizer", "zero-grad", "recompute", "micro-batch", "adapter"}) {
    if (run.task != layers::Task::training && given(arguments, option)) {
      throw InputError(std::string("--") + option, "goes with training, not with --generate or --forward.");
    }
  }
  return run;
}

// The ranges that the model answers for: any batch, and rows as long as the network's positions; longer ones
// only where positions are not learnt.
void set_parameters(const Arguments& arguments, LayersSpec& spec) {
  constexpr std::int64_t kLongest = 131072;
  constexpr std::int64_t kLargestBatch = 4096;
  constexpr std::int64_t kMostTokens = 8192;
  constexpr std::int64_t kLargestImage = 1024;
  const layers::NetworkSpec& n = spec.network;
  const bool learnt =
      n.architecture == layers::Architecture::gpt2 || n.architecture == layers::Architecture::bert;
  const std::int64_t known = n.positions > 0 ? std::min(n.positions, kLongest) : 4096;
  const auto seq = number_within(arguments, "seq", learnt ? known : kLongest);
  const std::int64_t longest = learnt ? known : std::max(known, seq);
  const std::int64_t most = layers::largest_simulated(n, spec.run);
  for (const std::string& name : layers::parameter_names(n, spec.run.task)) {
    std::int64_t value = seq;
    Parameter range{name, 1, longest};
    if (name == "batch") {
      const std::int64_t simulated = spec.run.task == layers::Task::generation ? kLargestBatch : most;
      range.high = std::min(kLargestBatch, simulated);
      value = arguments.contains("batch") ? number_within(arguments, "batch", range.high)
                                          : std::min<std::int64_t>(8, range.high);
    } else if (name == "new") {
      range.high = std::min(kMostTokens, most);
      value = number_within(arguments, "generate", range.high);
    } else if (name == "px") {
      range.low = n.patch_size;
      range.high = std::max(kLargestImage, n.image_size);
      value = arguments.contains("px") ? number_within(arguments, "px", range.high) : n.image_size;
    } else if (name == "target" && arguments.contains("target")) {
      value = number_within(arguments, "target", longest);
    }
    spec.parameters.push_back(range);
    spec.usual.push_back(value);
  }
}

std::vector<std::string> assumed_values(const Arguments& arguments, const NetworkConfig& config,
                                        const LayersSpec& spec) {
  std::vector<std::string> assumed = config.defaults;
  if (!arguments.contains("batch")) assumed.push_back(fmt::format("batch {}", spec.usual[0]));
  if (arguments["seq"].defaulted() &&
      layers::family_of(spec.network.architecture) != layers::Family::vision) {
    assumed.push_back(fmt::format("length {}", arguments["seq"].as<std::int64_t>()));
  }
  if (text_of(arguments, "dtype").empty() && text_of(arguments, "autocast").empty() && !config.number) {
    assumed.push_back("weights in float32");
  }
  if (spec.run.task == layers::Task::training && text_of(arguments, "optimizer").empty()) {
    assumed.push_back("optimizer adamw");
  }
  return assumed;
}

std::string about_text(const LayersSpec& spec, std::int64_t parameters) {
  const std::size_t task = static_cast<std::size_t>(spec.run.task);
  return fmt::format("{} of {} parameters, {}; made without a card from a config.json",
                     layers::kArchitectures[static_cast<std::size_t>(spec.network.architecture)], parameters,
                     layers::kTasks[task]);
}

void show(const LayersSpec& spec, const PredictionQuestion& question, const Prediction& prediction,
          const std::vector<MemoryPart>& parts, std::int64_t parameters, Output& output) {
  std::string point;
  for (std::size_t i = 0; i < spec.usual.size(); ++i) {
    point += fmt::format("{}{} {}", i > 0 ? ", " : "", spec.parameters[i].name, spec.usual[i]);
  }
  const std::string card =
      std::string(question.gpu->id) + (question.gpu->context_assumed() ? " (context assumed)" : "");
  output.line("{} at {}: made without a card, {} parameters.", spec.name, point, parameters);
  output.line(prediction.fits
                  ? fmt::format("Fits on {}: peak reserved {} of {} usable.", card,
                                format_bytes(prediction.peak_reserved), format_bytes(question.usable()))
                  : fmt::format("Does not fit on {}: {} usable, out of memory while asking for {}.", card,
                                format_bytes(question.usable()), format_bytes(prediction.failed)));
  Table table{{left("at the peak"), "memory", left("how known")}};
  for (const MemoryPart& part : parts) table.add_row({part.name, format_bytes(part.bytes), part.how});
  output.next_table(table);
}

}  // namespace

void require_no_config_options(const Arguments& arguments) {
  for (const char* option : kOptions) {
    if (given(arguments, option)) throw InputError(std::string("--") + option, "goes with --config.");
  }
}

int estimate_config(const Arguments& arguments, Output& output) {
  for (const char* option : {"training", "faithful", "budget", "images", "calibration", "inference"}) {
    if (given(arguments, option)) throw InputError(std::string("--") + option, "does not go with --config.");
  }
  const std::string file = text_of(arguments, "config");
  const std::string written = text_of(arguments, "output");
  require_output_names({file}, {written, text_of(arguments, "json")});
  output.reads({file});
  const NetworkConfig config = read_network_config(read_json_file(file), file + ": ");
  LayersSpec spec;
  spec.name = layers::kArchitectures[static_cast<std::size_t>(config.network.architecture)];
  spec.network = config.network;
  spec.run = read_run(arguments, config);
  set_parameters(arguments, spec);
  const layers::LayersModel model(spec);
  PredictionQuestion question(model);
  question.gpu = &find_gpu(given(arguments, "gpu") ? text_of(arguments, "gpu") : "h100-80gb", "--gpu");
  question.allocator.settings = parse_allocator_settings(text_of(arguments, "alloc-conf"));
  const Prediction prediction = predict_step(question);
  const auto parts = memory_parts(model, question, prediction);
  show(spec, question, prediction, parts, model.network_parameters(), output);
  const auto assumed = assumed_values(arguments, config, spec);
  const auto differences = differences_from_recordings(spec);
  if (!assumed.empty()) output.line("\nAssumed: {}.", fmt::join(assumed, ", "));
  output.line("\nWhere a recording may differ:");
  for (const std::string& difference : differences) output.line("  {}", difference);
  Json json = {{"made_without_card", true},
               {"network_parameters", model.network_parameters()},
               {"trained_parameters", model.trained_parameters()},
               {"fits", prediction.fits},
               {"peak_allocated_bytes", prediction.peak_allocated},
               {"peak_reserved_bytes", prediction.peak_reserved},
               {"gpu", question.gpu->id},
               {"usable_bytes", question.usable()},
               {"parts", Json::array()},
               {"assumed", assumed},
               {"differs", differences}};
  for (const MemoryPart& part : parts) {
    json["parts"].push_back({{"name", part.name}, {"bytes", part.bytes}, {"how", part.how}});
  }
  if (!written.empty()) {
    write_file(written,
               model_file_text(layers_model_json(spec, about_text(spec, model.network_parameters()))));
    output.wrote(written);
    json["model"] = written;
  }
  output.json(json);
  return kDone;
}

}  // namespace vramlab
