#include "lab/isolation.hpp"

#include <string>
#include <utility>
#include <vector>

#include "lab/scenario/policies.hpp"
#include "plugins/isolated_policies.hpp"

namespace vramlab {
namespace {

// The scenario's own plugins, without which its policies are not known. What cannot be loaded its reader
// says.
void load_plugins(ScenarioDocument& document) {
  if (!document.json.contains("plugins") || !document.json["plugins"].is_array()) return;
  std::vector<std::string> files;
  for (const Json& file : document.json["plugins"]) {
    if (file.is_string()) files.push_back(file.get<std::string>());
  }
  FileProblems unheard{document.file};
  document.policies = with_plugins(files, document.file, document.policies, unheard);
}

}  // namespace

ScenarioDocument isolated(ScenarioDocument document, std::chrono::seconds limit) {
  if (!document.json.is_object()) return document;
  load_plugins(document);
  document.policies = isolated_policies(document.policies, limit);
  return document;
}

}  // namespace vramlab
