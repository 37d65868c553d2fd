// The parts of a scenario that say what runs where: cards, allocator, model, parameters.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "lab/json.hpp"
#include "lab/scenario/file.hpp"
#include "models/workload_model.hpp"
#include "sim/runs/training_loop.hpp"

namespace vramlab {

/// A card as a file has it.
struct DeviceSection {
  std::optional<std::string> gpu;
  std::optional<std::string> profile;
  std::optional<Bytes> total;
  std::optional<Bytes> context;
  std::optional<Bytes> limit;
  std::vector<OtherProcess> others;
};

/// "allocator".
struct AllocatorSection {
  std::optional<std::string> conf;
  std::string torch_version = to_text(AllocatorSettings{}.torch);
  BackendKind backend{};
  std::optional<double> mem_fraction;
  std::optional<bool> preallocate;
};

/// What a file says of cards and their allocators.
struct CardSections {
  DeviceSection device;
  std::vector<DeviceSection> more_devices;
  AllocatorSection allocator;
};

/// "device" and "more_devices", and "allocator".
std::vector<Row<CardSections>> device_rows();
std::vector<Row<CardSections>> allocator_rows();

/// The keys of a card but "others".
std::vector<Row<DeviceSection>> card_rows();

/// The largest size a file may name, above any card there is: 1 TiB.
inline constexpr double kLargestCard = 1099511627776.0;
inline constexpr double kLongestTime = 1e9;  ///< seconds, some 30 years

// What the keys of a workload mean that several kinds have.
inline constexpr const char* kModelHelp =
    "a model file, looked up beside the scenario, here and in the data folder; or a model in place";
inline constexpr const char* kLayersHelp = "how many of the model's layers lie on each card, such as [2, 10]";
inline constexpr const char* kBoundsHelp = "where the parameters may lie (default: the model's range)";

/// What a bare context takes where a card is given by size alone, an assumption: that of the H100 and of the
/// H200 is 526.8 MiB.
inline constexpr Bytes kAssumedContext = 527_MiB;

/// The cards of a scenario.
struct ScenarioCards {
  std::string gpu;                   ///< name of the first, and how many more there are; for people
  bool context_assumed = false;      ///< of one of them
  std::vector<ProcessSetup> cards;   ///< "device", then those of "more_devices"
  std::vector<OtherProcess> others;  ///< on all of them
  std::vector<std::string> notes;    ///< what must be known of their allocator
};

/// Throws InputError at `where` for a `limit` above the `card`: shares of the limit would be of memory that
/// is not there.
void require_limit_on_card(Bytes limit, Bytes card, const std::string& where);

/// Reads what a file says of cards; `file` is the scenario's.
ScenarioCards read_cards(const CardSections& sections, const std::filesystem::path& file,
                         FileProblems& problems);

/// Reads "allocator". A backend in `conf` is that of the options, too.
AllocatorOptions allocator_options(const AllocatorSection& section, FileProblems& problems);

/// What must be known of answers with these options, a sentence each: rules of another version, settings
/// without effect, an allocator that is approximate.
std::vector<std::string> allocator_notes(const AllocatorOptions& options);

/// The model of a workload, spread over cards by `layers` if there are any. Throws InputError; `file` is the
/// scenario's.
std::shared_ptr<const WorkloadModel> read_workload_model(
    const Json& model, const std::optional<std::vector<std::int64_t>>& layers,
    const std::filesystem::path& file);

/// Index of the parameter `name`; empty, and a problem, if the workload has none.
std::optional<std::size_t> parameter_index(const ParameterSpace& space, const std::string& name,
                                           const std::string& pointer, FileProblems& problems);

/// Narrows `space`.
void read_bounds(const NamedRanges& bounds, const std::string& pointer, ParameterSpace& space,
                 FileProblems& problems);

/// A point of `space`. Missing values come from `base`; without it every parameter must be given.
Point read_point(const NamedIntegers& values, const ParameterSpace& space, const std::string& pointer,
                 const Point* base, FileProblems& problems);

}  // namespace vramlab
