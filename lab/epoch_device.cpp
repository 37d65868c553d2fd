#include "lab/epoch_device.hpp"

#include <algorithm>

#include "models/gpu_catalogue.hpp"
#include "sim/memory/allocator_settings.hpp"

namespace vramlab {
namespace {

constexpr Bytes kAssumedContext =
    527_MiB;  // where a card is given by size alone; the H100's is 526.8 MiB (R10.4)

void read_allocator(const Json& allocator, AllocatorSettings& settings, FileProblems& problems) {
  const auto read = [&](const char* key, const auto& take) {
    if (!allocator.contains(key)) return;
    try {
      take(allocator[key].get<std::string>());
    } catch (const InputError& error) {
      for (const Problem& one : error.problems()) {
        problems.add(std::string("/allocator/") + key,
                     one.where.empty() ? one.what : one.where + ": " + one.what);
      }
    }
  };
  read("torch_version", [&](const std::string& text) { settings.torch = parse_torch_version(text); });
  read("conf", [&](const std::string& text) { settings = parse_allocator_settings(text, settings); });
}

}  // namespace

void read_epoch_device(const Json& json, EpochScenario& scenario, FileProblems& problems) {
  const Json& device = json["device"];
  ProcessSetup& process = scenario.setup.process;
  if (json.contains("allocator")) read_allocator(json["allocator"], process.allocator.settings, problems);
  if (device.contains("gpu") == device.contains("total")) {
    problems.add("/device", "give either \"gpu\" (a card of `vramlab gpus`) or \"total\" (its memory).");
    return;
  }
  if (device.contains("gpu")) {
    problems.guarded("/device/gpu", [&] {
      const Gpu& gpu = find_gpu(device["gpu"].get<std::string>(), "/device/gpu");
      scenario.gpu = gpu.name;
      process.card_total = gpu.total;
      process.context_bytes = gpu.context;
    });
  } else {
    process.card_total = size_value(device["total"]);
    process.context_bytes = std::min(kAssumedContext, process.card_total);
    scenario.gpu = format_bytes(process.card_total) + " card";
  }
  if (device.contains("context")) process.context_bytes = size_value(device["context"]);
  if (process.context_bytes > process.card_total) {
    problems.add("/device/context", "the context is larger than the card.");
  }
  if (device.contains("limit")) process.allocator.limit = size_value(device["limit"]);
  const Json others = device.value("others", Json::array());
  for (std::size_t i = 0; i < others.size(); ++i) {
    OtherProcess other{.from = from_seconds(others[i].value("from_s", 0.0)),
                       .to = SimTime::max(),
                       .bytes = size_value(others[i]["bytes"])};
    if (others[i].contains("to_s")) other.to = from_seconds(others[i]["to_s"].get<double>());
    if (other.to <= other.from) {
      problems.add("/device/others/" + std::to_string(i), "\"to_s\" must be later than \"from_s\".");
    }
    scenario.setup.others.push_back(other);
  }
}

}  // namespace vramlab
