#include "lab/model/file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "lab/model/recorded.hpp"
#include "models/linear.hpp"
#include "models/recorded_model.hpp"
#include "models/super_resolution.hpp"

namespace vramlab {
namespace {

constexpr double kMany = 1e9;
constexpr double kLongestStep = 1e6;              // milliseconds
constexpr double kLargestSize = 1099511627776.0;  // 1 TiB, above any card

Field text(std::string key, std::string help) {
  return {.key = std::move(key), .kind = FieldKind::text, .help = std::move(help)};
}

Field count(std::string key, std::string help, double low, double high) {
  return {.key = std::move(key),
          .kind = FieldKind::integer,
          .help = std::move(help),
          .required = true,
          .low = low,
          .high = high};
}

Field number(std::string key, std::string help) {
  return {.key = std::move(key), .kind = FieldKind::number, .help = std::move(help), .high = kLongestStep};
}

Field size(std::string key, std::string help, bool required) {
  return {.key = std::move(key),
          .kind = FieldKind::size,
          .help = std::move(help),
          .required = required,
          .high = kLargestSize};
}

Field object(std::string key, std::string help, std::vector<Field> fields) {
  return {.key = std::move(key),
          .kind = FieldKind::object,
          .help = std::move(help),
          .required = true,
          .fields = std::move(fields)};
}

Field list(std::string key, std::string help, std::vector<Field> fields) {
  return {
      .key = std::move(key), .kind = FieldKind::list, .help = std::move(help), .fields = std::move(fields)};
}

Field bounds(std::string key, std::string help, bool required) {
  return {.key = std::move(key), .kind = FieldKind::bounds, .help = std::move(help), .required = required};
}

std::vector<Field> common_fields() {
  return {text("kind", "sort of model"),
          text("name", "name of the model"),
          text("about", "what was modelled, for people"),
          {.key = "sources", .kind = FieldKind::object, .help = "where the figures come from", .open = true}};
}

std::vector<Field> workspace_rule() {
  return {bounds("where", "ranges of batch, lq and pixels the rule is for; default all", false),
          {.key = "copies",
           .kind = FieldKind::choice,
           .help = "what the kernel copies into its workspace",
           .required = true,
           .choices = {"none", "input", "both", "winograd", "fourier"}},
          {.key = "pad_channels",
           .kind = FieldKind::integer,
           .help = "channels are rounded up to a multiple of this; default 1",
           .low = 1,
           .high = 64},
          size("scratch", "bytes on top of the copies; default 0", false)};
}

std::vector<Field> convolution() {
  return {list("forward", "rules of the forward kernel; the first that holds", workspace_rule()),
          list("input_gradient", "rules of the kernel for the gradient of the input", workspace_rule()),
          list("weight_gradient", "rules of the kernel for the gradient of the weights", workspace_rule())};
}

std::vector<Field> step_time(std::string slope) {
  return {number("floor_ms", "shortest duration of a step, milliseconds; default 0"),
          number("base_ms", "duration without any work, milliseconds; default 0"),
          number(std::move(slope), "further microseconds for each; default 0")};
}

ModelKind super_resolution() {
  std::vector<Field> fields = common_fields();
  fields.push_back(bounds("parameters", "ranges of batch and lq the model is meant for", true));
  fields.push_back(object("architecture", "the network",
                          {count("image_channels", "channels of an image", 1, 1024),
                           count("channels", "channels of the trunk", 1, 65536),
                           count("growth", "channels each dense convolution adds", 1, 65536),
                           count("residual_blocks", "outer blocks", 1, 1000),
                           count("dense_blocks", "dense blocks in each outer block", 1, 1000),
                           count("dense_convolutions", "convolutions in each dense block", 2, 100),
                           count("scale", "side of the output over side of the input", 1, 64)}));
  fields.push_back(object("step_time", "duration of a step", step_time("us_per_pixel")));
  fields.push_back(object("reductions", "sums over many elements",
                          {count("two_stages_from", "elements from which partial sums are used", 1, kMany),
                           count("elements_per_part", "elements of a partial sum", 1, kMany),
                           count("most_parts", "partial sums of all outputs together", 1, kMany)}));
  fields.push_back(count("workspace_refusals", "attempts before a kernel does without workspace", 1, 1000));
  fields.push_back(object("workspaces", "rules for the workspace of each convolution",
                          {object("first", "image to trunk", convolution()),
                           {.key = "dense",
                            .kind = FieldKind::list,
                            .help = "one for each convolution of a dense block",
                            .required = true,
                            .fields = convolution()},
                           object("trunk", "behind the outer blocks", convolution()),
                           object("upsample", "at the output's resolution", convolution()),
                           object("last", "trunk to image, at the output's resolution", convolution())}));
  return {"super-resolution", "residual-in-residual dense blocks in training", std::move(fields)};
}

ModelKind linear() {
  std::vector<Field> fields = common_fields();
  fields.push_back(size("fixed", "bytes of the peak that do not depend on the batch", true));
  fields.push_back(size("per_sample", "bytes that every sample adds to the peak, at least 12MiB", true));
  fields.push_back(size("resident", "bytes live between steps, part of fixed; default 0", false));
  fields.push_back(
      size("state", "made by the first step, in every later peak (optimizer); default 0", false));
  fields.push_back(bounds("parameters", "range of batch", true));
  fields.push_back(list("first_steps", "peaks of the first steps at a batch size that is new to the process",
                        {{.key = "share",
                          .kind = FieldKind::number,
                          .help = "share of the settled peak",
                          .required = true,
                          .low = 0.001,
                          .high = 100}}));
  fields.push_back(object("step_time", "duration of a step", step_time("us_per_sample")));
  return {"linear", "a peak that is a straight line in the batch size", std::move(fields)};
}

ModelKind recorded() {
  std::vector<Field> fields = common_fields();
  for (Field& field : recorded_model_fields()) fields.push_back(std::move(field));
  return {"recorded", "steps of a real program, made into a model by vramlab fit", std::move(fields)};
}

}  // namespace

const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> kinds{super_resolution(), linear(), recorded()};
  return kinds;
}

