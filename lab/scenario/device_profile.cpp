#include "lab/scenario/device_profile.hpp"

#include <vector>

#include "core/error.hpp"
#include "lab/scenario/fields.hpp"

namespace vramlab {
namespace {

using Kind = FieldKind;

constexpr double kLargest = 1099511627776.0;  // 1 TiB, above any card there is
constexpr double kLongest = 1e12;             // ns

struct TimeList {
  const char* key;
  const char* help;
  std::vector<MeasuredTime> DriverTimes::*times;
};

constexpr TimeList kTimeLists[] = {
    {"malloc", "cudaMalloc, by size", &DriverTimes::mallocs},
    {"free", "cudaFree, by size", &DriverTimes::frees},
    {"create", "creating one physical page, by its size", &DriverTimes::creates},
    {"map", "mapping, by size", &DriverTimes::maps},
    {"unmap", "unmapping, by size", &DriverTimes::unmaps},
};

std::vector<Field> time_fields() {
  return {
      {.key = "bytes", .kind = Kind::integer, .help = "size", .required = true, .low = 1, .high = kLargest},
      {.key = "ns",
       .kind = Kind::integer,
       .help = "median time",
       .required = true,
       .low = 0,
       .high = kLongest}};
}

std::vector<Field> list_fields() {
  std::vector<Field> fields;
  for (const TimeList& list : kTimeLists) {
    fields.push_back(
        {.key = list.key, .kind = Kind::list, .help = list.help, .required = true, .fields = time_fields()});
  }
  return fields;
}

Field size_field(const char* key, const char* help, double low) {
  return {.key = key, .kind = Kind::integer, .help = help, .required = true, .low = low, .high = kLargest};
}

std::vector<Field> profile_fields() {
  return {
      {.key = "version",
       .kind = Kind::integer,
       .help = "of this format",
       .required = true,
       .low = 1,
       .high = 1},
      {.key = "name", .kind = Kind::text, .help = "the card, as its maker writes it", .required = true},
      {.key = "driver", .kind = Kind::text, .help = "its version", .required = true},
      size_field("total_bytes", "as cudaMemGetInfo reports it", 1),
      size_field("context_bytes", "what a process takes before its first allocation", 0),
      size_field("granularity_bytes", "smallest unit of physical memory", 1),
      {.key = "times",
       .kind = Kind::object,
       .help = "of driver calls",
       .required = true,
       .fields = list_fields()},
  };
}

// Times are interpolated between neighbours.
void check_rising(const Json& list, const std::string& pointer, std::vector<Problem>& problems) {
  if (list.size() < 2) problems.push_back({pointer, "needs at least two sizes."});
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (list[i]["bytes"] > list[i - 1]["bytes"]) continue;
    problems.push_back({pointer + "/" + std::to_string(i), "sizes must rise from entry to entry."});
  }
}

}  // namespace

Json profile_json(const DeviceProfile& profile) {
  Json json{{"version", 1},
            {"name", profile.name},
            {"driver", profile.driver},
            {"total_bytes", profile.total},
            {"context_bytes", profile.context},
            {"granularity_bytes", profile.granularity}};
  for (const TimeList& list : kTimeLists) {
    Json& rows = json["times"][list.key] = Json::array();
    for (const MeasuredTime& row : profile.times.*list.times) {
      rows.push_back({{"bytes", row.size}, {"ns", row.time.count()}});
    }
  }
  return json;
}

DeviceProfile parse_device_profile(const Json& json, const std::string& file) {
  std::vector<Problem> problems;
  check_fields(json, profile_fields(), false, "", problems);
  if (problems.empty()) {
    for (const TimeList& list : kTimeLists) {
      check_rising(json["times"][list.key], std::string{"/times/"} + list.key, problems);
    }
  }
  for (Problem& problem : problems) problem.where = file + ": " + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));

  DeviceProfile profile{.name = json["name"].get<std::string>(),
                        .driver = json["driver"].get<std::string>(),
                        .total = json["total_bytes"].get<Bytes>(),
                        .context = json["context_bytes"].get<Bytes>(),
                        .granularity = json["granularity_bytes"].get<Bytes>(),
                        .times = {}};
  for (const TimeList& list : kTimeLists) {
    for (const Json& row : json["times"][list.key]) {
      (profile.times.*list.times)
          .push_back({row["bytes"].get<Bytes>(), SimTime{row["ns"].get<std::int64_t>()}});
    }
  }
  return profile;
}

DeviceProfile read_device_profile(const std::filesystem::path& file) {
  return parse_device_profile(read_json_file(file), file.string());
}

}  // namespace vramlab
