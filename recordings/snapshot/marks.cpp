#include "recordings/snapshot/marks.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "recordings/exact_json.hpp"
#include "recordings/input_file.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {
namespace {

using nlohmann::json;

constexpr Bytes kMostMemory = Bytes{1} << 50;               // above any card
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;  // a double tells these from each other

/// A value of a file of marks, and where it stands.
class Place {
 public:
  Place(const json& value, std::string where, const char* file_kind)
      : value_(value), where_(std::move(where)), file_kind_(file_kind) {}

  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_, what); }

  [[nodiscard]] const json& value() const { return value_; }

  [[nodiscard]] bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }

  [[nodiscard]] Place at(const std::string& key) const {
    if (has(key)) return {value_.at(key), where_ + '/' + key, file_kind_};
    throw InputError(where_ + '/' + key, std::string("is missing. This is not a ") + file_kind_ + '.');
  }

  [[nodiscard]] std::vector<Place> entries() const {
    if (!value_.is_array()) fail("is not a list.");
    std::vector<Place> places;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      places.emplace_back(value_[i], where_ + '/' + std::to_string(i), file_kind_);
    }
    return places;
  }

  template <class Value>
  [[nodiscard]] Value as() const {
    return read([&] { return exact<Value>(value_); });
  }

  /// The same for a number, of which only `low` to `high` is allowed.
  template <class Value>
  [[nodiscard]] Value as(Value low, Value high) const {
    return read([&] { return exact<Value>(value_, low, high); });
  }

  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise = {}) const {
    return has(key) ? at(key).as<std::string>() : otherwise;
  }

 private:
  template <class Read>
  auto read(const Read& reading) const {
    try {
      return reading();
    } catch (const InputError& error) {
      fail(error.problems().front().what);
    }
  }

  const json& value_;
  std::string where_;
  const char* file_kind_;
};

json parse(std::string_view text, const std::string& name) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(name, "byte " + std::to_string(error.byte) + ": not valid JSON.");
  }
}

// What all lists of marks have in common: labels, and times in order. `read_more` takes the rest of a mark.
template <class Mark, class ReadMore>
std::vector<Mark> read_marks(const Place& file, const ReadMore& read_more) {
  std::vector<Mark> marks;
  for (const Place& entry : file.at("marks").entries()) {
    Mark mark;
    const Place time = entry.at("t_us");
    if (!time.value().is_number_integer()) time.fail("is not a whole number (Unix time in microseconds).");
    mark.time_us = time.as<std::int64_t>(0, kMostCount);
    mark.label = entry.text("label");
    if (!marks.empty() && mark.time_us < marks.back().time_us) {
      time.fail("is earlier than the mark before it.");
    }
    read_more(entry, mark);
    marks.push_back(std::move(mark));
  }
  return marks;
}

// R9.1: the fraction is a double, and so is its product with the total.
std::optional<Bytes> limit_of(Bytes cap_mib, Bytes total) {
  if (cap_mib == 0 || total == 0) return std::nullopt;
  const double fraction = static_cast<double>(cap_mib * 1_MiB) / static_cast<double>(total);
  return static_cast<Bytes>(fraction * static_cast<double>(total));
}

void read_counters(const Place& entry, TruthMark& mark) {
  const Place stats = entry.at("stats");
  if (!stats.value().is_object()) stats.fail("is not an object of counters.");
  for (const std::string& counter : stat_names()) {
    mark.stats.push_back(stats.has(counter) ? std::optional(stats.at(counter).as<std::int64_t>())
                                            : std::nullopt);
  }
  if (!entry.has("mem_get_info")) return;
  const std::vector<Place> info = entry.at("mem_get_info").entries();
  if (info.size() != 2) entry.at("mem_get_info").fail("is not [free, total].");
  mark.device_free = info[0].as<Bytes>(0, kMostMemory);
  mark.device_total = info[1].as<Bytes>(0, kMostMemory);
}

std::vector<std::int64_t> counts(const Place& list) {
  std::vector<std::int64_t> numbers;
  for (const Place& entry : list.entries()) {
    if (!entry.value().is_number_integer()) list.fail("mixes entries of different kinds.");
    numbers.push_back(entry.as<std::int64_t>());
    if (numbers.back() < 0) list.fail("holds a negative number.");
    if (numbers.back() > kMostCount) list.fail("holds a number above 2^53.");
  }
  return numbers;
}

