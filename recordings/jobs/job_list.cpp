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

}  // namespace

std::vector<JobSpec> read_job_list(InputFile& file) {
  const CsvTable table{file};
  if (table.rows() == 0) throw InputError(file.name(), "holds no jobs.");
  std::vector<JobSpec> jobs;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    JobSpec job;
    job.name = table.text(row, "name", false);
    job.arrival = from_seconds(table.number(row, "arrival_s"));
    job.demand.fixed = size_of(table, row, "need");
    job.demand.cards = static_cast<std::int32_t>(table.number_or(row, "cards", 1));
    job.demand.priority = static_cast<std::int32_t>(table.number_or(row, "priority", 0));
    if (job.demand.cards < 1 || job.demand.cards > 1024) table.wrong(row, "cards", "is not 1 to 1024.");
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
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace vramlab