namespace {

constexpr std::int64_t kLargestParameter = 100000;  // batches and sides of patches; squares must not overflow

/// Reads JSON that has passed check_fields; collects what the field table cannot see.
class ModelReader {
 public:
  explicit ModelReader(std::vector<Problem>& problems) : problems_(problems) {}

  SuperResolutionSpec super_resolution(const Json& json) {
    SuperResolutionSpec spec;
    spec.name = json.value("name", spec.name);
    const Json& architecture = json["architecture"];
    spec.image_channels = architecture["image_channels"];
    spec.channels = architecture["channels"];
    spec.growth = architecture["growth"];
    spec.residual_blocks = architecture["residual_blocks"];
    spec.dense_blocks = architecture["dense_blocks"];
    spec.dense_convolutions = architecture["dense_convolutions"];
    spec.scale = architecture["scale"];
    parameters(json["parameters"], {&spec.batch, &spec.lq});
    spec.time = step_time(json["step_time"], "us_per_pixel");
    const Json& reductions = json["reductions"];
    spec.reduction = {reductions["two_stages_from"], reductions["elements_per_part"],
                      reductions["most_parts"]};
    spec.workspace_refusals = json["workspace_refusals"];
    workspaces(json["workspaces"], spec);
    return spec;
  }

  LinearSpec linear(const Json& json) {
    LinearSpec spec;
    spec.name = json.value("name", spec.name);
    spec.fixed = size_value(json["fixed"]);
    spec.per_sample = size_value(json["per_sample"]);
    if (json.contains("resident")) spec.resident = size_value(json["resident"]);
    if (json.contains("state")) spec.state = size_value(json["state"]);
    parameters(json["parameters"], {&spec.batch});
    for (const Json& step : json.value("first_steps", Json::array()))
      spec.first_steps.push_back(step["share"]);
    spec.time = step_time(json["step_time"], "us_per_sample");
    return spec;
  }

 private:
  void problem(const std::string& pointer, std::string what) {
    problems_.push_back({pointer, std::move(what)});
  }

  // Ranges of exactly these parameters.
  void parameters(const Json& json, const std::vector<Parameter*>& wanted) {
    std::vector<std::string> names;
    for (Parameter* parameter : wanted) {
      names.push_back(parameter->name);
      if (!json.contains(parameter->name)) {
        problem("/parameters", '"' + parameter->name + "\" is missing: a range, [smallest, largest].");
        continue;
      }
      parameter->low = json[parameter->name][0];
      parameter->high = json[parameter->name][1];
      if (parameter->low < 1) problem("/parameters/" + parameter->name, "the smallest value is below 1.");
      if (parameter->high > kLargestParameter) {
        problem("/parameters/" + parameter->name, "the largest value is above 100000.");
      }
    }
    known_keys(json, names, "/parameters");
  }

  void known_keys(const Json& json, const std::vector<std::string>& names, const std::string& pointer) {
    for (const auto& [key, value] : json.items()) {
      if (std::find(names.begin(), names.end(), key) != names.end()) continue;
      problem(pointer + "/" + key, "unknown key." + suggest_name(key, names));
    }
  }

  static StepTimeLaw step_time(const Json& json, const char* slope) {
    return {json.value("floor_ms", 0.0) * 1e-3, json.value("base_ms", 0.0) * 1e-3,
            json.value(slope, 0.0) * 1e-6};
  }

