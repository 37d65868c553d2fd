#include "lab/model/file.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "lab/model/layers.hpp"
#include "lab/model/recorded.hpp"
#include "models/linear.hpp"
#include "models/measured.hpp"
#include "models/recorded_model.hpp"
#include "models/super_resolution.hpp"

namespace vramlab {
namespace {

constexpr double kMany = 1e9;
constexpr double kLongestStep = 1e6;                // milliseconds
constexpr double kLargestSize = 1099511627776.0;    // 1 TiB, above any card
constexpr std::int64_t kLargestParameter = 100000;  // batches and sides of patches; squares must not overflow

/// The models as their files have them.
struct StepShare {
  double share = 1;
};
struct LinearFile : LinearSpec {
  NamedRanges parameters;
  std::vector<StepShare> shares;
};
struct SuperResolutionFile : SuperResolutionSpec {
  NamedRanges parameters;
};
struct MeasuredFile : MeasuredSpec {
  std::optional<NamedRanges> parameters;
};

template <class Spec>
std::vector<Row<Spec>> common_rows() {
  return {
      {"kind", unkept<Spec>(FieldKind::text), "", 0, 0, "sort of model"},
      {"name", &Spec::name, "", 0, 0, "name of the model"},
      {"about", unkept<Spec>(FieldKind::text), "", 0, 0, "what was modelled, for people"},
      {"sources", unkept_object<Spec>(), "", 0, 0, "where the figures come from"},
  };
}

// The shapes that a rule is for.
Member<WorkspaceRule> shapes() {
  const auto store = [](void* section, const FieldValue& value) {
    auto& rule = *static_cast<WorkspaceRule*>(section);
    for (const auto& [name, low, high] : std::get<NamedRanges>(value)) {
      (name == "batch" ? rule.batch : name == "lq" ? rule.lq : rule.pixels) = {low, high};
    }
  };
  return {FieldKind::bounds, {.store = store}, {"batch", "lq", "pixels"}};
}

const Record<WorkspaceRule>& workspace_table() {
  using W = WorkspaceRule;
  static const Record<W> table{
      {"where", shapes(), "", 0, 0, "ranges of batch, lq and pixels the rule is for (default: all)"},
      {"copies", one_of<&W::copies>({"none", "input", "both", "winograd", "fourier"}), "", 0, 0,
       "what the kernel copies into its workspace", kRequired},
      {"pad_channels", &W::pad_channels, "", 1, 64, "channels are rounded up to a multiple of this"},
      {"scratch", &W::scratch, "", 0, kLargestSize, "bytes on top of the copies"},
  };
  return table;
}

const Record<ConvolutionWorkspaces>& convolution_table() {
  using C = ConvolutionWorkspaces;
  static const Record<C> table{
      {"forward", list_of(&C::forward, workspace_table()), "", 0, 0,
       "rules of the forward kernel; the first that holds"},
      {"input_gradient", list_of(&C::input_gradient, workspace_table()), "", 0, 0,
       "rules of the kernel for the gradient of the input"},
      {"weight_gradient", list_of(&C::weight_gradient, workspace_table()), "", 0, 0,
       "rules of the kernel for the gradient of the weights"},
  };
  return table;
}

Record<StepTimeLaw> step_time_table(const std::string& slope) {
  using T = StepTimeLaw;
  const auto in = [](double T::*member, double unit) {
    return converted(
        member, [unit](double value) { return value * unit; },
        [unit](double seconds) { return seconds / unit; });
  };
  return Record<T>{
      {"floor_ms", in(&T::floor_seconds, 1e-3), "", 0, kLongestStep,
       "shortest duration of a step, milliseconds"},
      {"base_ms", in(&T::base_seconds, 1e-3), "", 0, kLongestStep, "duration without any work, milliseconds"},
      {slope, in(&T::seconds_per_pixel, 1e-6), "", 0, kLongestStep, "further microseconds for each"},
  };
}

const Record<SuperResolutionSpec>& architecture_table() {
  using S = SuperResolutionSpec;
  static const Record<S> table{
      {"image_channels", &S::image_channels, "", 1, 1024, "channels of an image", kRequired},
      {"channels", &S::channels, "", 1, 65536, "channels of the trunk", kRequired},
      {"growth", &S::growth, "", 1, 65536, "channels each dense convolution adds", kRequired},
      {"residual_blocks", &S::residual_blocks, "", 1, 1000, "outer blocks", kRequired},
      {"dense_blocks", &S::dense_blocks, "", 1, 1000, "dense blocks in each outer block", kRequired},
      {"dense_convolutions", &S::dense_convolutions, "", 2, 100, "convolutions in each dense block",
       kRequired},
      {"scale", &S::scale, "", 1, 64, "side of the output over side of the input", kRequired},
  };
  return table;
}

const Record<ReductionLaw>& reduction_table() {
  using R = ReductionLaw;
  static const Record<R> table{
      {"two_stages_from", &R::two_stages_from, "", 1, kMany, "elements from which partial sums are used",
       kRequired},
      {"elements_per_part", &R::elements_per_part, "", 1, kMany, "elements of a partial sum", kRequired},
      {"most_parts", &R::most_parts, "", 1, kMany, "partial sums of all outputs together", kRequired},
  };
  return table;
}

const Record<SuperResolutionSpec>& workspaces_table() {
  using S = SuperResolutionSpec;
  const auto one = [](ConvolutionWorkspaces S::*member) { return object_of(member, convolution_table()); };
  static const Record<S> table{
      {"first", one(&S::first), "", 0, 0, "image to trunk", kRequired},
      {"dense", list_of(&S::dense, convolution_table()), "", 0, 0,
       "one for each convolution of a dense block", kRequired},
      {"trunk", one(&S::trunk), "", 0, 0, "behind the outer blocks", kRequired},
      {"upsample", one(&S::upsample), "", 0, 0, "at the output's resolution", kRequired},
      {"last", one(&S::last), "", 0, 0, "trunk to image, at the output's resolution", kRequired},
  };
  return table;
}

const Record<SuperResolutionFile>& super_resolution_table() {
  using S = SuperResolutionFile;
  using Spec = SuperResolutionSpec;
  static const Record<StepTimeLaw> time = step_time_table("us_per_pixel");
  static const Record<S> table{
      joined<S>(common_rows<S>(),
                std::vector<Row<S>>{
                    {"parameters", as(FieldKind::bounds, &S::parameters, {"batch", "lq"}), "", 0, 0,
                     "ranges of batch and lq the model is meant for", kRequired},
                    {"architecture", group_of(architecture_table()), "", 0, 0, "the network", kRequired},
                    {"step_time", object_of(&Spec::time, time), "", 0, 0, "duration of a step", kRequired},
                    {"reductions", object_of(&Spec::reduction, reduction_table()), "", 0, 0,
                     "sums over many elements", kRequired},
                    {"workspace_refusals", &S::workspace_refusals, "", 1, 1000,
                     "attempts before a kernel does without workspace", kRequired},
                    {"workspaces", group_of(workspaces_table()), "", 0, 0,
                     "rules for the workspace of each convolution", kRequired}})};
  return table;
}

const Record<StepShare>& share_table() {
  static const Record<StepShare> table{
      {"share", &StepShare::share, "", 0.001, 100, "share of the settled peak", kRequired}};
  return table;
}

const Record<LinearFile>& linear_table() {
  using L = LinearFile;
  static const Record<StepTimeLaw> time = step_time_table("us_per_sample");
  static const Record<L> table{joined<L>(
      common_rows<L>(),
      std::vector<Row<L>>{
          {"fixed", &L::fixed, "", 0, kLargestSize, "bytes of the peak that do not depend on the batch",
           kRequired},
          {"per_sample", &L::per_sample, "", 0, kLargestSize,
           "bytes that every sample adds to the peak, at least 12MiB", kRequired},
          {"resident", &L::resident, "", 0, kLargestSize, "bytes live between steps, part of fixed"},
          {"state", &L::state, "", 0, kLargestSize,
           "made by the first step, in every later peak (optimizer)"},
          {"parameters", as(FieldKind::bounds, &L::parameters, {"batch"}), "", 0, 0, "range of batch",
           kRequired},
          {"first_steps", list_of(&L::shares, share_table()), "", 0, 0,
           "peaks of the first steps at a batch size that is new to the process"},
          {"step_time", object_of(&LinearSpec::time, time), "", 0, 0, "duration of a step", kRequired}})};
  return table;
}

const Record<MeasuredPoint>& measured_point_table() {
  using P = MeasuredPoint;
  static const Record<P> table{
      {"batch", &P::batch, "", 1, kLargestParameter, "the batch of the step that was measured"},
      {"length", &P::length, "", 1, kLargestParameter, "length of its samples; in all points or in none"},
      {"peak_allocated", &P::peak_allocated, "", 1, kLargestSize,
       "its highest allocated bytes; what counts where not all points have peak_reserved"},
      {"peak_reserved", &P::peak_reserved, "", 1, kLargestSize,
       "its highest reserved bytes, fragments among them"},
      {"largest_batch", &P::largest_batch, "", 1, kLargestParameter,
       "instead of batch and peak: the largest batch that ran at this length"},
  };
  return table;
}

const Record<MeasuredFile>& measured_table() {
  using M = MeasuredFile;
  static const Record<M> table{joined<M>(
      common_rows<M>(),
      std::vector<Row<M>>{
          {"points", list_of(&MeasuredSpec::points, measured_point_table()), "", 0, 0,
           "what was measured: batches with their peaks, or lengths with their largest batches", kRequired},
          {"resident", &M::resident, "", 0, kLargestSize, "bytes live between steps, part of every peak"},
          {"parameters", as(FieldKind::bounds, &M::parameters, {"batch", "length"}), "", 0, 0,
           "ranges of batch and length that the points may answer for (default: any batch, the lengths "
           "measured)"}})};
  return table;
}

const Record<RecordedSpec>& recorded_table() {
  static const Record<RecordedSpec> table{
      joined<RecordedSpec>(common_rows<RecordedSpec>(), recorded_model_rows())};
  return table;
}

const Record<LayersFile>& layers_table() {
  static const Record<LayersFile> table{joined<LayersFile>(common_rows<LayersFile>(), layers_model_rows())};
  return table;
}

const Record<RanksFile>& ranks_table() {
  static const Record<RanksFile> table{joined<RanksFile>(common_rows<RanksFile>(), rank_model_rows())};
  return table;
}

void take_range(const NamedRange& range, Parameter& parameter, std::vector<Problem>& problems) {
  parameter.low = range.low;
  parameter.high = range.high;
  const std::string pointer = "/parameters/" + range.name;
  if (parameter.low < 1) problems.push_back({pointer, "the smallest value is below 1."});
  if (parameter.high > kLargestParameter) {
    problems.push_back({pointer, "the largest value is above 100000."});
  }
}

// Ranges of all these parameters; the table admits no others.
void take_ranges(const NamedRanges& ranges, const std::vector<Parameter*>& wanted,
                 std::vector<Problem>& problems) {
  for (Parameter* parameter : wanted) {
    const auto found = std::find_if(ranges.begin(), ranges.end(),
                                    [&](const NamedRange& one) { return one.name == parameter->name; });
    if (found == ranges.end()) {
      problems.push_back(
          {"/parameters", '"' + parameter->name + "\" is missing: a range, [smallest, largest]."});
      continue;
    }
    take_range(*found, *parameter, problems);
  }
}

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
  throw InputError(where + "/kind", '"' + name + "\" is not a kind of model." + suggest_name(name, names));
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

// Its problems have their pointers.
std::unique_ptr<WorkloadModel> make_measured_model(MeasuredFile file, std::vector<Problem> problems,
                                                   const std::string& where) {
  for (const NamedRange& range : file.parameters.value_or(NamedRanges{})) {
    take_range(range, (range.name == "batch" ? file.batch : file.length).emplace(), problems);
  }
  throw_if_any(std::move(problems), where);
  try {
    return make_measured(std::move(file));
  } catch (const InputError& error) {
    throw_if_any(error.problems(), where);
    throw;
  }
}

}  // namespace

std::unique_ptr<WorkloadModel> load_model_file(const std::filesystem::path& path) {
  return parse_model(read_json_file(path), path.string() + ": ");
}

RankWorkloads load_rank_workloads(const std::filesystem::path& path, std::optional<std::uint32_t> world) {
  const Json json = read_json_file(path);
  const std::string where = path.string() + ": ";
  if (find_kind(json, where).name == "ranks") {
    require_fields(json, ranks_table(), where);
    return rank_workloads(read_rank_models(json, where), world);
  }
  if (world) {
    throw InputError("--world",
                     "goes with a model of several ranks. Fit recordings of two numbers of ranks together.");
  }
  RankWorkloads workloads{.ranks = {0}};
  workloads.models.push_back(parse_model(json, where));
  return workloads;
}

std::unique_ptr<WorkloadModel> parse_model(const Json& json, const std::string& where) {
  const ModelKind& kind = find_kind(json, where);
  require_fields(json, *kind.table, where);
  std::vector<Problem> problems;
  check_range_names(json, kind.table->fields, "", problems);
  if (kind.name == "recorded") return make_model<RecordedModel>(read_recorded_spec(json, where), where);
  if (kind.name == "ranks") return deciding_workload(rank_workloads(read_rank_models(json, where), {}));
  if (kind.name == "layers") {
    return make_model<layers::LayersModel>(read_layers_spec(read_section(json, layers_table()), where),
                                           where);
  }
  if (kind.name == "linear") {
    LinearFile file = read_section(json, linear_table());
    take_ranges(file.parameters, {&file.batch}, problems);
    throw_if_any(problems, where);
    for (const StepShare& step : file.shares) file.first_steps.push_back(step.share);
    return make_model<LinearWorkload, LinearSpec>(std::move(file), where);
  }
  if (kind.name == "measured") {
    return make_measured_model(read_section(json, measured_table()), std::move(problems), where);
  }
  SuperResolutionFile file = read_section(json, super_resolution_table());
  take_ranges(file.parameters, {&file.batch, &file.lq}, problems);
  if (static_cast<std::int64_t>(file.dense.size()) != file.dense_convolutions) {
    problems.push_back({"/workspaces/dense",
                        "has " + std::to_string(file.dense.size()) + " entries; needed is one for each of " +
                            std::to_string(file.dense_convolutions) + " dense_convolutions."});
  }
  throw_if_any(problems, where);
  return make_model<SuperResolution, SuperResolutionSpec>(std::move(file), where);
}

const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> kinds{
      {"super-resolution", "residual-in-residual dense blocks in training", &super_resolution_table()},
      {"linear", "a peak that is a straight line in the batch size", &linear_table()},
      {"measured", "points measured by hand: batches and their peaks, or lengths and their largest batches",
       &measured_table()},
      {"layers", "a network by its config.json, made into a model by vramlab estimate --config",
       &layers_table()},
      {"recorded", "steps of a real program, made into a model by vramlab fit", &recorded_table()},
      {"ranks", "the same of a program on several cards, one model for each recorded process",
       &ranks_table()}};
  return kinds;
}

}  // namespace vramlab
