#include "trace/marks_file.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/error.hpp"
#include "trace/input_file.hpp"

namespace vramlab {
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
