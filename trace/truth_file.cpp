#include "trace/truth_file.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "sim/memory/memory_stats.hpp"
#include "trace/input_file.hpp"

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

}  // namespace vramlab
