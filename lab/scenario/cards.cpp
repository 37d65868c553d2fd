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

const Record<OtherProcess>& other_process_table() {
  using O = OtherProcess;
  static const Record<O> table{
      {"from_s", &O::from, "", 0, kLongestTime, "when it takes the memory, in seconds from the start"},
      {"to_s", &O::to, "", 0, kLongestTime, "when it gives it back, in seconds (default: never)"},
      {"bytes", &O::bytes, "", 0, kLargestCard, "how much it holds", kRequired},
  };
  return table;
}

const Record<DeviceSection>& device_table() {
  static const Record<DeviceSection> table{joined<DeviceSection>(
      card_rows(),
      std::vector<Row<DeviceSection>>{{"others", list_of(&DeviceSection::others, other_process_table()), "",
                                       0, 0, "processes that hold memory of the card for some time"}})};
  return table;
}

const Record<AllocatorSection>& allocator_table() {
  using A = AllocatorSection;
  static const Record<A> table{
      {"conf", &A::conf, "", 0, 0,
       "the string of PYTORCH_ALLOC_CONF, before 2.9 PYTORCH_CUDA_ALLOC_CONF (default: empty)"},
      {"torch_version", &A::torch_version, "", 0, 0, "whose allocator it is, from 2.1 on"},
      {"backend", one_of<&A::backend>(backend_names()), "", 0, 0,
       "what serves the program: PyTorch's caching allocator or another one"},
      {"mem_fraction", &A::mem_fraction, "", 0.001, 1,
       "of `bfc`: its share of the card, XLA_PYTHON_CLIENT_MEM_FRACTION (default: 0.75, that of JAX)"},
      {"preallocate", &A::preallocate, "", 0, 0,
       "of `bfc`: whether it takes its share at once, XLA_PYTHON_CLIENT_PREALLOCATE (default: yes)"},
  };
  return table;
}

/// Reads one card after another.
class CardsReader {
 public:
  CardsReader(const CardSections& sections, const std::filesystem::path& file, FileProblems& problems)
      : sections_(sections), file_(file), problems_(problems) {}

  ScenarioCards read() {
    problems_.guarded("/allocator", [&] { allocator_ = allocator_options(sections_.allocator, problems_); });
    cards_.notes = allocator_notes(allocator_);
    read_device(sections_.device, "/device");
    const std::vector<DeviceSection>& more = sections_.more_devices;
    for (std::size_t i = 0; i < more.size(); ++i) {
      read_device(more[i], "/more_devices/" + std::to_string(i));
    }
    if (!more.empty()) cards_.gpu += " and " + std::to_string(more.size()) + " more";
    return std::move(cards_);
  }

 private:
  void read_device(const DeviceSection& device, const std::string& pointer) {
    cards_.cards.push_back({.allocator = allocator_});
    ProcessSetup& process = cards_.cards.back();
    if (int{device.gpu.has_value()} + int{device.profile.has_value()} + int{device.total.has_value()} != 1) {
      problems_.add(pointer,
                    "give one of \"gpu\" (a card of `vramlab gpus`), \"profile\" (a file of `vramlab "
                    "validate-device`) and \"total\" (its memory).");
      return;
    }
    std::string name;
    bool measured = device.context.has_value();
    if (device.gpu) {
      problems_.guarded(pointer + "/gpu", [&] {
        const Gpu& gpu = find_gpu(*device.gpu, pointer + "/gpu");
        name = gpu.name;
        process.card_total = gpu.total;
        process.context_bytes = gpu.context;
        measured |= !gpu.context_assumed();
      });
    } else if (device.profile) {
      problems_.guarded(pointer + "/profile", [&] {
        const DeviceProfile profile =
            read_device_profile(data_file(*device.profile, file_, pointer + "/profile"));
        name = profile.name;
        process.card_total = profile.total;
        process.context_bytes = profile.context;
        process.driver_times = profile.times;
        measured = true;
      });
    } else {
      process.card_total = *device.total;
      process.context_bytes = std::min(kAssumedContext, process.card_total);
      name = format_bytes(process.card_total) + " card";
    }
    if (cards_.gpu.empty()) cards_.gpu = name;
    cards_.context_assumed |= !measured;
    if (device.context) process.context_bytes = *device.context;
    if (process.context_bytes > process.card_total) {
      problems_.add(pointer + "/context", "the context is larger than the card.");
    }
    if (device.limit) {
      problems_.guarded(pointer + "/limit", [&] {
        if (process.card_total > 0) require_limit_on_card(*device.limit, process.card_total, {});
      });
      process.allocator.limit = *device.limit;
    }
    for (std::size_t i = 0; i < device.others.size(); ++i) {
      if (device.others[i].to <= device.others[i].from) {
        problems_.add(pointer + "/others/" + std::to_string(i), "\"to_s\" must be later than \"from_s\".");
      }
      cards_.others.push_back(device.others[i]);
      cards_.others.back().card = cards_.cards.size() - 1;
    }
  }

  const CardSections& sections_;
  const std::filesystem::path& file_;
  FileProblems& problems_;
  AllocatorOptions allocator_;
  ScenarioCards cards_;
};

}  // namespace

