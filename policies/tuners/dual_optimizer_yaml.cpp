#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "core/error.hpp"
#include "policies/tuners/dual_optimizer_options.hpp"

namespace vramlab {
namespace {

constexpr const char* kOuter = "training_automations";
constexpr const char* kInner = "DynamicBatchSizeOptimizer";

std::string place(const std::string& file, const YAML::Mark& mark) {
  return mark.is_null() ? file : file + ":" + std::to_string(mark.line + 1);
}

// Quoted text has the tag "!" and stays text, whatever it looks like.
OptionValue scalar_value(const YAML::Node& node) {
  if (node.Tag() == "!") return node.Scalar();
  if (bool flag = false; YAML::convert<bool>::decode(node, flag)) return flag;
  if (std::int64_t number = 0; YAML::convert<std::int64_t>::decode(node, number)) return number;
  if (double number = 0; YAML::convert<double>::decode(node, number)) return number;
  return node.Scalar();
}

YAML::Node parse(const std::string& text, const std::string& file) {
  try {
    return YAML::Load(text);
  } catch (const YAML::ParserException& fault) {
    throw InputError(place(file, fault.mark), "this is not YAML: " + fault.msg + ".");
  }
}

// yaml-cpp's operator[] on a const node of the wrong kind throws, so kinds are looked at first.
YAML::Node section(const YAML::Node& parent, const std::string& key, const std::string& file) {
  const YAML::Node child = parent.IsMap() ? parent[key] : YAML::Node(YAML::NodeType::Undefined);
  if (!child.IsDefined()) {
    throw InputError(place(file, parent.Mark()), "there is no section \"" + key + "\". The form is " +
                                                     kOuter + ": {" + kInner +
                                                     ": {target_vram_usage: 0.85, ...}}.");
  }
  if (!child.IsMap()) {
    throw InputError(place(file, child.Mark()), "\"" + key + "\" is not a section of keys and values.");
  }
  return child;
}

void read_options(const YAML::Node& node, const std::string& file, OptionMap& map,
                  std::vector<Problem>& problems) {
  for (const auto& row : node) {
    const std::string where = place(file, row.first.Mark());
    if (!row.first.IsScalar()) {
      problems.push_back({where, "a key must be a word."});
    } else if (const std::string& key = row.first.Scalar(); map.find(key) != nullptr) {
      problems.push_back({where, "\"" + key + "\" is given twice. Keep one."});
    } else if (!row.second.IsScalar()) {
      problems.push_back({where, "\"" + key + "\" has no single value. Write KEY: VALUE."});
    } else {
      map.set(key, scalar_value(row.second), where);
    }
  }
}

// Only false counts on the outer level: it switches off every automation, this one included.
void read_switch(const YAML::Node& outer, const std::string& file, OptionMap& map,
                 std::vector<Problem>& problems) {
  const YAML::Node node = outer["enabled"];
  if (!node.IsDefined()) return;
  bool enabled = true;
  if (!node.IsScalar() || !YAML::convert<bool>::decode(node, enabled)) {
    problems.push_back({place(file, node.Mark()), "\"enabled\" must be true or false."});
  } else if (!enabled) {
    map.set("enabled", false, place(file, node.Mark()));
  }
}

}  // namespace

OptionMap read_dual_optimizer_yaml(const std::string& text, const std::string& file) {
  const YAML::Node outer = section(parse(text, file), kOuter, file);
  const YAML::Node inner = section(outer, kInner, file);
  OptionMap map;
  std::vector<Problem> problems;
  read_options(inner, file, map, problems);
  read_switch(outer, file, map, problems);
  if (!problems.empty()) throw InputError(std::move(problems));
  return map;
}

OptionMap load_dual_optimizer_yaml(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) throw InputError(file, "the file cannot be read, or is empty.");
  return read_dual_optimizer_yaml(text.str(), file);
}

}  // namespace vramlab
