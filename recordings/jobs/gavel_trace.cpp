#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "recordings/jobs/job_lists.hpp"

namespace vramlab {
namespace {

using Json = nlohmann::ordered_json;

/// Steps per second by the name of job and scale factor: "('LM (batch size 5)', 2)".
using Throughputs = std::map<std::string, double>;

Throughputs read_throughputs(const std::filesystem::path& file, const std::string& gpu) {
  const Json json = Json::parse(read_input_file(file), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw InputError(file.string(), "is not a JSON object of kinds of cards.");
  std::vector<std::string> kinds;
  for (const auto& [kind, jobs] : json.items()) kinds.push_back(kind);
  if (!json.contains(gpu)) {
    throw InputError(file.string(), "has no kind of card \"" + gpu + "\"." + suggest_name(gpu, kinds));
  }
  Throughputs throughputs;
  for (const auto& [job, figures] : json[gpu].items()) {
    const auto alone = figures.is_object() ? figures.find("null") : figures.end();
    if (alone != figures.end() && alone->is_number()) throughputs[job] = alone->get<double>();
  }
  return throughputs;
}

/// The cells of one line.
class Line {
 public:
  Line(std::string where, std::string_view text) : where_(std::move(where)) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find('\t', begin), text.size());
      cells_.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    if (cells_.size() != 7 && cells_.size() != 10) {
      throw InputError(where_, "has " + std::to_string(cells_.size()) +
                                   " columns; a line has 7 or 10, with tabs between.");
    }
  }

  [[nodiscard]] const std::string& type() const { return cells_[0]; }
  [[nodiscard]] double steps() const { return whole(cells_.size() == 7 ? 4 : 5, "steps", 1, 1e15); }
  [[nodiscard]] double arrival() const { return number(cells_.size() == 7 ? 5 : 9, "arrival", 0, 1e9); }
  [[nodiscard]] std::int32_t cards() const { return static_cast<std::int32_t>(whole(6, "cards", 1, 1024)); }

  /// Throws InputError at the steps where `seconds` of them are more than anything may take.
  [[nodiscard]] SimTime duration(double seconds) const {
    if (seconds > kLongestRun) fail("these steps take longer than 31 years at the measured throughput.");
    return std::max(SimTime{1}, from_seconds(seconds));
  }

 private:
  static constexpr double kLongestRun = 1e9;  // seconds, as durations of other lists

  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_, what); }

  [[nodiscard]] double whole(std::size_t cell, const char* what, double low, double high) const {
    const double value = number(cell, what, low, high);
    if (value == std::floor(value)) return value;
    fail(std::string{what} + " \"" + cells_[cell] + "\" in column " + std::to_string(cell + 1) +
         " is not a whole number.");
  }

  [[nodiscard]] double number(std::size_t cell, const char* what, double low, double high) const {
    const std::string& text = cells_[cell];
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high)
      return value;
    fail(std::string{what} + " \"" + text + "\" in column " + std::to_string(cell + 1) +
         " is not a number in range.");
  }

  std::string where_;
  std::vector<std::string> cells_;
};

}  // namespace

GavelTrace read_gavel(const std::filesystem::path& trace, const std::filesystem::path& throughputs,
                      const GavelOptions& options) {
  const Throughputs known = read_throughputs(throughputs, options.gpu);
  std::istringstream text(read_input_file(trace));
  GavelTrace read;
  std::size_t number = 0;
  LineProblems problems;
  const auto read_line = [&](const std::string& row) {
    const Line line{trace.string() + ":" + std::to_string(number), row};
    const double steps = line.steps();  // of lines that are left out, too: what is wrong is said
    const SimTime arrival = from_seconds(line.arrival());
    const auto rate = known.find("('" + line.type() + "', " + std::to_string(line.cards()) + ")");
    if (rate == known.end() || !(rate->second > 0)) {
      ++read.without_throughput;
      return;
    }
    JobSpec job;
    job.name = line.type() + ", line " + std::to_string(number);
    job.arrival = arrival;
    job.demand.cards = line.cards();
    job.demand.share_milli = options.share_milli;
    job.phases = {{.duration = line.duration(steps / rate->second)}};
    read.jobs.push_back(std::move(job));
  };
  for (std::string row; std::getline(text, row);) {
    ++number;
    if (row.ends_with('\r')) row.pop_back();
    if (row.empty()) continue;
    ++read.lines;
    problems.guarded([&] { read_line(row); });
  }
  problems.throw_if_any(trace.string());
  if (read.lines == 0) throw InputError(trace.string(), "holds no jobs.");
  return read;
}

}  // namespace vramlab