std::vector<Row<DeviceSection>> card_rows() {
  using D = DeviceSection;
  return {
      {"gpu", &D::gpu, "", 0, 0, "a card of `vramlab gpus` (or give `profile` or `total`)"},
      {"profile", &D::profile, "", 0, 0,
       "a file that `vramlab validate-device --profile` wrote, looked up as a model is"},
      {"total", &D::total, "", 1, kLargestCard, "the card's memory, where `gpu` names none"},
      {"context", &D::context, "", 0, kLargestCard,
       "what a bare context takes of it (default: the card's, else 527 MiB, assumed)"},
      {"limit", &D::limit, "", 1, kLargestCard,
       "what the allocator may reserve, as set by a memory fraction (default: no limit)"},
  };
}

std::vector<Row<CardSections>> device_rows() {
  return {{"device", object_of(&CardSections::device, device_table()), "", 0, 0, "the card", kRequired},
          {"more_devices", list_of(&CardSections::more_devices, device_table()), "", 0, 0,
           "further cards of the same workload: parts of its layers, or a whole copy on each"}};
}

std::vector<Row<CardSections>> allocator_rows() {
  return {{"allocator", object_of(&CardSections::allocator, allocator_table()), "", 0, 0,
           "the allocator and its settings"}};
}

void require_limit_on_card(Bytes limit, Bytes card, const std::string& where) {
  if (limit <= card) return;
  throw InputError(where, "a limit of " + format_bytes(limit) + " is more than the " + format_bytes(card) +
                              " of the card. Allowed is up to " + std::to_string(card) +
                              " bytes; leave it out for no limit.");
}

ScenarioCards read_cards(const CardSections& sections, const std::filesystem::path& file,
                         FileProblems& problems) {
  return CardsReader{sections, file, problems}.read();
}

AllocatorOptions allocator_options(const AllocatorSection& section, FileProblems& problems) {
  AllocatorOptions options;
  AllocatorSettings& settings = options.settings;
  const auto read = [&](const char* key, const auto& take) {
    try {
      take();
    } catch (const InputError& error) {
      for (const Problem& one : error.problems()) {
        problems.add(std::string("/allocator/") + key,
                     one.where.empty() ? one.what : one.where + ": " + one.what);
      }
    }
  };
  read("torch_version", [&] { settings.torch = parse_torch_version(section.torch_version); });
  if (section.conf) read("conf", [&] { settings = parse_allocator_settings(*section.conf, settings); });
  options.backend.kind = section.backend;
  if (settings.backend == AllocatorBackend::cuda_malloc_async) {
    if (options.backend.is_native()) options.backend.kind = BackendKind::cuda_malloc_async;
    if (options.backend.kind != BackendKind::cuda_malloc_async) {
      problems.add("/allocator/conf",
                   "asks for cudaMallocAsync, and \"backend\" for another allocator. Leave one out.");
    }
    settings.backend = AllocatorBackend::native;  // of the caching allocator, which serves nothing then
  }
  const bool is_bfc = options.backend.kind == BackendKind::bfc;
  if (!is_bfc && (section.mem_fraction || section.preallocate)) {
    problems.add(section.mem_fraction ? "/allocator/mem_fraction" : "/allocator/preallocate",
                 "is of \"backend\": \"bfc\" only.");
  }
  options.backend.share = section.mem_fraction.value_or(options.backend.share);
  options.backend.preallocate = section.preallocate.value_or(options.backend.preallocate);
  return options;
}

std::vector<std::string> allocator_notes(const AllocatorOptions& options) {
  if (!options.backend.is_native()) {
    std::vector<std::string> notes{backend_note(options.backend)};
    const std::string& conf = options.settings.text;
    if (!conf.empty() && conf != "backend:cudaMallocAsync") {
      notes.push_back('"' + conf + "\" is of PyTorch's caching allocator: it has no effect on this one.");
    }
    return notes;
  }
  std::vector<std::string> notes = keys_without_effect(options.settings.text);
  const std::string newer = newer_version_note(options.settings.torch);
  if (!newer.empty()) notes.push_back(newer);
  return notes;
}

std::shared_ptr<const WorkloadModel> read_workload_model(
    const Json& json, const std::optional<std::vector<std::int64_t>>& layers,
    const std::filesystem::path& file) {
  auto model = scenario_model(json, file, "/workload/model");
  if (!layers) return model;
  const auto* recorded = dynamic_cast<const RecordedModel*>(model.get());
  if (recorded == nullptr) {
    throw InputError("/workload/layers", "only recorded models have layers that can be told apart.");
  }
  try {
    return std::make_shared<LayerSplit>(*recorded, *layers);
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

void read_bounds(const NamedRanges& bounds, const std::string& pointer, ParameterSpace& space,
                 FileProblems& problems) {
  for (const auto& [key, low, high] : bounds) {
    const auto index = parameter_index(space, key, pointer + "/" + key, problems);
    if (!index) continue;
    Parameter& parameter = space.parameters[*index];
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

Point read_point(const NamedIntegers& values, const ParameterSpace& space, const std::string& pointer,
                 const Point* base, FileProblems& problems) {
  const auto& parameters = space.parameters;
  Point point = base != nullptr ? *base : Point(parameters.size());
  std::vector<bool> given(parameters.size(), base != nullptr);
  for (const auto& [key, value] : values) {
    const auto index = parameter_index(space, key, pointer + "/" + key, problems);
    if (!index) continue;
    given[*index] = true;
    point[*index] = value;
    const Parameter& parameter = parameters[*index];
    if (point[*index] < parameter.low || point[*index] > parameter.high) {
      problems.add(pointer + "/" + key, std::to_string(value) + " is out of bounds; allowed is " +
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
