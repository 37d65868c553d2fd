// vramlab plan: the least memory that recorded programs or lists of buffers need, with every address known in
// advance.
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "cli/output/output.hpp"
#include "cli/verb.hpp"
#include "core/error.hpp"
#include "lab/whatif/least.hpp"
#include "plan/planner.hpp"
#include "plan/validator.hpp"
#include "recordings/open.hpp"
#include "recordings/replay/program_replay.hpp"
#include "recordings/scripts/allocation_script.hpp"
#include "recordings/scripts/buffer_list.hpp"
#include "recordings/scripts/recorded_program.hpp"

namespace vramlab {
namespace {

void add_plan_options(Options& options) {
  options.add_options()("capacity", text_value("SIZE"),
                        "does it fit in this; a plan that does will do, even if there is a smaller one")(
      "output,o", text_value("FILE"),
      "write the plan of the one program as CSV: id, lower, upper, size, offset");
  add_torch_version_option(options);
  add_output_options(options);
}

/// A recorded program or a list of buffers, and what it comes to.
struct PlannedFile {
  std::string file;
  std::optional<int> device;  ///< empty for a list of buffers
  BufferList list;
  LeastMemory least;
  std::optional<Bytes> reserved;  ///< by the recorded allocator
  double seconds = 0;             ///< that the plan took, without reading the file
};

std::optional<Bytes> asked_capacity(const Arguments& arguments) {
  const std::string text = text_of(arguments, "capacity");
  if (text.empty()) return std::nullopt;
  const std::optional<Bytes> size = parse_bytes(text);
  if (!size || *size == 0) {
    throw InputError("--capacity",
                     '"' + text + "\" is not a size. Write 24GiB, 512MiB or a number of bytes, above 0.");
  }
  return size;
}

// Under its own settings and limit; where more was recorded than the limit allows, because it was moved on
// the way, under its settings alone.
std::optional<Bytes> recorded_reserved(const ClientProgram& program) {
  if (program.settings.backend != AllocatorBackend::native) return std::nullopt;
  ReplaySetup setup{.settings = program.settings, .limit = program.limit};
  ProgramOutcome outcome = replay_program(program, setup);
  if (!outcome.fits()) {
    setup.limit.reset();
    outcome = replay_program(program, setup);
  }
  return std::max(outcome.highest_reserved, program.shown_reserved.value_or(0));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

PlannedFile plan_program(const ClientProgram& program, const PlanQuestion& question) {
  if (!program.has_history) {
    throw InputError(program.file,
                     "holds no history of what the program allocated and freed, so nothing can be planned. "
                     "Record with torch.cuda.memory._record_memory_history(), without \"state\".");
  }
  PlannedFile planned{
      .file = program.file, .device = program.device, .list = {}, .least = {}, .reserved = {}};
  const auto start = std::chrono::steady_clock::now();
  planned.least = least_memory(program, question);
  planned.seconds = seconds_since(start);
  planned.reserved = recorded_reserved(program);
  planned.list.buffers = buffers_of(lifetimes_of(program));
  for (std::size_t i = 0; i < planned.list.buffers.size(); ++i) planned.list.ids.push_back(std::to_string(i));
  return planned;
}

PlannedFile plan_list(InputFile& file, const PlanQuestion& question) {
  PlannedFile planned{.file = file.name(), .device = {}, .list = {}, .least = {}, .reserved = {}};
  planned.list = read_buffer_list(file);
  const auto start = std::chrono::steady_clock::now();
  planned.least.blocks = planned.list.buffers.size();
  planned.least.plan = plan_memory(planned.list.buffers, question);
  planned.seconds = seconds_since(start);
  return planned;
}

std::vector<PlannedFile> plan_file(const std::string& name, const PlanQuestion& question,
                                   const ReadOptions& options) {
  InputFile file{name};
  using enum FileKind;
  const FileKind kind = require_kind(file, {snapshot, allocation_script, buffer_list});
  if (kind == buffer_list) return {plan_list(file, question)};
  std::vector<PlannedFile> planned;
  for (const ClientProgram& program :
       kind == snapshot ? snapshot_programs(file, options) : script_programs(file, options)) {
    planned.push_back(plan_program(program, question));
  }
  return planned;
}

std::string short_name(const PlannedFile& planned) {
  std::string name = std::filesystem::path{planned.file}.filename().string();
  if (planned.device.value_or(0) > 0) name += fmt::format(", device {}", *planned.device);
  return name;
}

std::string gap_text(const MemoryPlan& plan) {
  if (plan.is_least()) return "0";
  return plan.gap() < 0.0001 ? "<0.01 %" : fmt::format("{:.2f} %", 100 * plan.gap());
}

Table plans_table(const std::vector<PlannedFile>& all) {
  Table table{{left("file"), "blocks", "load", "bound", "plan", "gap", "reserved", "above", "seconds"}};
  for (const PlannedFile& planned : all) {
    const MemoryPlan& plan = planned.least.plan;
    std::string reserved = "-";
    std::string above = "-";
    if (planned.reserved && plan.planned > 0) {
      reserved = format_bytes(*planned.reserved);
      above = fmt::format(
          "{:.1f} %", 100 * (static_cast<double>(*planned.reserved) / static_cast<double>(plan.planned) - 1));
    }
    table.add_row({short_name(planned), fmt::format("{}", planned.least.blocks), format_bytes(plan.load),
                   format_bytes(plan.bound), format_bytes(plan.planned), gap_text(plan), reserved, above,
                   fmt::format("{:.2f}", planned.seconds)});
  }
  return table;
}

std::string verdict(const PlannedFile& planned, const std::optional<Bytes>& capacity) {
  const MemoryPlan& plan = planned.least.plan;
  const std::string least = planned.least.lower_bound ? " of what the file tells of" : "";
  if (!capacity) {
    if (plan.is_least()) {
      return fmt::format("{} bytes are the least{}: there is a plan, and no other needs less.", plan.planned,
                         least);
    }
    return fmt::format("A plan needs {} bytes{}, no plan less than {}: {} is open.", plan.planned, least,
                       plan.bound, gap_text(plan));
  }
  if (plan.planned <= *capacity)
    return fmt::format("Fits in {} bytes: a plan needs {}.", *capacity, plan.planned);
  if (plan.bound > *capacity) {
    return fmt::format("Does not fit in {} bytes: no plan needs less than {}.", *capacity, plan.bound);
  }
  return fmt::format(
      "No plan within {} bytes was found, and none is ruled out: the best one found needs {}, no plan less "
      "than {}.",
      *capacity, plan.planned, plan.bound);
}

// Of a list that is a plan already: whether that is sound; empty for others.
std::optional<PlanCheck> given_plan(const PlannedFile& planned) {
  if (planned.list.offsets.empty()) return std::nullopt;
  return check_plan(planned.list.buffers, planned.list.offsets, planned.list.ids);
}

Json given_json(const PlannedFile& planned) {
  const std::optional<PlanCheck> given = given_plan(planned);
  if (!given) return nullptr;
  return {{"sound", given->sound()},
          {"needs_bytes", given->sound() ? Json(given->top) : Json(nullptr)},
          {"faults", given->faults}};
}

Json planned_json(const PlannedFile& planned, const std::optional<Bytes>& capacity) {
  const MemoryPlan& plan = planned.least.plan;
  Json json = least_json(planned.least);
  json["file"] = planned.file;
  json["device"] = planned.device ? Json(*planned.device) : Json(nullptr);
  json["seconds"] = planned.seconds;
  json["recorded_reserved_bytes"] = planned.reserved ? Json(*planned.reserved) : Json(nullptr);
  json["given_plan"] = given_json(planned);
  if (!capacity) return json;
  json["capacity_bytes"] = *capacity;
  json["fits"] = plan.planned <= *capacity ? Json(true)
                 : plan.bound > *capacity  ? Json(false)
                                           : Json(nullptr);
  return json;
}

bool check_given_plan(const PlannedFile& planned, Output& output) {
  const std::optional<PlanCheck> given = given_plan(planned);
  if (!given) return true;
  if (given->sound()) {
    output.line("The offsets of {} are a sound plan that needs {} bytes.", planned.file, given->top);
  } else {
    output.line("The offsets of {} are no plan: {}.", planned.file, fmt::join(given->faults, "; "));
  }
  return given->sound();
}

void write_plan(const std::string& name, const PlannedFile& planned, Output& output) {
  BufferList list = planned.list;
  list.offsets = planned.least.plan.offsets;
  output.write(name, buffer_list_text(list));
}

int run_plan(const Arguments& arguments, Output& output) {
  const std::vector<std::string> files = operands(arguments);
  const std::string plan_name = text_of(arguments, "output");
  require_output_names(with_siblings(files), {text_of(arguments, "json"), plan_name});
  const PlanQuestion question{.capacity = asked_capacity(arguments)};
  const ReadOptions options{.torch = chosen_torch_version(arguments), .device = {}};
  const std::vector<PlannedFile> all =
      read_each(files, [&](const std::string& file) { return plan_file(file, question, options); });
  if (!plan_name.empty() && all.size() != 1) {
    throw InputError("--output", fmt::format("takes the plan of one program; these are {}.", all.size()));
  }
  Json json = all.size() == 1 ? planned_json(all.front(), question.capacity) : Json::object();
  json["plans"] = Json::array();
  bool sound = true;
  for (const PlannedFile& planned : all) {
    const std::string where = all.size() == 1 ? "" : short_name(planned) + ": ";
    output.line(where + verdict(planned, question.capacity));
    sound = check_given_plan(planned, output) && sound;
    json["plans"].push_back(planned_json(planned, question.capacity));
  }
  output.next_table(plans_table(all));
  for (const PlannedFile& planned : all) {
    const std::string where = all.size() == 1 ? "" : short_name(planned) + ": ";
    for (const std::string& supposed : planned.least.supposed) {
      output.line("note: {}supposed: {}", where, supposed);
    }
  }
  if (!plan_name.empty()) write_plan(plan_name, all.front(), output);
  output.json(json);
  return sound ? kDone : kExpectationFailed;
}

}  // namespace

Verb plan_verb() {
  return {.name = "plan",
          .summary = "the least memory a recorded program or a list of buffers needs, with a plan of it",
          .operands = "FILE...",
          .count = {1, 1000},
          .example = "vramlab plan tests/data/recorded/bert.pickle.gz",
          .add_options = add_plan_options,
          .run = run_plan};
}

}  // namespace vramlab
