#include "lab/model_file.hpp"
#include "lab/recorded_model_file.hpp"

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

}  // namespace vramlab
