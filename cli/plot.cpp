// vramlab plot: results and traces as a picture.
#include <filesystem>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "recordings/open.hpp"
#include "recordings/runs/run_trace.hpp"
#include "report/pictures.hpp"

namespace vramlab {
namespace {

namespace fs = std::filesystem;

void add_plot_options(Options& options) {
  options.add_options()("output,o", text_value("FILE"), "the picture, .svg or .png")(
      "title", text_value("TEXT"), "what stands above it (default: the scenario, or the files)");
  add_output_options(options);
}

/// A trace to draw, and what it is called.
struct Drawn {
  std::string label;
  RunTrace trace;
};

/// All that goes into one picture.
struct Pictured {
  PictureFrame frame;
  std::vector<Drawn> runs;
};

// A trace's path stands as it was given then; it is looked up here, and beside the result.
fs::path trace_of(const Json& policy, const std::string& result) {
  if (!policy.contains("trace_file")) {
    throw InputError(
        result, "is not a result of a scenario of kind training; only traces of training runs are drawn.");
  }
  if (!policy["trace_file"].is_string()) {
    throw InputError(result, "names no traces. Write it with vramlab compare --trace-dir DIR --json FILE.");
  }
  const fs::path given = policy["trace_file"].get<std::string>();
  const fs::path beside = fs::path{result}.parent_path() / given;
  std::error_code ignored;
  return !fs::exists(given, ignored) && fs::exists(beside, ignored) ? beside : given;
}

void add_result(InputFile& in, Pictured& picture, Output& output) {
  const std::string file = in.name();
  const Json json = parse_json(in.rest(), file);
  const bool whole = json.is_object() && json.contains("policies") && json["policies"].is_array() &&
                     json.contains("scenario") && json["scenario"].is_string();
  if (!whole)
    throw InputError(file, "is not a result of vramlab compare --json of one scenario of kind training.");
  for (const Json& policy : json["policies"]) {
    const bool named = policy.is_object() && policy.contains("label") && policy["label"].is_string();
    if (!named) throw InputError(file, "has a policy without a label.");
    const fs::path trace = trace_of(policy, file);
    output.reads({trace.string()});
    picture.runs.push_back({policy["label"].get<std::string>(), read_run_trace(trace)});
  }
  picture.frame.title = json["scenario"].get<std::string>();
  const Json target = json.value("target", Json::object());
  if (!target.contains("usage") || !target.contains("margin")) return;
  if (!target["usage"].is_number() || !target["margin"].is_number()) return;
  picture.frame.band_low = target["usage"].get<double>() - target["margin"].get<double>();
  picture.frame.band_high = target["usage"].get<double>() + target["margin"].get<double>();
}

Pictured read_all(const std::vector<std::string>& files, Output& output) {
  Pictured picture;
  for (const std::string& file : files) {
    InputFile in(file);
    if (require_kind(in, {FileKind::result, FileKind::run_trace, FileKind::run_table}) == FileKind::result) {
      add_result(in, picture, output);
    } else {
      picture.runs.push_back({fs::path{file}.stem().string(), read_run_trace(in)});
    }
  }
  if (picture.runs.empty()) throw InputError(files.front(), "holds nothing to draw.");
  picture.frame.parameters = picture.runs.front().trace.parameters;
  for (const Drawn& run : picture.runs) {
    if (run.trace.parameters != picture.frame.parameters) {
      throw InputError(run.label,
                       "has other parameters than " + picture.runs.front().label + "; draw them apart.");
    }
  }
  return picture;
}

int run_plot(const Arguments& arguments, Output& output) {
  const auto file = text_of(arguments, "output");
  if (file.empty()) throw InputError("", "name the picture: -o FILE.svg or -o FILE.png.");
  require_picture_name(file);
  require_output_names(operands(arguments), {file, text_of(arguments, "json")});
  Pictured picture = read_all(operands(arguments), output);
  const auto title = text_of(arguments, "title");
  if (!title.empty()) picture.frame.title = title;
  std::vector<PictureRun> runs;
  for (const Drawn& one : picture.runs) runs.push_back({one.label, &one.trace.iterations});
  draw_trace_picture(picture.frame, runs, file);
  output.wrote(file);
  output.json({{"picture", file}, {"runs", runs.size()}});
  return kDone;
}

}  // namespace

Verb plot_verb() {
  return {.name = "plot",
          .summary = "results and traces as a picture",
          .operands = "RESULT.json|TRACE.{jsonl,csv}...",
          .count = {1, 100},
          .example = "vramlab plot settled.csv -o settled.svg",
          .add_options = add_plot_options,
          .run = run_plot};
}

}  // namespace vramlab
