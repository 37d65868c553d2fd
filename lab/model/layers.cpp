#include "lab/model/layers.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace vramlab {
namespace {

using layers::LayersSpec;
using layers::NetworkSpec;
using layers::RunSpec;

constexpr double kMostWidth = 1e6;  // heads, numbers of a position
constexpr double kMostWords = 1e7;
constexpr std::int64_t kLargestValue = 1'000'000;  // of a parameter

const std::vector<std::string> kActivations{"silu", "relu", "gelu", "gelu-new", "tanh", "quick-gelu"};

const Record<NetworkSpec>& network_table() {
  using N = NetworkSpec;
  static const Record<N> table{
      {"architecture", one_of<&N::architecture>(layers::kArchitectures), "", 0, 0, "whose layers it has",
       kRequired},
      {"head", one_of<&N::head>(layers::kHeads), "", 0, 0, "what stands on the last layer"},
      {"hidden", &N::hidden, "", 1, kMostWidth, "numbers of a position between layers", kRequired},
      {"layers", &N::layers, "", 1, 10000, "layers; beside a decoder those of the encoder", kRequired},
      {"decoder_layers", &N::decoder_layers, "", 0, 10000, "layers of the decoder beside an encoder"},
      {"heads", &N::heads, "", 1, kMostWidth, "heads of attention", kRequired},
      {"kv_heads", &N::kv_heads, "", 1, kMostWidth, "heads of keys and values", kRequired},
      {"head_size", &N::head_size, "", 1, kMostWidth, "numbers of a head", kRequired},
      {"intermediate", &N::intermediate, "", 1, kMostWidth, "numbers of a position in a feed-forward layer",
       kRequired},
      {"vocabulary", &N::vocabulary, "", 0, kMostWords, "words"},
      {"positions", &N::positions, "", 0, kMostWords, "longest row"},
      {"token_types", &N::token_types, "", 0, kMostWords, "sorts of words"},
      {"labels", &N::labels, "", 0, kMostWords, "classes of the head"},
      {"image_size", &N::image_size, "", 0, 100000, "pixels of a side of an image"},
      {"patch_size", &N::patch_size, "", 0, 100000, "pixels of a side of a patch"},
      {"image_channels", &N::image_channels, "", 0, 1000, "channels of an image"},
      {"buckets", &N::buckets, "", 0, kMostWidth, "buckets of relative positions"},
      {"activation", one_of<&N::activation>(kActivations), "", 0, 0, "function of a feed-forward layer"},
      {"gated", &N::gated, "", 0, 0, "feed-forward layers multiply two projections"},
      {"tied", &N::tied, "", 0, 0, "the head's matrix is that of the embedding"},
      {"attention_bias", &N::attention_bias, "", 0, 0, "biases of queries, keys and values"},
      {"output_bias", &N::output_bias, "", 0, 0, "a bias behind attention"},
      {"feed_forward_bias", &N::feed_forward_bias, "", 0, 0, "biases of feed-forward layers"},
      {"embedding_dropout", &N::embedding_dropout, "", 0, 0, "dropout behind the embedding"},
      {"attention_dropout", &N::attention_dropout, "", 0, 0, "dropout inside attention"},
      {"hidden_dropout", &N::hidden_dropout, "", 0, 0, "dropout behind layers"},
      {"cache", &N::cache, "", 0, 0, "training copies keys and values into a cache, too"},
  };
  return table;
}

const Record<RunSpec>& run_table() {
  using R = RunSpec;
  static const Record<R> table{
      {"task", one_of<&R::task>(layers::kTasks), "", 0, 0, "what a step is"},
      {"weights", one_of<&R::weights>(layers::kNumbers), "", 0, 0, "number that weights are kept in"},
      {"autocast", one_of<&R::autocast>(layers::kMixedPrecisions), "", 0, 0,
       "number of products in mixed precision"},
      {"optimizer", one_of<&R::optimizer>(layers::kOptimizers), "", 0, 0, "what moves the weights"},
      {"zero_gradients", one_of<&R::zero_gradients>(layers::kZeroGradients), "", 0, 0,
       "when the gradients of the step before are freed"},
      {"recompute_every", &R::recompute_every, "", 0, 10000,
       "of every so many layers the first is recomputed in the backward pass; 0 = none"},
      {"micro_batch", &R::micro_batch, "", 0, kMostWidth,
       "rows of a part whose gradients add up; 0 = the whole batch at once"},
      {"shards", &R::shards, "", 1, 1024, "cards that share weights, gradients and optimizer state"},
      {"adapter_rank", &R::adapter_rank, "", 0, 65536, "rank of adapters, which alone are trained; 0 = none"},
  };
  return table;
}

/// The values of a section that differ from its defaults, and those it must have.
template <class Section>
Json section_json(const Section& section, const Record<Section>& record) {
  const Section defaults;
  Json json = Json::object();
  for (std::size_t i = 0; i < record.fields.size(); ++i) {
    const auto value = record.access[i].load(&section);
    const auto otherwise = record.access[i].load(&defaults);
    if (!value) continue;
    const auto put = [&](const auto& plain) {
      using Plain = std::decay_t<decltype(plain)>;
      const bool same =
          otherwise && std::holds_alternative<Plain>(*otherwise) && std::get<Plain>(*otherwise) == plain;
      if (record.fields[i].required || !same) json[record.fields[i].key] = plain;
    };
    if (const auto* number = std::get_if<std::int64_t>(&*value)) put(*number);
    if (const auto* flag = std::get_if<bool>(&*value)) put(*flag);
    if (const auto* word = std::get_if<std::string>(&*value)) put(*word);
  }
  return json;
}

}  // namespace

