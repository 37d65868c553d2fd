// vramlab gpus: the cards that a scenario can name.
#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "models/gpu_catalogue.hpp"

namespace vramlab {
namespace {

int run_gpus(const Arguments&, Output& output) {
  Table table{{left("gpu"), left("card"), "total", "bytes", left("source"), "context"}};
  Json json = Json::array();
  for (const Gpu& gpu : gpu_catalogue()) {
    const bool measured = gpu.figures == GpuFigures::measured;
    const std::string source = measured ? "measured" : "nominal";
    table.add_row({std::string{gpu.id}, std::string{gpu.name}, format_bytes(gpu.total),
                   fmt::format("{}", gpu.total), source,
                   format_bytes(gpu.context) + (measured ? "" : " assumed")});
    json.push_back({{"id", gpu.id},
                    {"name", gpu.name},
                    {"total_bytes", gpu.total},
                    {"source", source},
                    {"context_bytes", gpu.context}});
  }
  output.table(table);
  output.line(
      "\nmeasured = read from the driver on such a card; nominal = the size on the box, of which a driver "
      "keeps some.");
  output.json(json);
  return kDone;
}

}  // namespace

Verb gpus_verb() {
  return {.name = "gpus",
          .summary = "the cards a scenario can name, and where their sizes come from",
          .example = "vramlab gpus",
          .add_options = add_output_options,
          .run = run_gpus};
}

}  // namespace vramlab
