#include "models/layers/spec.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace vramlab::layers {

Family family_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::bert:
      return Family::encoder;
    case Architecture::vit:
      return Family::vision;
    case Architecture::t5:
      return Family::encoder_decoder;
    case Architecture::llama:
    case Architecture::mistral:
    case Architecture::qwen2:
    case Architecture::gpt2:
      break;
  }
  return Family::decoder;
}

std::vector<std::string> parameter_names(const NetworkSpec& network, Task task) {
  if (task == Task::generation) return {"batch", "prompt", "new"};
  switch (family_of(network.architecture)) {
    case Family::vision:
      return {"batch", "px"};
    case Family::encoder_decoder:
      return {"batch", "seq", "target"};
    case Family::decoder:
    case Family::encoder:
      break;
  }
  return {"batch", "seq"};
}

std::int64_t largest_simulated(const NetworkSpec& network, const RunSpec& run) {
  const std::int64_t layers = std::max<std::int64_t>(network.layers + network.decoder_layers, 1);
  if (run.task == Task::generation) return kMostLayersGenerated / layers;
  constexpr std::int64_t kAny = std::int64_t{1} << 40;
  if (run.task != Task::training || run.micro_batch == 0) return kAny;
  return product({run.micro_batch, kMostLayersTrained / layers});
}

namespace {

class Checks {
 public:
  explicit Checks(const LayersSpec& spec) : spec_(spec), n_(spec.network), run_(spec.run) {}

  std::vector<Problem> problems() {
    counts();
    attention();
    options();
    ranges();
    return std::move(problems_);
  }

 private:
  void problem(const std::string& where, const std::string& what) { problems_.push_back({where, what}); }

  void least(const char* key, std::int64_t value, std::int64_t least) {
    if (value >= least) return;
    problem(std::string("/network/") + key,
            "is " + std::to_string(value) + "; this network needs at least " + std::to_string(least) + ".");
  }

  void counts() {
    const Family family = family_of(n_.architecture);
    if (family != Family::vision) least("vocabulary", n_.vocabulary, 1);
    const bool learnt = n_.architecture == Architecture::gpt2 || family == Family::encoder;
    if (learnt) least("positions", n_.positions, 1);
    if (family == Family::encoder) least("token_types", n_.token_types, 1);
    if (family == Family::encoder_decoder) least("decoder_layers", n_.decoder_layers, 1);
    if (family == Family::encoder_decoder) least("buckets", n_.buckets, 1);
    if (n_.head == Head::classes) least("labels", n_.labels, 1);
    if (family != Family::vision) return;
    least("patch_size", n_.patch_size, 1);
    least("image_channels", n_.image_channels, 1);
    if (n_.patch_size > 0) least("image_size", n_.image_size, n_.patch_size);
  }

  void attention() {
    if (n_.kv_heads < 1 || n_.heads % n_.kv_heads != 0) {
      problem("/network/kv_heads",
              std::to_string(n_.kv_heads) + " does not divide the " + std::to_string(n_.heads) + " heads.");
    }
  }

  void ranges() {
    const std::string counted = run_.task == Task::generation ? "new" : "batch";
    for (const Parameter& range : spec_.parameters) {
      const std::string where = "/parameters/" + range.name;
      if (range.name == "px" && range.low < n_.patch_size) {
        problem(where, "images must be as large as a patch, " + std::to_string(n_.patch_size) + " pixels.");
      }
      const std::int64_t most = largest_simulated(n_, run_);
      if (range.name != counted || range.high <= most) continue;
      problem(where, "a step with more than " + std::to_string(most) + " is too long to simulate.");
    }
  }

  void options() {
    const Family family = family_of(n_.architecture);
    if (run_.task == Task::generation && family != Family::decoder) {
      problem("/run/task", "\"generation\" is for decoders. Write training or forward.");
    }
    if (run_.task == Task::generation && n_.head != Head::language_model) {
      problem("/run/task", "\"generation\" needs the head language-model.");
    }
    if (run_.autocast != MixedPrecision::none && run_.weights != Number::float32) {
      problem("/run/autocast", "mixed precision keeps weights in float32; here they are in " +
                                   kNumbers[static_cast<std::size_t>(run_.weights)] +
                                   ". Leave one of them out.");
    }
    if (run_.shards > 1 && run_.task != Task::training) {
      problem("/run/shards", "shards are known in training only.");
    }
    if (run_.shards > 1 && run_.micro_batch > 0) {
      problem("/run/micro_batch",
              "does not go with shards: what they do between parts of a batch is not known.");
    }
    if (run_.recompute_every > 0 && run_.task != Task::training) {
      problem("/run/recompute_every", "goes with training: without a backward pass nothing is saved.");
    }
  }

  const LayersSpec& spec_;
  const NetworkSpec& n_;
  const RunSpec& run_;
  std::vector<Problem> problems_;
};

}  // namespace

void check(const LayersSpec& spec) {
  auto problems = Checks(spec).problems();
  if (!problems.empty()) throw InputError(std::move(problems));
}

}  // namespace vramlab::layers
