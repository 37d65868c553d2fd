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

int run(const Arguments& arguments) {
  Output output{arguments};
  using Align = Table::Align;
  Table table{{{"model", Align::left},
               {"kind", Align::left},
               {"recorded", Align::left},
               {"peak allocated"},
               {"peak reserved"}}};
  Json list = Json::array();
  for (const fs::path& file : model_files()) {
    const Json json = read_json_file(file);
    const auto model = parse_model(json, file.string() + ": ");
    const std::string name = "models/" + file.filename().string();
    const Json& ranges = json.contains("recorded_range") ? json["recorded_range"] : json["parameters"];
    table.add_row({name, json["kind"].get<std::string>(), ranges_text(ranges),
                   accuracy_text(json, "peak_allocated"), accuracy_text(json, "peak_reserved")});
    Json entry;
    entry["model"] = name;
    entry["kind"] = json["kind"];
    entry["about"] = json.value("about", "");
    entry["parameters"] = Json::object();
    for (const Parameter& parameter : model->parameters().parameters) {
      entry["parameters"][parameter.name] = {parameter.low, parameter.high};
    }
    entry["recorded_range"] = ranges;
    if (json.contains("card")) entry["card"] = json["card"];
    list.push_back(std::move(entry));
  }
  output.line("Scenarios name them (\"model\": \"models/gpt2.json\"), vramlab predict asks them.\n");
  output.table(table);
  output.line(
      "\nerrors against measured steps: median / 95th percentile / largest; \"-\" = docs/fidelity.md");
  Json json;
  json["models"] = std::move(list);
  output.json(json);
  return kDone;
}

}  // namespace

Verb models_verb() {
  return {.name = "models",
          .summary = "the workload models there are, and how well they agree with a card",
          .operands = "",
          .example = "vramlab models",
          .least_operands = 0,
          .most_operands = 0,
          .add_options = add_output_options,
          .run = run};
}

}  // namespace vramlab