  void workspaces(const Json& json, SuperResolutionSpec& spec) {
    const std::string pointer = "/workspaces/";
    spec.first = convolution(json["first"], pointer + "first");
    spec.trunk = convolution(json["trunk"], pointer + "trunk");
    spec.upsample = convolution(json["upsample"], pointer + "upsample");
    spec.last = convolution(json["last"], pointer + "last");
    const Json& dense = json["dense"];
    for (std::size_t i = 0; i < dense.size(); ++i) {
      spec.dense.push_back(convolution(dense[i], pointer + "dense/" + std::to_string(i)));
    }
    if (static_cast<std::int64_t>(dense.size()) == spec.dense_convolutions) return;
    problem(pointer + "dense", "has " + std::to_string(dense.size()) +
                                   " entries; needed is one for each of " +
                                   std::to_string(spec.dense_convolutions) + " dense_convolutions.");
  }

  ConvolutionWorkspaces convolution(const Json& json, const std::string& pointer) {
    return {rules(json, "forward", pointer), rules(json, "input_gradient", pointer),
            rules(json, "weight_gradient", pointer)};
  }

  std::vector<WorkspaceRule> rules(const Json& json, const std::string& key, const std::string& pointer) {
    std::vector<WorkspaceRule> result;
    if (!json.contains(key)) return result;
    for (std::size_t i = 0; i < json[key].size(); ++i) {
      result.push_back(rule(json[key][i], pointer + "/" + key + "/" + std::to_string(i)));
    }
    return result;
  }

  WorkspaceRule rule(const Json& json, const std::string& pointer) {
    WorkspaceRule rule;
    rule.copies = copies(json["copies"].get<std::string>());
    rule.pad_channels = json.value("pad_channels", rule.pad_channels);
    if (json.contains("scratch")) rule.scratch = size_value(json["scratch"]);
    if (!json.contains("where")) return rule;
    const Json& where = json["where"];
    known_keys(where, {"batch", "lq", "pixels"}, pointer + "/where");
    const auto range = [&](const char* key) {
      return where.contains(key) ? ShapeRange{where[key][0], where[key][1]} : ShapeRange{};
    };
    rule.batch = range("batch");
    rule.lq = range("lq");
    rule.pixels = range("pixels");
    return rule;
  }

  static WorkspaceCopies copies(const std::string& name) {
    constexpr std::array kNames{
        std::pair{"none", WorkspaceCopies::none}, std::pair{"input", WorkspaceCopies::input},
        std::pair{"both", WorkspaceCopies::both}, std::pair{"winograd", WorkspaceCopies::winograd},
        std::pair{"fourier", WorkspaceCopies::fourier}};
    const auto found =
        std::find_if(kNames.begin(), kNames.end(), [&](const auto& n) { return n.first == name; });
    return found->second;  // the field table admits no other name
  }

  std::vector<Problem>& problems_;
};

const ModelKind& find_kind(const Json& json, const std::string& where) {
  std::vector<std::string> names;
  for (const ModelKind& kind : model_kinds()) names.push_back(kind.name);
  if (!json.is_object()) throw InputError(where + "/", "a model is an object in { }.");
  if (!json.contains("kind") || !json["kind"].is_string()) {
    throw InputError(where + "/kind", "the sort of model is missing." + suggest_name("", names));
  }
  const auto name = json["kind"].get<std::string>();
  const auto found =
      std::find_if(model_kinds().begin(), model_kinds().end(), [&](const auto& k) { return k.name == name; });
  if (found != model_kinds().end()) return *found;
  throw InputError(where + "/kind", '"' + name + "\" is no kind of model." + suggest_name(name, names));
}

void throw_if_any(std::vector<Problem> problems, const std::string& where) {
  if (problems.empty()) return;
  for (Problem& problem : problems) problem.where = where + problem.where;
  throw InputError(std::move(problems));
}

// The models check what a field alone cannot show; their problems get the place of the whole.
template <class Model, class Spec>
std::unique_ptr<WorkloadModel> make_model(Spec spec, const std::string& where) {
  try {
    return std::make_unique<Model>(std::move(spec));
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = where + "/";
    throw InputError(std::move(problems));
  }
}

}  // namespace

std::unique_ptr<WorkloadModel> load_model_file(const std::filesystem::path& path) {
  return parse_model(read_json_file(path), path.string() + ": ");
}

std::unique_ptr<WorkloadModel> parse_model(const Json& json, const std::string& where) {
  const ModelKind& kind = find_kind(json, where);
  std::vector<Problem> problems;
  check_fields(json, kind.fields, false, "", problems);
  throw_if_any(problems, where);
  if (kind.name == "recorded") return make_model<RecordedModel>(read_recorded_spec(json, where), where);
  ModelReader reader(problems);
  if (kind.name == "linear") {
    LinearSpec spec = reader.linear(json);
    throw_if_any(problems, where);
    return make_model<LinearWorkload>(std::move(spec), where);
  }
  SuperResolutionSpec spec = reader.super_resolution(json);
  throw_if_any(problems, where);
  return make_model<SuperResolution>(std::move(spec), where);
}

}  // namespace vramlab
