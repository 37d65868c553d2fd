#include "lab/scenario/device_profile.hpp"

#include <vector>

#include "core/error.hpp"
#include "lab/scenario/fields.hpp"

namespace vramlab {
namespace {

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

const Record<MeasuredTime>& time_table() {
  const auto store = [](void* section, const FieldValue& value) {
    static_cast<MeasuredTime*>(section)->time = SimTime{std::get<std::int64_t>(value)};
  };
  static const Record<MeasuredTime> table{
      {"bytes", as(FieldKind::integer, &MeasuredTime::size), "", 1, kLargest, "size", kRequired},
      {"ns", {FieldKind::integer, {.store = store}}, "", 0, kLongest, "median time", kRequired}};
  return table;
}

const Record<DriverTimes>& times_table() {
  std::vector<Row<DriverTimes>> rows;
  for (const TimeList& list : kTimeLists) {
    rows.push_back({list.key, list_of(list.times, time_table()), "", 0, 0, list.help, kRequired});
  }
  static const Record<DriverTimes> table{rows};
  return table;
}

const Record<DeviceProfile>& profile_table() {
  using D = DeviceProfile;
  const auto size = [](Bytes D::*member) { return as(FieldKind::integer, member); };
  static const Record<D> table{
      {"version", unkept<D>(FieldKind::integer), "", 1, 1, "of this format", kRequired},
      {"name", &D::name, "", 0, 0, "the card, as its maker writes it", kRequired},
      {"driver", &D::driver, "", 0, 0, "its version", kRequired},
      {"total_bytes", size(&D::total), "", 1, kLargest, "as cudaMemGetInfo reports it", kRequired},
      {"context_bytes", size(&D::context), "", 0, kLargest,
       "what a process takes before its first allocation", kRequired},
      {"granularity_bytes", size(&D::granularity), "", 1, kLargest, "smallest unit of physical memory",
       kRequired},
      {"times", object_of(&D::times, times_table()), "", 0, 0, "of driver calls", kRequired},
  };
  return table;
}

// Times are interpolated between neighbours.
void check_rising(const std::vector<MeasuredTime>& list, const std::string& pointer,
                  std::vector<Problem>& problems) {
  if (list.size() < 2) problems.push_back({pointer, "needs at least two sizes."});
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (list[i].size > list[i - 1].size) continue;
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
  require_fields(json, profile_table(), file + ": ");
  DeviceProfile profile = read_section(json, profile_table());
  std::vector<Problem> problems;
  for (const TimeList& list : kTimeLists) {
    check_rising(profile.times.*list.times, file + ": /times/" + list.key, problems);
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return profile;
}

DeviceProfile read_device_profile(const std::filesystem::path& file) {
  return parse_device_profile(read_json_file(file), file.string());
}

}  // namespace vramlab
