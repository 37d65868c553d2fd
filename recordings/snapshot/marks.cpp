#include "recordings/snapshot/marks.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "recordings/input_file.hpp"
#include "sim/memory/memory_stats.hpp"

namespace vramlab {
namespace {

using nlohmann::json;

class TruthReader {
 public:
  TruthReader(const json& root, const std::string& name) : root_(root), name_(name) {}

  [[nodiscard]] TruthFile read() const {
    TruthFile truth;
    truth.workload = optional_text("/workload");
    truth.tag = optional_text("/tag");
    truth.torch = optional_text("/torch");
    truth.conf = field<std::string>("/conf");
    truth.total_memory = field<Bytes>("/total_memory");
    truth.limit = limit(field<Bytes>("/cap_mib"), truth.total_memory);
    truth.entries = field<std::uint64_t>("/entries");
    const json& marks = at("/marks");
    if (!marks.is_array()) fail("/marks", "is not a list.");
    for (std::size_t i = 0; i < marks.size(); ++i) truth.marks.push_back(mark("/marks/" + std::to_string(i)));
    for (std::size_t i = 1; i < truth.marks.size(); ++i) {
      if (truth.marks[i].time_us < truth.marks[i - 1].time_us) {
        fail("/marks/" + std::to_string(i) + "/t_us", "is earlier than the mark before it.");
      }
    }
    return truth;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(name_ + ": " + pointer, what);
  }

  [[nodiscard]] const json& at(const std::string& pointer) const {
    const json::json_pointer place(pointer);
    if (!root_.contains(place)) fail(pointer, "is missing. This is not a truth file.");
    return root_.at(place);
  }

  template <class Value>
  [[nodiscard]] Value field(const std::string& pointer) const {
    const json& value = at(pointer);
    try {
      return value.get<Value>();
    } catch (const json::exception&) {
      fail(pointer, "is of the wrong type: " + value.dump().substr(0, 60));
    }
  }

  [[nodiscard]] std::string optional_text(const std::string& pointer) const {
    return root_.contains(json::json_pointer(pointer)) ? field<std::string>(pointer) : "";
  }

  // R9.1: the fraction is a double, and so is its product with the total.
  static std::optional<Bytes> limit(Bytes cap_mib, Bytes total) {
    if (cap_mib == 0 || total == 0) return std::nullopt;
    const double fraction = static_cast<double>(cap_mib * 1_MiB) / static_cast<double>(total);
    return static_cast<Bytes>(fraction * static_cast<double>(total));
  }

  [[nodiscard]] TruthMark mark(const std::string& pointer) const {
    TruthMark mark;
    mark.label = field<std::string>(pointer + "/label");
    mark.time_us = field<std::int64_t>(pointer + "/t_us");
    const json& stats = at(pointer + "/stats");
    if (!stats.is_object()) fail(pointer + "/stats", "is no object of counters.");
    for (const std::string& counter : stat_names()) {
      mark.stats.push_back(stats.contains(counter)
                               ? std::optional(field<std::int64_t>(pointer + "/stats/" + counter))
                               : std::nullopt);
    }
    if (at(pointer).contains("mem_get_info")) {
      mark.device_free = field<Bytes>(pointer + "/mem_get_info/0");
      mark.device_total = field<Bytes>(pointer + "/mem_get_info/1");
    }
    return mark;
  }

  const json& root_;
  const std::string& name_;
};

}  // namespace

TruthFile parse_truth_file(std::string_view text, const std::string& name) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(name, "byte " + std::to_string(error.byte) + ": not valid JSON.");
  }
  return TruthReader(root, name).read();
}

TruthFile read_truth_file(const std::filesystem::path& file) {
  return parse_truth_file(read_input_file(file), file.string());
}

