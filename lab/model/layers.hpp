// Models of the kind "layers": a network's figures and options in a file, and what is known of its steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/model/prediction.hpp"
#include "lab/scenario/fields.hpp"
#include "models/layers/layers_model.hpp"

namespace vramlab {

/// Such a model as its file has it.
struct LayersFile : layers::LayersSpec {
  NamedRanges ranges;
  std::optional<NamedIntegers> at;
};

/// Keys of the kind "layers", beside those that all models have.
std::vector<Row<LayersFile>> layers_model_rows();

/// What was read, as a model. Throws InputError with JSON pointers under `where`.
layers::LayersSpec read_layers_spec(LayersFile file, const std::string& where);

/// The file of such a model.
Json layers_model_json(const layers::LayersSpec& spec, const std::string& about);

/// One thing that takes memory at the peak of a step.
struct MemoryPart {
  std::string name;
  Bytes bytes = 0;
  /// "law": from formulas of the network's figures and of kernels; "measured": on such a card; "assumed":
  /// neither, see the part's name and docs/no-gpu.md.
  std::string how;
};

/// What fills the card of `question` at the peak of the step that was predicted. Parts of the allocator and
/// of the context are among them; they add up to peak reserved and what lies outside.
std::vector<MemoryPart> memory_parts(const layers::LayersModel& model, const PredictionQuestion& question,
                                     const Prediction& prediction);

/// In which ways steps of such a network may differ from those of a recording, one sentence each.
std::vector<std::string> differences_from_recordings(const layers::LayersSpec& spec);

}  // namespace vramlab