std::vector<Row<LayersFile>> layers_model_rows() {
  using F = LayersFile;
  const std::vector<std::string> names{"batch", "seq", "px", "target", "prompt", "new"};
  return {
      {"network", object_of(&LayersSpec::network, network_table()), "", 0, 0, "figures of the network",
       kRequired},
      {"run", object_of(&LayersSpec::run, run_table()), "", 0, 0, "how it runs", kRequired},
      {"parameters", as(FieldKind::bounds, &F::ranges, names), "", 0, 0,
       "ranges of what a step depends on: batch, and seq, px, target, prompt or new", kRequired},
      {"at", as(FieldKind::values, &F::at), "", 0, 0, "values that are asked where nothing else is said"},
  };
}

namespace {

void take_parameter(const LayersFile& file, const std::string& name, LayersSpec& spec,
                    std::vector<Problem>& problems) {
  const auto range = std::find_if(file.ranges.begin(), file.ranges.end(),
                                  [&](const NamedRange& one) { return one.name == name; });
  if (range == file.ranges.end()) {
    problems.push_back({"/parameters", '"' + name + "\" is missing: a range, [smallest, largest]."});
    return;
  }
  if (range->low < 1 || range->high > kLargestValue) {
    problems.push_back({"/parameters/" + name, "reaches beyond 1 to 1000000."});
  }
  spec.parameters.push_back({name, range->low, range->high});
  std::int64_t usual = std::min(std::max<std::int64_t>(range->low, 1), range->high);
  const NamedIntegers at = file.at.value_or(NamedIntegers{});
  for (const auto& [key, value] : at) {
    if (key != name) continue;
    usual = value;
    if (value >= range->low && value <= range->high) continue;
    problems.push_back({"/at/" + name, std::to_string(value) + " is outside the range of this parameter."});
  }
  spec.usual.push_back(usual);
}

}  // namespace

LayersSpec read_layers_spec(LayersFile file, const std::string& where) {
  std::vector<Problem> problems;
  LayersSpec spec = file;
  const auto names = layers::parameter_names(spec.network, spec.run.task);
  for (const std::string& name : names) take_parameter(file, name, spec, problems);
  for (const NamedRange& range : file.ranges) {
    if (std::find(names.begin(), names.end(), range.name) != names.end()) continue;
    problems.push_back({"/parameters/" + range.name,
                        "steps of this network do not depend on it." + suggest_name(range.name, names)});
  }
  for (const auto& [key, value] : file.at.value_or(NamedIntegers{})) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    problems.push_back(
        {"/at/" + key, "steps of this network do not depend on it." + suggest_name(key, names)});
  }
  try {
    layers::check(spec);
  } catch (const InputError& error) {
    problems.insert(problems.end(), error.problems().begin(), error.problems().end());
  }
  for (Problem& problem : problems) problem.where = where + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
  return spec;
}

