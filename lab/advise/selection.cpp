#include "lab/advise/selection.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vramlab {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSolved = 400;  // changes that CBC is given
constexpr int kMostNodes = 20'000;        // of its tree: a bound that does not depend on the machine
constexpr double kSolverUnit = 1 << 20;   // it is told MiB: its tolerances are absolute
constexpr double kCostUnit = 100;         // and percents of a step
constexpr double kLater = 2e-4;           // of equal changes it takes the first: they are easier to write

/// A folder of its own, removed at the end.
class SolverFolder {
 public:
  SolverFolder() {
    std::error_code missing;
    std::string pattern = (fs::temp_directory_path(missing) / "vramlab-XXXXXX").string();
    if (!missing && ::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~SolverFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  SolverFolder(const SolverFolder&) = delete;
  SolverFolder& operator=(const SolverFolder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Moments that no choice lifts above the budget need no row.
bool may_exceed(const SelectionProblem::Moment& moment, std::int64_t budget) {
  std::int64_t most = moment.bytes;
  for (const auto& [change, bytes] : moment.added) most += std::max<std::int64_t>(bytes, 0);
  return most > budget;
}

std::string sum_text(const std::vector<std::pair<std::uint32_t, double>>& terms) {
  std::string text;
  for (const auto& [change, factor] : terms) text += fmt::format(" {:+.9g} x{}\n", factor, change);
  return text;
}

// In the format of CPLEX, which CBC reads.
std::string program_text(const SelectionProblem& problem, std::int64_t budget) {
  std::vector<std::pair<std::uint32_t, double>> costs;
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::uint32_t i = 0; i < problem.changes.size(); ++i) {
    costs.emplace_back(i, kCostUnit * problem.changes[i].cost + kLater * i);
    if (problem.changes[i].group >= groups.size()) groups.resize(problem.changes[i].group + 1);
    groups[problem.changes[i].group].push_back(i);
  }
  std::string text = "Minimize\n cost:" + sum_text(costs) + "Subject To\n";
  std::set<std::string> rows;
  for (const SelectionProblem::Moment& moment : problem.moments) {
    if (!may_exceed(moment, budget)) continue;
    std::vector<std::pair<std::uint32_t, double>> terms;
    for (const auto& [change, bytes] : moment.added)
      terms.emplace_back(change, static_cast<double>(bytes) / kSolverUnit);
    const double room = static_cast<double>(budget - moment.bytes) / kSolverUnit;
    if (!terms.empty()) rows.insert(sum_text(terms) + fmt::format(" <= {:.9g}\n", room));
  }
  for (const std::string& row : rows) text += row;
  for (const auto& group : groups) {
    if (group.size() < 2) continue;
    for (const std::uint32_t change : group) text += fmt::format(" + x{}", change);
    text += " <= 1\n";
  }
  text += "Binary\n";
  for (std::uint32_t i = 0; i < problem.changes.size(); ++i) text += fmt::format(" x{}\n", i);
  return text + "End\n";
}

bool run_solver(const fs::path& folder) {
  const std::string nodes = std::to_string(kMostNodes);
  std::vector<std::string> words{"cbc",      (folder / "choice.lp").string(), "maxNodes", nodes, "solve",
                                 "solution", (folder / "choice.sol").string()};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, "cbc", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failure == 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

double cost_of(const SelectionProblem& problem, const std::vector<bool>& chosen) {
  double cost = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) cost += chosen[i] ? problem.changes[i].cost : 0;
  return cost;
}

/// What CBC says.
struct Solved {
  bool ran = false;
  bool infeasible = false;
  std::optional<Selection> selection;
};

// "Optimal - objective value 12.5", then "  3 x7 1 0.2" for each that is not 0.
Solved read_solution(const SelectionProblem& problem, const fs::path& file, std::int64_t budget) {
  Solved solved;
  std::ifstream in(file);
  std::string head;
  if (!std::getline(in, head)) return solved;
  solved.ran = true;
  if (head.find("nfeasible") != std::string::npos) {
    solved.infeasible = true;
    return solved;
  }
  Selection selection{.chosen = std::vector<bool>(problem.changes.size()), .cost = 0, .bound = 0};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string row;
    std::string name;
    double value = 0;
    if (words >> row && row == "**") words >> row;
    if (!(words >> name >> value) || !name.starts_with('x')) continue;
    const std::size_t change = std::stoul(name.substr(1));
    if (change < selection.chosen.size() && value > 0.5) selection.chosen[change] = true;
  }
  // Its tolerances may let a choice pass by some bytes.
  if (problem.peak(selection.chosen) > budget) return {};
  selection.cost = cost_of(problem, selection.chosen);
  selection.exact = head.starts_with("Optimal");
  selection.bound = selection.exact ? selection.cost : 0;
  solved.selection = std::move(selection);
  return solved;
}

Solved solve(const SelectionProblem& problem, std::int64_t budget) {
  const SolverFolder folder;
  if (folder.path().empty()) return {};
  std::ofstream(folder.path() / "choice.lp") << program_text(problem, budget);
  if (!run_solver(folder.path())) return {};
  return read_solution(problem, folder.path() / "choice.sol", budget);
}

// One moment alone, changes in parts: what each moment costs at least, and the most of that.
double least_cost(const SelectionProblem& problem, std::int64_t budget) {
  double bound = 0;
  for (const SelectionProblem::Moment& moment : problem.moments) {
    std::int64_t over = moment.bytes - budget;
    std::vector<std::pair<double, double>> reliefs;  // cost of a byte, bytes
    for (const auto& [change, bytes] : moment.added) {
      const auto relief = static_cast<double>(-bytes);
      if (bytes < 0) reliefs.emplace_back(problem.changes[change].cost / relief, relief);
    }
    std::ranges::sort(reliefs);
    double cost = 0;
    auto left = static_cast<double>(over);
    for (const auto& [each, bytes] : reliefs) {
      if (left <= 0) break;
      cost += each * std::min(left, bytes);
      left -= bytes;
    }
    bound = std::max(bound, cost);
  }
  return bound;
}

/// What each moment holds as changes are chosen.
class Greedy {
 public:
  explicit Greedy(const SelectionProblem& problem)
      : problem_(problem), chosen_(problem.changes.size()), taken_(problem.changes.size()) {
    for (const auto& moment : problem.moments) held_.push_back(moment.bytes);
  }

  [[nodiscard]] std::int64_t peak() const { return held_.empty() ? 0 : *std::ranges::max_element(held_); }
  [[nodiscard]] const std::vector<bool>& chosen() const { return chosen_; }

  /// Chooses what takes most off the moments above `budget` for its cost. False if nothing takes anything.
  bool add(std::int64_t budget) {
    std::vector<double> relief(chosen_.size());
    for (std::size_t i = 0; i < held_.size(); ++i) {
      if (held_[i] <= budget) continue;
      for (const auto& [change, bytes] : problem_.moments[i].added)
        relief[change] -= static_cast<double>(std::max(bytes, budget - held_[i]));
    }
    std::optional<std::uint32_t> best;
    double most = 0;
    for (std::uint32_t i = 0; i < relief.size(); ++i) {
      const double worth = relief[i] / (problem_.changes[i].cost + std::numeric_limits<double>::min());
      if (chosen_[i] || taken_[problem_.changes[i].group] || relief[i] <= 0 || worth <= most) continue;
      most = worth;
      best = i;
    }
    if (best) set(*best, true);
    return best.has_value();
  }

  /// Takes back what is not needed, the dearest first.
  void prune(std::int64_t budget) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i]) order.push_back(i);
    }
    std::ranges::stable_sort(order, std::ranges::greater{},
                             [&](std::uint32_t i) { return problem_.changes[i].cost; });
    for (const std::uint32_t i : order) {
      set(i, false);
      if (peak() > budget) set(i, true);
    }
  }

 private:
  void set(std::uint32_t change, bool on) {
    chosen_[change] = on;
    taken_[problem_.changes[change].group] = on;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const auto& added = problem_.moments[i].added;
      const auto place =
          std::ranges::lower_bound(added, change, {}, [](const auto& one) { return one.first; });
      if (place != added.end() && place->first == change) held_[i] += on ? place->second : -place->second;
    }
  }

  const SelectionProblem& problem_;
  std::vector<std::int64_t> held_;
  std::vector<bool> chosen_;
  std::vector<bool> taken_;  ///< by group
};

}  // namespace