std::optional<std::filesystem::path> find_beside(const std::filesystem::path& snapshot,
                                                 const std::string& ending) {
  std::string stem = snapshot.filename().string();
  for (const char* end : {".gz", ".zst", ".pickle"}) {
    if (stem.ends_with(end)) stem.resize(stem.size() - std::string_view(end).size());
  }
  for (const char* packed : {"", ".gz"}) {
    const std::filesystem::path file = snapshot.parent_path() / (stem + ending + packed);
    if (std::filesystem::exists(file)) return file;
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> find_truth_file(const std::filesystem::path& snapshot) {
  return find_beside(snapshot, ".truth.json");
}

namespace {

using nlohmann::json;

class MarksReader {
 public:
  explicit MarksReader(const std::string& name) : name_(name) {}

  [[nodiscard]] std::vector<StepMark> read(const json& root) const {
    if (!root.is_object() || !root.contains("marks") || !root["marks"].is_array()) {
      fail("/marks", "is missing or no list. This is not a marks file.");
    }
    std::vector<StepMark> marks;
    for (std::size_t i = 0; i < root["marks"].size(); ++i) {
      const std::string pointer = "/marks/" + std::to_string(i);
      marks.push_back(mark(root["marks"][i], pointer));
      if (i > 0 && marks[i].time_us < marks[i - 1].time_us) {
        fail(pointer + "/t_us", "is earlier than the mark before it.");
      }
    }
    return marks;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(name_ + ": " + pointer, what);
  }

  [[nodiscard]] StepMark mark(const json& entry, const std::string& pointer) const {
    if (!entry.is_object()) fail(pointer, "is no object.");
    if (!entry.contains("t_us") || !entry["t_us"].is_number_integer()) {
      fail(pointer + "/t_us", "is missing or no whole number (Unix time in microseconds).");
    }
    StepMark mark;
    mark.time_us = entry["t_us"];
    const std::string phase = text(entry, "phase", "step", pointer);
    if (phase != "step" && phase != "other") {
      fail(pointer + "/phase", '"' + phase + "\" is not known. Write \"step\" or \"other\".");
    }
    mark.is_step = phase == "step";
    mark.label = text(entry, "label", "", pointer);
    if (entry.contains("oom")) {
      if (!entry["oom"].is_boolean()) fail(pointer + "/oom", "is neither true nor false.");
      mark.oom = entry["oom"];
    }
    if (entry.contains("params")) parameters(entry["params"], pointer + "/params", mark.parameters);
    return mark;
  }

  [[nodiscard]] std::string text(const json& entry, const char* key, const char* otherwise,
                                 const std::string& pointer) const {
    if (!entry.contains(key)) return otherwise;
    if (!entry[key].is_string()) fail(pointer + "/" + key, "is no text.");
    return entry[key];
  }

  void parameters(const json& params, const std::string& pointer, StepParameters& out) const {
    if (!params.is_object()) fail(pointer, "is no object.");
    for (const auto& [key, value] : params.items()) {
      const std::string place = pointer + "/" + key;
      if (value.is_number_integer()) {
        out.scalars[key] = value;
        if (out.scalars[key] < 0) fail(place, "is negative.");
      } else if (value.is_array() && key == "micro_batches") {
        if (value.size() != 1) {
          fail(place,
               "has " + std::to_string(value.size()) +
                   " entries. Only steps of one micro-batch are understood: record each micro-batch as "
                   "a step of its own, or without accumulation.");
        }
        parameters(value[0], place + "/0", out);
      } else if (value.is_array() && !value.empty() && value[0].is_number_integer()) {
        out.lists[key] = list<std::int64_t>(value, place);
        for (const std::int64_t one : out.lists[key]) {
          if (one < 0) fail(place, "holds a negative number.");
        }
      } else if (value.is_array() && !value.empty() && value[0].is_string()) {
        out.words[key] = list<std::string>(value, place);
      } else {
        fail(place, "must be a whole number, or a list of whole numbers or words with one entry an item.");
      }
    }
  }

  template <class Value>
  [[nodiscard]] std::vector<Value> list(const json& value, const std::string& pointer) const {
    try {
      return value.get<std::vector<Value>>();
    } catch (const json::exception&) {
      fail(pointer, "mixes entries of different kinds.");
    }
  }

  const std::string& name_;
};

}  // namespace

std::vector<StepMark> parse_marks_file(std::string_view text, const std::string& name) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    throw InputError(name + ": byte " + std::to_string(error.byte), "is not JSON.");
  }
  return MarksReader(name).read(root);
}

std::vector<StepMark> read_marks_file(const std::filesystem::path& file) {
  return parse_marks_file(read_input_file(file), file.string());
}

}  // namespace vramlab
