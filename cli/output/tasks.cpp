#include "cli/output/tasks.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include "cli/options.hpp"
#include "cli/output/progress.hpp"
#include "core/error.hpp"
#include "lab/scenario/result_keys.hpp"
#include "recordings/input_file.hpp"
#include "report/output_file.hpp"

namespace vramlab {
namespace {

using KeptTasks = std::vector<std::optional<Json>>;

// The sum shows what was changed since it was written.
std::string task_line(const Task& task, const Json& result) {
  Json row{{"key", task.key}, {"task", task.name}, {"sum", hash_text(text_hash(result.dump()))}};
  row["result"] = result;
  return row.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';  // names of files may be no UTF-8
}

/// The file of --results of tasks, for this program alone while it works.
class TaskFile {
 public:
  /// Nothing is kept without a name.
  TaskFile(const std::vector<Task>& tasks, std::string name) : tasks_(tasks), name_(std::move(name)) {
    if (name_.empty()) return;
    if (!name_.ends_with(".jsonl")) throw InputError(name_, "the name of kept results must end in .jsonl.");
    file_.emplace(name_);
  }

  [[nodiscard]] KeptTasks read() const {
    KeptTasks kept(tasks_.size());
    if (!file_) return kept;
    std::multimap<std::string, std::size_t> places;  // the same file may be named twice
    for (std::size_t i = 0; i < tasks_.size(); ++i) places.emplace(tasks_[i].key, i);
    const std::string text = read_input_file(name_);
    std::size_t line = 0;
    for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      const std::string where = fmt::format("{}: line {}", name_, ++line);
      if (end == std::string::npos) {
        require_cut_row(text.substr(begin), where);
        break;
      }
      Json row = read_row(text.substr(begin, end - begin), where);
      const auto [first, last] = places.equal_range(row["key"].get<std::string>());
      if (first == last) {
        throw InputError(where,
                         "is the result of something else than this command asks for (another scenario, "
                         "option or version). Name another file, or remove this one.");
      }
      for (auto place = first; place != last; ++place) kept[place->second] = row["result"];
    }
    return kept;
  }

  void add(std::size_t task, const Json& result) {
    if (file_) file_->append(task_line(tasks_[task], result));
  }

  void put_in_order(const KeptTasks& kept) const {
    if (!file_) return;
    std::string text;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i]) text += task_line(tasks_[i], *kept[i]);
    }
    if (read_input_file(name_) != text) write_file(name_, text);
  }

 private:
  // What a program that was killed left of a row is made again; anything else is not ours to drop.
  static void require_cut_row(const std::string& text, const std::string& where) {
    const std::string begin = "{\"key\":\"";
    if (text.substr(0, begin.size()) == begin.substr(0, text.size())) return;
    throw InputError(where, "is not a kept result.");
  }

  static Json read_row(const std::string& line, const std::string& where) {
    Json row = Json::parse(line, nullptr, false);
    const bool is_row = row.is_object() && row.contains("result") && row.contains("key") &&
                        row["key"].is_string() && row.contains("sum") && row["sum"].is_string();
    if (!is_row) throw InputError(where, "is not a kept result.");
    if (row["sum"] != hash_text(text_hash(row["result"].dump()))) {
      throw InputError(where, "was changed after it was written. Remove that line; it is made again.");
    }
    return row;
  }

  const std::vector<Task>& tasks_;
  std::string name_;
  std::optional<GrowingFile> file_;
};

std::vector<std::size_t> missing_tasks(const KeptTasks& kept) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) missing.push_back(i);
  }
  return missing;
}

}  // namespace

void add_task_options(Options& options) {
  add_threads_option(options);
  options.add_options()("results", text_value("FILE.jsonl"),
                        "one line a finished run, written as it ends; what the file has is not run again")(
      "resume", po::bool_switch(), "go on with --results, which must have something of this command");
}

std::shared_ptr<Workers> chosen_workers(const Arguments& arguments, const Output& output) {
  if (output.ranks() == nullptr) return std::make_shared<Threads>(chosen_threads(arguments));
  if (arguments["jobs"].defaulted()) return output.ranks();
  throw InputError("--jobs",
                   "is for threads; under mpirun every rank makes one run at a time. Leave it out.");
}

unsigned own_threads(const Arguments& arguments, const Output& output) {
  return output.ranks() == nullptr ? chosen_threads(arguments) : 1;
}

std::string stopped_text(std::size_t done, std::size_t all, const std::string& what,
                         const std::string& file) {
  const std::string head = fmt::format("Stopped after {} of {} {}. ", done, all, what);
  if (file.empty()) {
    return head + "Nothing was kept; with --results FILE.jsonl a later call goes on from there.\n";
  }
  if (done == 0) return head + "There is nothing to keep yet.\n";
  return head + "They are in " + file + "; the same command goes on from there.\n";
}

std::vector<Json> TaskResults::all() const {
  std::vector<Json> list;
  for (const auto& one : results) {
    if (one) list.push_back(*one);
  }
  if (list.size() < results.size()) list.clear();
  return list;
}

TaskResults perform_tasks(const std::vector<Task>& tasks, const std::string& what, const Arguments& arguments,
                          Output& output) {
  const auto workers = chosen_workers(arguments, output);
  TaskResults done{.results = KeptTasks(tasks.size()), .shows = workers->hands_out()};
  if (!done.shows) {
    workers->perform(tasks, {}, {});
    return done;
  }
  const std::string name = text_of(arguments, "results");
  TaskFile file{tasks, name};
  done.results = file.read();
  std::vector<std::size_t> missing = missing_tasks(done.results);
  done.before = tasks.size() - missing.size();
  if (arguments["resume"].as<bool>() && done.before == 0) {
    throw InputError(name.empty() ? "--resume" : name, "there is nothing to go on with.");
  }
  const Interrupt interrupt{output.call() == nullptr};
  Progress progress{missing.size(), what, output.call() != nullptr || arguments["quiet"].as<bool>()};
  try {
    workers->perform(tasks, std::move(missing),
                     {.take =
                          [&](std::size_t task, const Json& result) {
                            file.add(task, result);
                            done.results[task] = result;
                            progress.step();
                          },
                      .stop = &interrupt.flag(),
                      .stopped =
                          [&] {
                            const std::size_t left = missing_tasks(done.results).size();
                            std::cerr << stopped_text(tasks.size() - left, tasks.size(), what, name);
                          }});
  } catch (...) {
    file.put_in_order(done.results);
    throw;
  }
  file.put_in_order(done.results);
  return done;
}

}  // namespace vramlab