std::int64_t SelectionProblem::peak(const std::vector<bool>& chosen) const {
  std::int64_t peak = 0;
  for (const Moment& moment : moments) {
    std::int64_t held = moment.bytes;
    for (const auto& [change, bytes] : moment.added) held += chosen[change] ? bytes : 0;
    peak = std::max(peak, held);
  }
  return peak;
}

std::optional<Selection> cheapest(const SelectionProblem& problem, std::int64_t budget, bool use_solver) {
  if (use_solver && problem.changes.size() <= kMostSolved) {
    Solved solved = solve(problem, budget);
    if (solved.infeasible) return std::nullopt;
    if (solved.selection) return solved.selection;
  }
  Greedy greedy(problem);
  while (greedy.peak() > budget) {
    if (!greedy.add(budget)) return std::nullopt;
  }
  greedy.prune(budget);
  Selection selection{.chosen = greedy.chosen(), .cost = 0, .bound = least_cost(problem, budget)};
  selection.cost = cost_of(problem, selection.chosen);
  selection.exact = selection.cost <= selection.bound;
  return selection;
}

Selection least_peak(const SelectionProblem& problem) {
  Greedy greedy(problem);
  Selection best{.chosen = greedy.chosen(), .cost = 0, .bound = 0};
  std::int64_t least = greedy.peak();
  while (greedy.add(least - 1)) {
    if (greedy.peak() >= least) continue;
    least = greedy.peak();
    best.chosen = greedy.chosen();
  }
  best.cost = cost_of(problem, best.chosen);
  return best;
}

bool has_solver() {
  const char* const path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "/bin:/usr/bin" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path program = fs::path{folder.empty() ? "." : folder} / "cbc";
    std::error_code missing;
    if (fs::is_regular_file(program, missing) && ::access(program.c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace vramlab
