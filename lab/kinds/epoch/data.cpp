#include "lab/kinds/epoch/data.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "lab/json.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {

std::vector<Sample> draw_samples(const std::vector<TaskSort>& tasks, std::int64_t count,
                                 const Outliers& outliers, std::int64_t tokens_per_image,
                                 std::uint64_t seed) {
  Random random{seed};
  std::vector<Sample> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const TaskSort& task = random.one_of(tasks, &TaskSort::share);
    Sample sample{.task = static_cast<std::uint32_t>(&task - tasks.data())};
    sample.images = task.images;
    sample.length = random.between(task.shortest, task.longest);
    if (outliers.every > 0 && i % outliers.every == outliers.every / 2) sample.length *= outliers.times;
    sample.tokens = std::max<std::int64_t>(1, sample.length + tokens_per_image * sample.images);
    samples.push_back(sample);
  }
  return samples;
}

namespace {

constexpr std::size_t kMostProblems = 20;  // of a file: more of them tell nothing new

/// A line of a CSV file.
class CsvLine {
 public:
  CsvLine(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

  [[nodiscard]] bool has(const std::string& key) const { return table_.has(key); }
  [[nodiscard]] double number(const std::string& key) const { return table_.number(row_, key); }
  [[nodiscard]] std::string text(const std::string& key) const { return std::string(table_.text(row_, key)); }
  [[noreturn]] void wrong(const std::string& key, const std::string& what) const {
    table_.wrong(row_, key, what);
  }

 private:
  const CsvTable& table_;
  std::size_t row_;
};

/// An object of a file of JSON lines.
class JsonLine {
 public:
  /// Throws InputError where `text` is not one.
  JsonLine(std::string_view text, std::string place)
      : json_(parse_json(std::string(text), place)), place_(std::move(place)) {
    if (!json_.is_object()) throw InputError(place_, "is not an object; a line is {\"KEY\": VALUE, …}.");
  }

  [[nodiscard]] std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json_.items()) keys.push_back(key);
    return keys;
  }
  [[nodiscard]] bool has(const std::string& key) const { return json_.contains(key); }
  [[nodiscard]] double number(const std::string& key) const {
    const Json& value = json_.at(key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0)) wrong(key, "is not a number of at least 0.");
    return number;
  }
  [[nodiscard]] std::string text(const std::string& key) const {
    const Json& value = json_.at(key);
    if (!value.is_string()) wrong(key, "is not a text.");
    return value.get<std::string>();
  }
  [[noreturn]] void wrong(const std::string& key, const std::string& what) const {
    throw InputError(place_, key + " " + json_.at(key).dump() + " " + what);
  }

 private:
  Json json_;
  std::string place_;
};

/// Makes samples of the lines of one file.
class SampleReader {
 public:
  explicit SampleReader(const SampleFile& how) : how_(how), file_(how.file.string()) {}

  SampleList read() {
    InputFile in(how_.file);
    const std::string_view beginning = in.beginning();
    const std::size_t first = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    if (first != std::string_view::npos && beginning[first] == '{') {
      read_json_lines(in.rest());
    } else {
      read_csv(in);
    }
    if (!problems_.empty()) throw InputError(std::move(problems_));
    if (list_.samples.empty()) {
      throw InputError(file_, list_.skipped == 0 ? std::string("has no lines.")
                                                 : "has no samples: all " + std::to_string(list_.skipped) +
                                                       " lines have length 0.");
    }
    return std::move(list_);
  }

 private:
  void read_csv(InputFile& in) {
    const CsvTable table{in};
    require_keys(table.columns(), file_ + ":1", "column");
    for (std::size_t row = 0; row < table.rows() && goes_on(); ++row) {
      guarded([&] { add(CsvLine(table, row)); });
    }
  }

