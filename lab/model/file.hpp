// Reads workload models from JSON: files such as models/superres-rrdb6.json, or objects inside a scenario.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "lab/scenario/fields.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// The model in the file `path`. Throws InputError with everything that is wrong with it.
std::unique_ptr<WorkloadModel> load_model_file(const std::filesystem::path& path);

/// The model that `json` describes; its "kind" says which sort. `where` is put before the JSON pointers of
/// problems: a file's name and ": ", followed by the pointer of the object inside it if there is one.
std::unique_ptr<WorkloadModel> parse_model(const Json& json, const std::string& where);

/// What a model of one kind may hold.
struct ModelKind {
  std::string name;
  std::string help;  ///< one sentence
  const RecordBase* table = nullptr;
};

/// All kinds, for documents and the JSON schema.
const std::vector<ModelKind>& model_kinds();

}  // namespace vramlab
