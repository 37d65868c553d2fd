#include <unordered_set>
#include <utility>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/jobs/job_lists.hpp"

namespace vramlab {
namespace {

JobSpec job_of(const CsvTable& table, std::size_t row) {
  JobSpec job;
  job.name = table.text(row, "name", false);
  if (job.name.empty()) job.name = "job " + std::to_string(row);
  job.arrival = table.seconds(row, "arrival_s");
  job.demand.fixed = table.size(row, "need");
  const auto is_given = [&](std::string_view column) { return !table.text(row, column, false).empty(); };
  const auto whole = [&](std::string_view column, std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(table.whole(row, column, low, high));
  };
  if (is_given("cards")) job.demand.cards = whole("cards", 1, 1024);
  if (is_given("priority")) job.demand.priority = whole("priority", 0, 1000);
  JobPhase phase{.duration = table.seconds(row, "duration_s")};
  if (phase.duration <= SimTime{0}) table.wrong(row, "duration_s", "must be above 0.");
  if (is_given("use")) phase.fixed_use = table.size(row, "use");
  job.phases = {phase};
  if (is_given("expected_s")) job.expected = table.seconds(row, "expected_s");
  if (is_given("crash_after_s")) job.crash_after = table.seconds(row, "crash_after_s");
  return job;
}

}  // namespace

std::vector<JobSpec> read_job_list(InputFile& file) {
  const CsvTable table{file};
  table.require_columns(
      {"name", "arrival_s", "duration_s", "need", "use", "cards", "priority", "expected_s", "crash_after_s"});
  for (const char* column : {"arrival_s", "duration_s", "need"}) {
    if (!table.has(column))
      throw InputError(file.name() + ":1", "has no column \"" + std::string{column} + "\".");
  }
  if (table.rows() == 0) throw InputError(file.name(), "holds no jobs.");
  std::vector<JobSpec> jobs;
  LineProblems problems;
  std::unordered_set<std::string> names;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    problems.guarded([&] {
      JobSpec job = job_of(table, row);
      if (!names.insert(job.name).second) {
        table.wrong(row, "name", "is that of an earlier job (\"" + job.name + "\"); names tell jobs apart.");
      }
      jobs.push_back(std::move(job));
    });
  }
  problems.throw_if_any(file.name());
  return jobs;
}

}  // namespace vramlab
