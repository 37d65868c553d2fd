#include "lab/model/ranks.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "lab/model/file.hpp"
#include "lab/model/recorded.hpp"
#include "models/gpu_catalogue.hpp"
#include "models/recorded_model.hpp"
#include "recordings/exact_json.hpp"

namespace vramlab {
namespace {

Json fewer_json(const FewerRanks& fewer) {
  return {{"world", fewer.world},
          {"forms", size_forms_json(fewer.forms)},
          {"tensors", fewer.tensors},
          {"extras", fewer.extras},
          {"build", fewer.build}};
}

FewerRanks read_fewer(const Json& json) {
  FewerRanks fewer{.world = exact<std::uint32_t>(json.at("world")),
                   .forms = read_size_forms(json.at("forms")),
                   .tensors = exact<std::vector<std::int32_t>>(json.at("tensors")),
                   .extras = exact<std::vector<Bytes>>(json.at("extras")),
                   .build = exact<std::vector<std::int64_t>>(json.at("build"))};
  for (const SizeForm& form : fewer.forms) {
    const bool is_whole = std::all_of(form.terms.begin(), form.terms.end(), [](const SizeTerm& term) {
      return term.denominator >= 1 && term.denominator <= kMostDenominator;
    });
    if (!is_whole || form.unit < 1) throw InputError("", "a form of fewer ranks is damaged.");
  }
  return fewer;
}

RankModel read_rank(const Json& json, const std::string& place) {
  try {
    const Json& recorded = json.at("model");
    if (!recorded.is_object() || recorded.value("kind", "") != "recorded") {
      throw InputError("", "its model is not of the kind \"recorded\".");
    }
    static_cast<void>(parse_model(recorded, place + "/model"));  // says where a model is damaged
    RankModel model{.place = {exact<std::uint32_t>(json.at("world")), exact<std::uint32_t>(json.at("rank"))},
                    .spec = read_recorded_spec(recorded, place + "/model")};
    if (json.contains("fewer")) model.fewer = read_fewer(json["fewer"]);
    return model;
  } catch (const InputError& error) {
    if (!error.problems().front().where.empty()) throw;
    throw InputError(place, error.problems().front().what);
  } catch (const nlohmann::json::exception&) {
    throw InputError(place, "is damaged. Fit the model again (vramlab fit).");
  }
}

}  // namespace

Json rank_models_json(const RankModels& models, const std::string& name) {
  const RankModel& last = models.all().back();
  const Json ranges = recorded_model_json(last.spec);
  Json json;
  json["kind"] = "ranks";
  json["version"] = 1;
  json["name"] = name;
  json["parameters"] = ranges["parameters"];
  json["recorded_range"] = ranges["recorded_range"];
  for (const RankModel& model : models.all()) {
    Json& one = json["models"][fmt::format("{} of {}", model.place.rank, model.place.world)];
    one["world"] = model.place.world;
    one["rank"] = model.place.rank;
    if (model.fewer) one["fewer"] = fewer_json(*model.fewer);
    one["model"] = recorded_model_json(model.spec);
  }
  return json;
}

RankModels read_rank_models(const Json& json, const std::string& where) {
  std::vector<RankModel> models;
  for (const auto& [key, one] : json["models"].items()) {
    models.push_back(read_rank(one, where + "/models/" + key));
  }
  try {
    return RankModels(std::move(models));
  } catch (const InputError& error) {
    throw InputError(where + "/models", error.problems().front().what);
  }
}

std::vector<Row<RanksFile>> rank_model_rows() {
  using R = RanksFile;
  return {
      {"version", unkept<R>(FieldKind::integer), "", 1, 1,
       "version of the format, 1; a model of another version must be fitted again", kRequired},
      {"card", unkept_object<R>(), "", 0, 0, "what the model was made of"},
      {"parameters", unkept<R>(FieldKind::bounds), "", 0, 0, "ranges that may be asked for", kRequired},
      {"recorded_range", unkept<R>(FieldKind::bounds), "", 0, 0, "ranges that were recorded", kRequired},
      {"models", unkept_object<R>(), "", 0, 0, "the model of each recorded rank, as vramlab fit writes it",
       kRequired},
  };
}

bool RankWorkloads::extrapolated() const {
  return of_ranks() && std::find(recorded.begin(), recorded.end(), world) == recorded.end();
}

RankWorkloads rank_workloads(const RankModels& models, std::optional<std::uint32_t> world) {
  RankWorkloads workloads{.recorded = models.worlds()};
  workloads.world = world.value_or(workloads.recorded.back());
  for (RankModel& model : models.at(workloads.world)) {
    workloads.ranks.push_back(model.place.rank);
    workloads.models.push_back(std::make_unique<RecordedModel>(std::move(model.spec)));
  }
  return workloads;
}

std::size_t deciding_rank(const std::vector<Prediction>& predictions) {
  const auto weight = [](const Prediction& one) {
    return std::tuple{!one.fits, one.peak_reserved, one.peak_allocated};
  };
  const auto most = std::max_element(predictions.begin(), predictions.end(),
                                     [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
  return static_cast<std::size_t>(most - predictions.begin());
}

std::unique_ptr<WorkloadModel> deciding_workload(RankWorkloads workloads) {
  const auto cards = gpu_catalogue();
  const Gpu& largest = *std::max_element(cards.begin(), cards.end(),
                                         [](const Gpu& a, const Gpu& b) { return a.total < b.total; });
  std::vector<Prediction> predictions;
  for (const auto& model : workloads.models) {
    PredictionQuestion question(*model);
    question.gpu = &largest;
    if (const auto* recorded = dynamic_cast<const RecordedModel*>(model.get())) {
      for (std::size_t i = 0; i < question.point.size(); ++i)
        question.point[i] = recorded->spec().recorded[i].high;
    }
    predictions.push_back(predict_step(question));
  }
  return std::move(workloads.models[deciding_rank(predictions)]);
}

std::vector<GridPrediction> replay_grid(const MeasuredGrid& grid, const RankWorkloads& workloads) {
  std::vector<GridPrediction> highest;
  for (const auto& model : workloads.models) {
    std::vector<GridPrediction> of_rank = replay_grid(grid, *model);
    if (highest.empty()) highest = of_rank;
    for (std::size_t row = 0; row < of_rank.size(); ++row) {
      if (of_rank[row].peak_reserved > highest[row].peak_reserved) highest[row] = std::move(of_rank[row]);
    }
  }
  return highest;
}

}  // namespace vramlab