  void read_json_lines(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    for (std::size_t line = 1; !text.empty() && goes_on(); ++line) {
      const std::string_view one = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), one.size() + 1));
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::string place = file_ + ":" + std::to_string(line);
      guarded([&] {
        const JsonLine object(one, place);
        require_keys(object.keys(), place, "key");
        add(object);
      });
    }
  }

  [[nodiscard]] bool goes_on() const {
    return problems_.size() < kMostProblems && (how_.count == 0 || lines_ < how_.count);
  }

  template <class Work>
  void guarded(const Work& work) {
    ++lines_;
    try {
      work();
    } catch (const InputError& error) {
      problems_.insert(problems_.end(), error.problems().begin(), error.problems().end());
    }
  }

  [[nodiscard]] bool names_tasks() const { return !how_.tasks.empty(); }

  void require_keys(const std::vector<std::string>& found, const std::string& place,
                    const std::string& sort) const {
    const auto has = [&](const std::string& key) { return std::ranges::find(found, key) != found.end(); };
    std::vector<Problem> wrong;
    if (!has(how_.column)) {
      wrong.push_back({place, "has no " + sort + " \"" + how_.column + "\" of lengths; \"column\" names it." +
                                  suggest_name(how_.column, found)});
    }
    if (names_tasks() && !has("task")) {
      wrong.push_back({place, "has no " + sort + " \"task\", and the scenario names tasks." +
                                  suggest_name("task", found)});
    }
    const std::vector<std::string> allowed{"task", "images", how_.column};
    for (std::size_t i = 0; i < found.size() && names_tasks(); ++i) {
      if (std::ranges::find(allowed, found[i]) != allowed.end()) continue;
      wrong.push_back({place, sort + " " + std::to_string(i + 1) + " \"" + found[i] + "\" is unknown." +
                                  suggest_name(found[i], allowed)});
    }
    if (!wrong.empty()) throw InputError(std::move(wrong));
  }

  template <class Line>
  void add(const Line& line) {
    Sample sample;
    sample.length = std::min(how_.most, length_of(line));
    if (names_tasks()) {
      sample.task = task_of(line);
      sample.images = images_of(line);
    }
    if (sample.length == 0 && sample.images == 0) {
      ++list_.skipped;
      return;
    }
    sample.tokens = std::max<std::int64_t>(1, sample.length + how_.tokens_per_image * sample.images);
    list_.samples.push_back(sample);
  }

  // A position that is not filled is one all the same; what a product of fractions is off by is none.
  template <class Line>
  std::int64_t length_of(const Line& line) const {
    const double value = line.number(how_.column);
    if (how_.positions_per_second > 0) {
      const double positions = std::ceil(value * how_.positions_per_second - 1e-6);
      if (positions > 1e9) line.wrong(how_.column, "comes to more than 1000000000 positions.");
      return std::max<std::int64_t>(value > 0 ? 1 : 0, static_cast<std::int64_t>(positions));
    }
    if (value > 1e9 || value != std::floor(value)) {
      line.wrong(how_.column,
                 "is not a whole number of tokens from 0 to 1000000000. Are these seconds? Give "
                 "\"positions_per_second\".");
    }
    return static_cast<std::int64_t>(value);
  }

  template <class Line>
  std::uint32_t task_of(const Line& line) const {
    const std::string name = line.text("task");
    const auto found = std::ranges::find(how_.tasks, name);
    if (found == how_.tasks.end()) {
      line.wrong("task", "is not a task of the scenario." + suggest_name(name, how_.tasks));
    }
    return static_cast<std::uint32_t>(found - how_.tasks.begin());
  }

  template <class Line>
  static std::int32_t images_of(const Line& line) {
    if (!line.has("images")) return 0;
    const double images = line.number("images");
    if (images > 1000 || images != std::floor(images)) {
      line.wrong("images", "is not a whole number of images from 0 to 1000.");
    }
    return static_cast<std::int32_t>(images);
  }

  const SampleFile& how_;
  std::string file_;
  SampleList list_;
  std::int64_t lines_ = 0;
  std::vector<Problem> problems_;
};

}  // namespace

SampleList read_samples(const SampleFile& how) { return SampleReader{how}.read(); }

SeriesFile read_series(const std::filesystem::path& file, const std::vector<std::string>& tasks) {
  const CsvTable table{file};
  SeriesFile series{{std::vector<std::vector<double>>(tasks.size())},
                    {std::vector<std::vector<double>>(tasks.size())}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto found = std::find(tasks.begin(), tasks.end(), table.text(row, "task"));
    if (found == tasks.end()) table.wrong(row, "task", "is not a task of the data set.");
    const auto task = static_cast<std::size_t>(found - tasks.begin());
    series.losses.by_task[task].push_back(table.number(row, "loss"));
    series.gradient_norms.by_task[task].push_back(table.number(row, "gradient_norm"));
  }
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    if (!series.losses.by_task[task].empty()) continue;
    throw InputError(file.string(), "has no line for the task " + tasks[task] + ".");
  }
  return series;
}

}  // namespace vramlab
