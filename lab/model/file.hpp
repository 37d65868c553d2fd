// Reads workload models from JSON: files such as models/superres-rrdb6.json, or objects inside a scenario.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "lab/model/ranks.hpp"
#include "lab/scenario/fields.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// The model in the file `path`. Throws InputError with everything that is wrong with it.
std::unique_ptr<WorkloadModel> load_model_file(const std::filesystem::path& path);

/// The model that `json` describes; its "kind" says which sort. `where` is put before the JSON pointers of
/// problems: a file's name and ": ", followed by the pointer of the object inside it if there is one. Of
/// several ranks it is the one that decides, with the largest recorded number of ranks.
std::unique_ptr<WorkloadModel> parse_model(const Json& json, const std::string& where);

/// The model in the file `path` with `world` ranks: all of them. Without `world` as many as were recorded at
/// most; a model of one process is a rank of its own. Throws InputError if that model is asked for a number
/// of ranks, or nothing is known of so many.
RankWorkloads load_rank_workloads(const std::filesystem::path& path, std::optional<std::uint32_t> world);

/// What a model of one kind may hold.
struct ModelKind {
  std::string name;
  std::string help;  ///< one sentence
  const RecordBase* table = nullptr;
};

/// All kinds, for documents and the JSON schema.
const std::vector<ModelKind>& model_kinds();

}  // namespace vramlab
