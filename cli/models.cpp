// vramlab models: the workload models that come with the program, and how well they agree with a card.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "lab/model/file.hpp"
#include "lab/scenario/file.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> model_files() {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(data_folder() / "models", ignored)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ranges_text(const Json& ranges) {
  std::string text;
  for (const auto& [name, range] : ranges.items()) {
    text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", name, range[0].dump(), range[1].dump());
  }
  return text;
}

std::string accuracy_text(const Json& json, const char* key) {
  if (!json.contains("card") || !json["card"].contains("accuracy")) return "-";
  return json["card"]["accuracy"].value(key, "-");
}

int run_models(const Arguments&, Output& output) {
  Table table{{left("model"), left("kind"), left("recorded"), "peak allocated", "peak reserved"}};
  Json list = Json::array();
  for (const fs::path& file : model_files()) {
    const Json json = read_json_file(file);
    const auto model = parse_model(json, file.string() + ": ");
    const std::string name = "models/" + file.filename().string();
    const Json& ranges = json.contains("recorded_range") ? json["recorded_range"] : json["parameters"];
    table.add_row({name, json["kind"].get<std::string>(), ranges_text(ranges),
                   accuracy_text(json, "peak_allocated"), accuracy_text(json, "peak_reserved")});
    list.push_back({{"model", name},
                    {"kind", json["kind"]},
                    {"about", json.value("about", "")},
                    {"parameters", ranges_json(model->parameters().parameters)},
                    {"recorded_range", ranges}});
    if (json.contains("card")) list.back()["card"] = json["card"];
  }
  output.line("Scenarios name them (\"model\": \"models/gpt2.json\"), vramlab predict asks them.\n");
  output.table(table);
  output.line(
      "\nerrors against measured steps: median / 95th percentile / largest; \"-\" = docs/fidelity.md");
  output.json({{"models", std::move(list)}});
  return kDone;
}

}  // namespace

Verb models_verb() {
  return {.name = "models",
          .summary = "the workload models there are, and how well they agree with a card",
          .example = "vramlab models",
          .add_options = add_output_options,
          .run = run_models};
}

}  // namespace vramlab
