#include <algorithm>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/jobs/job_lists.hpp"

namespace vramlab {
namespace {

Bytes size_of(const CsvTable& table, std::size_t row, std::string_view column) {
  const auto size = parse_bytes(table.text(row, column));
  if (!size) table.wrong(row, column, "is not a size. Write 12GiB, 12288MiB or a number of bytes.");
  return *size;
}

JobSpec job_of(const CsvTable& table, std::size_t row) {
  JobSpec job;
  job.name = table.text(row, "name", false);
  if (job.name.empty()) job.name = "job " + std::to_string(row);
  job.arrival = from_seconds(table.number(row, "arrival_s"));
  job.demand.fixed = size_of(table, row, "need");
  const auto whole = [&](std::string_view column, double otherwise, double low, double high,
                         const char* allowed) {
    const double value = table.number_or(row, column, otherwise);
    const auto number = static_cast<std::int32_t>(std::clamp(value, low, high));
    if (number != value) table.wrong(row, column, allowed);
    return number;
  };
  job.demand.cards = whole("cards", 1, 1, 1024, "is not a whole number from 1 to 1024.");
  job.demand.priority = whole("priority", 0, 0, 1000, "is not a whole number from 0 to 1000.");
  JobPhase phase{.duration = from_seconds(table.number(row, "duration_s"))};
  if (phase.duration <= SimTime{0}) table.wrong(row, "duration_s", "must be above 0.");
  if (!table.text(row, "use", false).empty()) phase.fixed_use = size_of(table, row, "use");
  job.phases = {phase};
  if (!table.text(row, "expected_s", false).empty()) {
    job.expected = from_seconds(table.number(row, "expected_s"));
  }
  if (!table.text(row, "crash_after_s", false).empty()) {
    job.crash_after = from_seconds(table.number(row, "crash_after_s"));
  }
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
  for (std::size_t row = 0; row < table.rows(); ++row) {
    problems.guarded([&] { jobs.push_back(job_of(table, row)); });
  }
  problems.throw_if_any(file.name());
  return jobs;
}

}  // namespace vramlab
