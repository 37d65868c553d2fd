#include "lab/scenario/result_keys.hpp"

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "recordings/input_file.hpp"

namespace vramlab {

std::uint64_t text_hash(std::string_view text, std::uint64_t start) {
  for (const char c : text) start = (start ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return start;
}

std::string hash_text(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string ResultKeys::of(const ScenarioDocument& scenario, const std::vector<std::string>& more) {
  const auto [start, is_new] = starts_.try_emplace(scenario.kind, text_hash(version_));
  if (is_new) {  // and which figures there are: a row without one is of another program
    for (const std::string& name : names_of(kind_of(scenario).metrics())) {
      start->second = text_hash(name + '\n', start->second);
    }
  }
  std::uint64_t sum = text_hash(scenario.json.dump(), start->second);
  for (const std::string& text : more) sum = text_hash(text + '\n', sum);
  for (const PolicyPlugin& plugin : scenario.policies->plugins) {
    sum = text_hash(fmt::format("{:x}", hash_of(plugin.file)), sum);
  }
  add_files(scenario.json, scenario.file, sum);
  return hash_text(sum);
}

std::uint64_t ResultKeys::hash_of(const std::filesystem::path& file) {
  const auto [place, fresh] = files_.try_emplace(file, 0);
  if (fresh) place->second = text_hash(read_input_file(file));
  return place->second;
}

// Any text of a scenario may name a file; most name none.
void ResultKeys::add_files(const Json& json, const std::filesystem::path& scenario, std::uint64_t& sum) {
  if (json.is_string()) {
    const auto& name = json.get_ref<const std::string&>();
    if (name.find('.') == std::string::npos || name.size() > 4096) return;
    if (const auto file = find_data_file(name, scenario)) {
      sum = text_hash(fmt::format("{:x}", hash_of(*file)), sum);
    }
  }
  if (json.is_structured()) {
    for (const Json& inside : json) add_files(inside, scenario, sum);
  }
}

}  // namespace vramlab