Json layers_model_json(const LayersSpec& spec, const std::string& about) {
  Json json;
  json["kind"] = "layers";
  json["name"] = spec.name;
  json["about"] = about;
  json["network"] = section_json(spec.network, network_table());
  json["run"] = section_json(spec.run, run_table());
  for (std::size_t i = 0; i < spec.parameters.size(); ++i) {
    const Parameter& range = spec.parameters[i];
    json["parameters"][range.name] = {range.low, range.high};
    json["at"][range.name] = spec.usual[i];
  }
  return json;
}

// ---- what fills the memory

std::vector<MemoryPart> memory_parts(const layers::LayersModel& model, const PredictionQuestion& question,
                                     const Prediction& prediction) {
  const layers::Breakdown sizes = model.breakdown(question.point);
  const RunSpec& run = model.spec().run;
  const bool small_states = run.optimizer == layers::Optimizer::adamw_8bit;
  const bool known_card = !question.gpu->context_assumed();
  const bool written_attention =
      layers::family_of(model.spec().network.architecture) == layers::Family::encoder_decoder;
  std::vector<MemoryPart> parts;
  const auto add = [&parts](const char* name, Bytes bytes, const char* how) {
    if (bytes > 0) parts.push_back({name, bytes, how});
  };
  const auto law_unless = [](bool assumed) { return assumed ? "assumed" : "law"; };
  add("weights", sizes.weights, "law");
  add("gradients", sizes.gradients, "law");
  add("optimizer state", sizes.optimizer, law_unless(small_states));
  add("temporaries of the optimizer", sizes.optimizer_temporary, "law");
  add("activations", sizes.activations, law_unless(written_attention));
  add("logits and loss", sizes.logits, "law");
  add("keys and values", sizes.cache, "law");
  add("gathered shards", sizes.gathered, "law");
  add("workspaces of libraries", sizes.workspaces, law_unless(!known_card));
  const auto above = [](Bytes a, Bytes b) { return a > b ? a - b : 0; };
  add("tails of blocks that are not cut", above(prediction.peak_allocated, sizes.sum()), "law");
  add("cached by the allocator, not in use", above(prediction.peak_reserved, prediction.peak_allocated),
      "law");
  add("CUDA context, outside the allocator", question.outside(), known_card ? "measured" : "assumed");
  return parts;
}

std::vector<std::string> differences_from_recordings(const LayersSpec& spec) {
  using layers::Family;
  const Family family = layers::family_of(spec.network.architecture);
  const RunSpec& run = spec.run;
  std::vector<std::string> told;
  if (family == Family::encoder_decoder) {
    told.emplace_back("attention: taken to be written out, a score for each pair of positions");
  } else if (run.weights == layers::Number::float32 && run.autocast == layers::MixedPrecision::none) {
    told.emplace_back(spec.network.kv_heads < spec.network.heads
                          ? "attention: written out, PyTorch has no kernel for grouped queries in float32"
                          : "attention: taken to be PyTorch's memory-efficient kernel");
  } else {
    told.emplace_back("attention: taken to be cuDNN's fused kernel, as on an H100");
  }
  if (family != Family::vision)
    told.emplace_back("padding: rows are taken to be full, a mask is not counted");
  if (run.task == layers::Task::training && run.zero_gradients == layers::ZeroGradients::before_backward) {
    told.emplace_back("old gradients: taken to live until the backward pass (--zero-grad before-forward)");
  }
  if (run.shards > 1)
    told.emplace_back("shards: taken to be those of fully_shard on each layer and the whole");
  if (run.adapter_rank > 0) told.emplace_back("adapters: taken to be in float32, beside queries and values");
  told.emplace_back("step times: not known");
  return told;
}

}  // namespace vramlab