void read_parameters(const Place& params, StepParameters& out) {
  if (!params.value().is_object()) params.fail("is not an object.");
  for (const auto& [key, value] : params.value().items()) {
    const Place place = params.at(key);
    const bool is_list = value.is_array() && !value.empty();
    if (value.is_number_integer()) {
      out.scalars[key] = place.as<std::int64_t>();
      if (out.scalars[key] < 0) place.fail("is negative.");
      if (out.scalars[key] > kMostCount) place.fail("is above 2^53.");
    } else if (value.is_array() && key == "micro_batches") {
      if (value.size() != 1) {
        place.fail("has " + std::to_string(value.size()) +
                   " entries. Only steps of one micro-batch are understood: record each micro-batch as "
                   "a step of its own, or without accumulation.");
      }
      read_parameters(place.entries()[0], out);
    } else if (is_list && value[0].is_number_integer()) {
      out.lists[key] = counts(place);
    } else if (is_list && value[0].is_string()) {
      for (const Place& word : place.entries()) {
        if (!word.value().is_string()) place.fail("mixes entries of different kinds.");
        out.words[key].push_back(word.as<std::string>());
      }
    } else {
      place.fail("must be a whole number, or a list of whole numbers or words with one entry an item.");
    }
  }
}

// Nothing but an answer about the room on a card needs it, so a bad one is passed over.
void read_used_memory(const Place& entry, StepMark& mark) {
  if (!entry.has("mem_get_info")) return;
  const json& info = entry.at("mem_get_info").value();
  if (!info.is_array() || info.size() != 2) return;
  if (!info[0].is_number_unsigned() || !info[1].is_number_unsigned()) return;
  const auto free = info[0].get<Bytes>();
  const auto total = info[1].get<Bytes>();
  if (free > total) return;
  mark.device_used = total - free;
  mark.device_total = total;
}

void read_step(const Place& entry, StepMark& mark) {
  const std::string phase = entry.text("phase", "step");
  if (phase != "step" && phase != "other") {
    entry.at("phase").fail('"' + phase + "\" is not known. Write \"step\" or \"other\".");
  }
  mark.is_step = phase == "step";
  if (entry.has("oom")) mark.oom = entry.at("oom").as<bool>();
  read_used_memory(entry, mark);
  if (entry.has("params")) read_parameters(entry.at("params"), mark.parameters);
}

constexpr const char* kMarksFile = "marks file";

}  // namespace

TruthFile parse_truth_file(std::string_view text, const std::string& name) {
  const json root = parse(text, name);
  const Place file(root, name + ": ", "truth file");
  TruthFile truth;
  truth.workload = file.text("workload");
  truth.tag = file.text("tag");
  truth.torch = file.text("torch");
  truth.conf = file.at("conf").as<std::string>();
  truth.total_memory = file.at("total_memory").as<Bytes>(0, kMostMemory);
  truth.limit = limit_of(file.at("cap_mib").as<Bytes>(0, kMostMemory / 1_MiB), truth.total_memory);
  truth.entries = file.at("entries").as<std::uint64_t>();
  truth.marks = read_marks<TruthMark>(file, read_counters);
  return truth;
}

TruthFile read_truth_file(const std::filesystem::path& file) {
  return parse_truth_file(read_input_file(file), file.string());
}

std::vector<StepMark> parse_marks_file(std::string_view text, const std::string& name) {
  const json root = parse(text, name);
  return read_marks<StepMark>(Place(root, name + ": ", kMarksFile), read_step);
}

std::vector<StepMark> read_marks_file(const std::filesystem::path& file) {
  return parse_marks_file(read_input_file(file), file.string());
}

std::vector<StepMark> read_mark_times(const std::filesystem::path& file) {
  const json root = parse(read_input_file(file), file.string());
  return read_marks<StepMark>(Place(root, file.string() + ": ", kMarksFile), read_used_memory);
}

std::optional<RecordedRank> read_recorded_rank(const std::filesystem::path& file) {
  constexpr std::uint32_t kMost = 65'536;
  const json root = parse(read_input_file(file), file.string());
  const Place place(root, file.string() + ": ", kMarksFile);
  if (!place.has("world")) return std::nullopt;
  RecordedRank one{.world = place.at("world").as<std::uint32_t>(1, kMost)};
  if (place.has("rank")) one.rank = place.at("rank").as<std::uint32_t>(0, one.world - 1);
  return one;
}

std::optional<std::filesystem::path> find_beside(const std::filesystem::path& snapshot,
                                                 const std::string& ending) {
  std::string stem = snapshot.filename().string();
  for (const char* end : {".gz", ".zst", ".pickle"}) {
    if (stem.ends_with(end)) stem.resize(stem.size() - std::string_view(end).size());
  }
  for (const char* packed : {"", ".gz", ".zst"}) {
    const std::filesystem::path file = snapshot.parent_path() / (stem + ending + packed);
    if (std::filesystem::exists(file)) return file;
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> find_truth_file(const std::filesystem::path& snapshot) {
  return find_beside(snapshot, ".truth.json");
}

std::optional<TorchVersion> torch_version(const std::optional<TruthFile>& truth) {
  if (!truth || truth->torch.empty()) return std::nullopt;
  try {
    return parse_torch_version(truth->torch);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::optional<TruthFile> truth_beside(const std::filesystem::path& snapshot) {
  const auto file = find_truth_file(snapshot);
  return file ? std::optional(read_truth_file(*file)) : std::nullopt;
}

}  // namespace vramlab
