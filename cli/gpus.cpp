// vramlab gpus: the cards that a scenario can name.
#include <fmt/format.h>

#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "models/gpu_catalogue.hpp"

namespace vramlab {
namespace {

std::string gib_text(Bytes size) {
  return fmt::format("{:.2f} GiB", static_cast<double>(size) / static_cast<double>(1_GiB));
}

// "5.1 MiB"; nothing for a total known to the byte.
std::string rounding_text(Bytes rounding) {
  if (rounding == 0) return "-";
  return fmt::format("{:.1f} MiB", static_cast<double>(rounding) / static_cast<double>(1_MiB));
}

int run_gpus(const Arguments&, Output& output) {
  Table table{{left("gpu"), "total", "±", left("seen, in GiB"), "context", left(""), left("source")}};
  Json json = Json::array();
  for (const Gpu& gpu : gpu_catalogue()) {
    table.add_row({std::string{gpu.id}, gib_text(gpu.total), rounding_text(gpu.rounding),
                   std::string{gpu.seen}, format_bytes(gpu.context),
                   gpu.context_assumed() ? "assumed" : "measured", std::string{gpu.source}});
    json.push_back({{"id", gpu.id},
                    {"name", gpu.name},
                    {"total_bytes", gpu.total},
                    {"rounding_bytes", gpu.rounding},
                    {"seen_gib", gpu.seen},
                    {"source", gpu.source},
                    {"context_bytes", gpu.context},
                    {"context_assumed", gpu.context_assumed()}});
  }
  output.table(table);
  output.line(
      "\ntotal = measured, or the smallest that is common on Linux; ± = the rounding of the printed figure; "
      "seen = every "
      "total found (drivers, ECC).\n"
      "source = project and issue, or words of a log in a public repository that a search for them finds; "
      "measured = read with cudaMemGetInfo.\n"
      "A name may be written as usual: 4090, \"RTX 3060\", A100-80GB.");
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
