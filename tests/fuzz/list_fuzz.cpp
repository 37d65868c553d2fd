// libFuzzer target: lists of jobs and of buffers in CSV are read whole, or refused.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/csv.hpp"
#include "recordings/input_file.hpp"
#include "recordings/jobs/job_lists.hpp"
#include "recordings/scripts/buffer_list.hpp"
#include "tests/fuzz/refused_or_done.hpp"

using namespace vramlab;

namespace {

// What is read of a job can be simulated: it lasts, asks for a card, and comes at a time that is one.
void check(const JobSpec& job) {
  if (job.arrival < SimTime{0} || job.duration() <= SimTime{0} || job.demand.cards < 1) __builtin_trap();
}

template <class Read>
void refused_or_read(const std::string& text, const Read& read) {
  std::istringstream in{text};
  InputFile file(in, "fuzz.csv");
  refused_or_done([&] { read(file); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)csv_records(text);
  refused_or_read(text, [](InputFile& file) {
    for (const JobSpec& job : read_job_list(file)) check(job);
  });
  refused_or_read(text, [](InputFile& file) { (void)read_buffer_list(file); });
  return 0;
}
