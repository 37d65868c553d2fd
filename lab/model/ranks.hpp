// Models of several ranks: their files, and the ranks of one number as workloads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lab/model/measured_grid.hpp"
#include "lab/model/prediction.hpp"
#include "lab/scenario/fields.hpp"
#include "models/ranks.hpp"
#include "models/workload_model.hpp"

namespace vramlab {

/// The file of the models of several ranks; callers add about, card and the like.
Json rank_models_json(const RankModels& models, const std::string& name);

/// Reads what `rank_models_json` wrote. Throws InputError with `where` and the JSON pointer for what is
/// damaged.
RankModels read_rank_models(const Json& json, const std::string& where);

/// What a file of the kind "ranks" keeps of itself.
struct RanksFile {
  std::string name;
};

/// Keys of the kind "ranks", beside those that all models have.
std::vector<Row<RanksFile>> rank_model_rows();

/// The ranks of a program with one number of ranks.
struct RankWorkloads {
  std::uint32_t world = 1;
  std::vector<std::uint32_t> recorded;  ///< numbers of ranks that were; empty = the model has but one process
  std::vector<std::uint32_t> ranks;     ///< by model; as recorded, the others are taken to be like these
  std::vector<std::unique_ptr<WorkloadModel>> models;

  [[nodiscard]] bool of_ranks() const { return !recorded.empty(); }
  /// This number of ranks was not recorded.
  [[nodiscard]] bool extrapolated() const;
};

/// The ranks of a program with `world` ranks; without it, with the largest recorded number. Throws InputError
/// if nothing is known of so many.
RankWorkloads rank_workloads(const RankModels& models, std::optional<std::uint32_t> world);

/// The rank that decides: one that does not fit, then the one with the highest reserved and allocated peak;
/// the first of equals.
std::size_t deciding_rank(const std::vector<Prediction>& predictions);

/// The one of `workloads` that decides at the largest recorded parameters, on the largest card of the list.
std::unique_ptr<WorkloadModel> deciding_workload(RankWorkloads workloads);

/// What the ranks say of a grid that was measured on one of them: for each row the one with the highest
/// reserved peak.
std::vector<GridPrediction> replay_grid(const MeasuredGrid& grid, const RankWorkloads& workloads);

}  // namespace vramlab
