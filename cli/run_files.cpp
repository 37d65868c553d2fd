#include "cli/run_files.hpp"

#include <cctype>
#include <filesystem>
#include <set>

#include "report/output_file.hpp"
#include "sim/core/error.hpp"
#include "trace/perfetto_writer.hpp"
#include "trace/run_trace.hpp"

namespace vramlab {
namespace fs = std::filesystem;

namespace {

// A file's name for a label, which may hold anything.
std::string file_name_of(const std::string& label) {
  std::string name;
  for (const char c : label.substr(0, 100)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
  return name;
}

}  // namespace

std::map<std::string, std::string> trace_bases(const std::vector<std::string>& labels,
                                               const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw InputError(folder, "cannot be made a folder: " + failed.message() + ".");
  std::map<std::string, std::string> bases;
  std::set<std::string> taken;
  for (const std::string& label : labels) {
    std::string name = file_name_of(label);
    while (!taken.insert(name).second) name += '-';  // two labels may differ only in what a name leaves out
    bases[label] = (fs::path{folder} / name).string();
  }
  return bases;
}

std::map<std::string, std::string> write_traces(const Scenario& scenario, const Comparison& comparison,
                                                const std::string& folder) {
  std::vector<std::string> labels;
  for (const PolicyResult& result : comparison.policies) labels.push_back(result.label);
  std::map<std::string, std::string> files = trace_bases(labels, folder);
  for (const PolicyResult& result : comparison.policies) {
    std::string& file = files[result.label];
    file += ".jsonl";
    write_trace(scenario.setup.bounds, result.run.iterations, file);
  }
  return files;
}

void require_trace_name(const std::string& file) {
  if (file.empty() || file.ends_with(".jsonl") || file.ends_with(".csv") ||
      file.ends_with(".perfetto.json")) {
    return;
  }
  throw InputError(file, "a trace's name must end in .jsonl, .csv or .perfetto.json.");
}

void write_trace(const ParameterSpace& space, const std::vector<IterationRecord>& records,
                 const std::string& file, const std::string& title) {
  require_trace_name(file);
  if (file.ends_with(".perfetto.json")) return write_file(file, trace_perfetto(title, space, records));
  write_file(file, file.ends_with(".csv") ? trace_csv(space, records) : trace_jsonl(space, records));
}

}  // namespace vramlab
