#include "lab/scenario/cards.hpp"

#include <algorithm>

#include "lab/model/file.hpp"
#include "lab/scenario/device_profile.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"
#include "models/gpu_catalogue.hpp"
#include "models/layer_split.hpp"
#include "sim/memory/caching/allocator_settings.hpp"

namespace vramlab {
namespace {

constexpr Bytes kAssumedContext =
    527_MiB;  // where a card is given by size alone; the H100's is 526.8 MiB (R10.4)

/// Reads one card after another.
class CardsReader {
 public:
  CardsReader(const Json& json, const std::filesystem::path& file, FileProblems& problems)
      : json_(json), file_(file), problems_(problems) {}

  ScenarioCards read() {
    problems_.guarded("/allocator", [&] { allocator_.settings = allocator_settings(json_, problems_); });
    read_device(json_["device"], "/device");
    const Json more = json_.value("more_devices", Json::array());
    for (std::size_t i = 0; i < more.size(); ++i) {
      read_device(more[i], "/more_devices/" + std::to_string(i));
    }
    if (!more.empty()) cards_.gpu += " and " + std::to_string(more.size()) + " more";
    return std::move(cards_);
  }

 private:
  void read_device(const Json& device, const std::string& pointer) {
    cards_.cards.push_back({.allocator = allocator_});
    ProcessSetup& process = cards_.cards.back();
    if (device.contains("gpu") + device.contains("profile") + device.contains("total") != 1) {
      problems_.add(pointer,
                    "give one of \"gpu\" (a card of `vramlab gpus`), \"profile\" (a file of `vramlab "
                    "validate-device`) and \"total\" (its memory).");
      return;
    }
    if (device.contains("gpu")) {
      problems_.guarded(pointer + "/gpu", [&] {
        const Gpu& gpu = find_gpu(device["gpu"].get<std::string>(), pointer + "/gpu");
        if (cards_.gpu.empty()) cards_.gpu = gpu.name;
        process.card_total = gpu.total;
        process.context_bytes = gpu.context;
      });
    } else if (device.contains("profile")) {
      problems_.guarded(pointer + "/profile", [&] {
        read_profile(device["profile"].get<std::string>(), pointer + "/profile", process);
      });
    } else {
      process.card_total = size_value(device["total"]);
      process.context_bytes = std::min(kAssumedContext, process.card_total);
      if (cards_.gpu.empty()) cards_.gpu = format_bytes(process.card_total) + " card";
    }
    if (device.contains("context")) process.context_bytes = size_value(device["context"]);
    if (process.context_bytes > process.card_total) {
      problems_.add(pointer + "/context", "the context is larger than the card.");
    }
    if (device.contains("limit")) process.allocator.limit = size_value(device["limit"]);
    if (device.contains("others")) read_others(device["others"], pointer + "/others");
  }

  void read_profile(const std::string& name, const std::string& pointer, ProcessSetup& process) {
    const auto path = find_data_file(name, file_);
    if (!path) {
      throw InputError(pointer,
                       "there is no file \"" + name + "\" beside the scenario, here or in the data folder.");
    }
    const DeviceProfile profile = read_device_profile(*path);
    if (cards_.gpu.empty()) cards_.gpu = profile.name;
    process.card_total = profile.total;
    process.context_bytes = profile.context;
    process.driver_times = profile.times;
  }

  void read_others(const Json& others, const std::string& pointer) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      OtherProcess other{.from = from_seconds(others[i].value("from_s", 0.0)),
                         .to = SimTime::max(),
                         .bytes = size_value(others[i]["bytes"]),
                         .card = cards_.cards.size() - 1};
      if (others[i].contains("to_s")) other.to = from_seconds(others[i]["to_s"].get<double>());
      if (other.to <= other.from) {
        problems_.add(pointer + "/" + std::to_string(i), "\"to_s\" must be later than \"from_s\".");
      }
      cards_.others.push_back(other);
    }
  }

  const Json& json_;
  const std::filesystem::path& file_;
  FileProblems& problems_;
  AllocatorOptions allocator_;
  ScenarioCards cards_;
};

}  // namespace

ScenarioCards read_cards(const Json& json, const std::filesystem::path& file, FileProblems& problems) {
  return CardsReader{json, file, problems}.read();
}

std::shared_ptr<const WorkloadModel> read_workload_model(const Json& workload,
                                                         const std::filesystem::path& file) {
  auto model = scenario_model(workload["model"], file, "/workload/model");
  if (!workload.contains("layers")) return model;
  const auto* recorded = dynamic_cast<const RecordedModel*>(model.get());
  if (recorded == nullptr) {
    throw InputError("/workload/layers", "only recorded models have layers that can be told apart.");
  }
  std::vector<std::int64_t> layers;
  for (const Json& count : workload["layers"]) layers.push_back(count.get<std::int64_t>());
  try {
    return std::make_shared<LayerSplit>(*recorded, std::move(layers));
  } catch (const InputError& error) {
    throw InputError("/workload/layers", error.problems().front().what);
  }
}

std::optional<std::size_t> parameter_index(const ParameterSpace& space, const std::string& name,
                                           const std::string& pointer, FileProblems& problems) {
  const auto index = space.find(name);
  if (index) return index;
  std::vector<std::string> known;
  for (const Parameter& parameter : space.parameters) known.push_back(parameter.name);
  problems.add(pointer, "the workload has no parameter \"" + name + "\"." + suggest_name(name, known));
  return std::nullopt;
}

void read_bounds(const Json& bounds, const std::string& pointer, ParameterSpace& space,
                 FileProblems& problems) {
  for (const auto& [key, range] : bounds.items()) {
    const auto index = parameter_index(space, key, pointer + "/" + key, problems);
    if (!index) continue;
    Parameter& parameter = space.parameters[*index];
    const auto low = range[0].get<std::int64_t>();
    const auto high = range[1].get<std::int64_t>();
    if (low < parameter.low || high > parameter.high) {
      problems.add(pointer + "/" + key, "[" + std::to_string(low) + ", " + std::to_string(high) +
                                            "] goes beyond the model's range, [" +
                                            std::to_string(parameter.low) + ", " +
                                            std::to_string(parameter.high) + "].");
      continue;
    }
    parameter.low = low;
    parameter.high = high;
  }
}

Point read_point(const Json& values, const ParameterSpace& space, const std::string& pointer,
                 const Point* base, FileProblems& problems) {
  const auto& parameters = space.parameters;
  Point point = base != nullptr ? *base : Point(parameters.size());
  std::vector<bool> given(parameters.size(), base != nullptr);
  for (const auto& [key, value] : values.items()) {
    const auto index = parameter_index(space, key, pointer + "/" + key, problems);
    if (!index) continue;
    given[*index] = true;
    point[*index] = value.get<std::int64_t>();
    const Parameter& parameter = parameters[*index];
    if (point[*index] < parameter.low || point[*index] > parameter.high) {
      problems.add(pointer + "/" + key, value.dump() + " is out of bounds; allowed is " +
                                            std::to_string(parameter.low) + " to " +
                                            std::to_string(parameter.high) + ".");
    }
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) problems.add(pointer, "\"" + parameters[i].name + "\" is missing.");
  }
  return point;
}

}  // namespace vramlab
