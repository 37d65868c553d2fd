#include "lab/scenario/sweep.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lab/scenario/fields.hpp"

namespace vramlab {
namespace {

constexpr double kMostValues = 10000;
// Of the results, beside the axes.
const std::set<std::string> kColumns{"key", "scenario", "policy", "run_rows", "metrics"};

std::vector<std::string> parts_of(const std::string& pointer) {
  std::vector<std::string> parts;
  for (std::size_t begin = 1; begin <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    parts.push_back(pointer.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> names_in(const Json& json) {
  std::vector<std::string> names;
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) names.push_back(key);
  }
  for (std::size_t i = 0; json.is_array() && i < json.size(); ++i) {
    const bool labelled = json[i].is_object() && json[i].contains("label") && json[i]["label"].is_string();
    names.push_back(labelled ? json[i]["label"].get<std::string>() : std::to_string(i));
  }
  return names;
}

// A member of a list is named by its number, or by its label.
std::optional<std::size_t> member(const Json& list, const std::string& name) {
  const auto names = names_in(list);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool whole = error == std::errc{} && end == name.data() + name.size();
  return whole && index < list.size() ? std::optional{index} : std::nullopt;
}

// The place that the "vary" of an axis names; a last key that is not there yet is made. Throws InputError if
// a part on the way is missing.
Json& place_in(Json& scenario, const std::string& pointer) {
  const auto parts = parts_of(pointer);
  Json* at = &scenario;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    if (const auto index = at->is_array() ? member(*at, parts[i]) : std::nullopt) {
      at = &(*at)[*index];
    } else if (at->is_object() && (last || at->contains(parts[i]))) {
      at = &(*at)[parts[i]];
    } else {
      throw InputError("/vary", "there is no \"" + parts[i] + "\"." + suggest_name(parts[i], names_in(*at)));
    }
  }
  return *at;
}

/// An entry as the file has it.
struct AxisSection {
  std::string vary;
  std::optional<std::string> name;
  const Json* over = nullptr;
  std::optional<double> from;
  std::optional<double> to;
  double step = 1;
};

struct SweepSection {
  std::vector<AxisSection> axes;
};

const Record<AxisSection>& axis_table() {
  using A = AxisSection;
  static const Record<A> table{
      {"vary", &A::vary, "", 0, 0,
       "the key to vary, as a path: /device/limit, /seed, /policies/LABEL/cooldown", kRequired},
      {"name", &A::name, "", 0, 0, "its column in the results (default: the last part of the path)"},
      {"over", raw(FieldKind::any_list, &A::over), "", 0, 0,
       "the list of its values (or give `from` and `to`)"},
      {"from", &A::from, "", 0, 0, "its first value"},
      {"to", &A::to, "", 0, 0, "its last value, itself included"},
      {"step", &A::step, "", 0, 0, "from one value to the next"},
  };
  return table;
}

// from, to and step give whole numbers where all three are; each value is from + i · step, so that errors do
// not add up.
std::vector<Json> range_values(double from, double to, double step) {
  if (step <= 0 || to < from)
    throw InputError("", "\"to\" must not be below \"from\", and \"step\" must be above 0.");
  const double count = std::floor((to - from) / step + 1e-9) + 1;
  if (count > kMostValues)
    throw InputError("", fmt::format("{:.0f} values are too many; {:.0f} are allowed.", count, kMostValues));
  const auto whole = [](double value) { return value == std::floor(value) && std::abs(value) < 1e15; };
  std::vector<Json> values;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const double value = from + i * step;
    if (whole(from) && whole(step)) {
      values.emplace_back(static_cast<std::int64_t>(value));
    } else {
      const std::string shown = fmt::format("{:.12g}", value);  // 0.7 + 2 · 0.05 is 0.8 for people
      std::from_chars(shown.data(), shown.data() + shown.size(), values.emplace_back(0.0).get_ref<double&>());
    }
  }
  return values;
}

SweepAxis read_axis(const AxisSection& entry, Json& scenario) {
  SweepAxis axis;
  axis.pointer = entry.vary;
  if (!axis.pointer.starts_with('/') || axis.pointer.size() < 2) {
    throw InputError(
        "/vary", "\"" + axis.pointer +
                     "\" is not a place in the scenario. Write /device/limit or /policies/LABEL/cooldown.");
  }
  axis.name = entry.name.value_or(axis.pointer.substr(axis.pointer.rfind('/') + 1));
  place_in(scenario, axis.pointer);
  if ((entry.over != nullptr) == entry.from.has_value())
    throw InputError("", "give either \"over\" (a list) or \"from\" and \"to\".");
  if (entry.over != nullptr) {
    if (entry.to || entry.step != 1)
      throw InputError("", "\"to\" and \"step\" go with \"from\", not with \"over\".");
    if (entry.over->empty()) throw InputError("/over", "the list of values is empty.");
    for (const Json& value : *entry.over) {
      if (std::find(axis.values.begin(), axis.values.end(), value) != axis.values.end())
        throw InputError("/over", value_text(value) + " stands there twice.");
      axis.values.push_back(value);
    }
  } else {
    if (!entry.to) throw InputError("", "\"to\" is missing.");
    axis.values = range_values(*entry.from, *entry.to, entry.step);
  }
  return axis;
}

std::vector<SweepAxis> read_axes(const std::vector<AxisSection>& list, const Json& scenario,
                                 FileProblems& problems) {
  std::vector<SweepAxis> axes;
  std::set<std::string> names = kColumns;
  std::set<std::string> pointers;
  Json scratch = scenario;  // looking for a place may make it
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string pointer = "/sweep/" + std::to_string(i);
    try {
      axes.push_back(read_axis(list[i], scratch));
      if (!pointers.insert(axes.back().pointer).second)
        problems.add(pointer, axes.back().pointer + " is varied already; one entry takes all its values.");
      if (!names.insert(axes.back().name).second) {
        problems.add(pointer,
                     "the name \"" + axes.back().name + "\" is taken; give this one a \"name\" of its own.");
      }
    } catch (const InputError& error) {
      for (const Problem& one : error.problems()) problems.add(pointer + one.where, one.what);
    }
  }
  return axes;
}

// A value of one axis may take away the place of another.
Json varied(Json json, const Sweep& sweep, const SweepRun& run, const std::string& file) {
  for (std::size_t a = 0; a < run.at.size(); ++a) {
    try {
      place_in(json, sweep.axes[a].pointer) = sweep.axes[a].values[run.at[a]];
    } catch (const InputError& error) {
      throw InputError(file + ": /sweep/" + std::to_string(a) + "/vary",
                       error.problems().front().what + " (at " + sweep.point_text(run) + ")");
    }
  }
  return json;
}

}  // namespace

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', true);
}

std::string Sweep::point_text(const SweepRun& run) const {
  std::string text;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    text += fmt::format("{}{} {}", i ? ", " : "", axes[i].name, value_text(axes[i].values[run.at[i]]));
  }
  return text;
}

const RecordBase& sweep_table() { return axis_table(); }

bool has_sweep(const ScenarioDocument& scenario) {
  return scenario.json.is_object() && scenario.json.contains("sweep");
}

Sweep read_sweep(const ScenarioDocument& scenario) {
  Json json = scenario.json;
  FileProblems problems{scenario.file};
  Json alone;
  alone["sweep"] = json["sweep"];
  json.erase("sweep");
  json.erase("expect");  // about the scenario as it stands
  static const Record<SweepSection> table{{"sweep", list_of(&SweepSection::axes, axis_table())}};
  require_fields(alone, table, scenario.file + ": ");
  const std::vector<AxisSection> list = read_section(alone, table).axes;
  Sweep sweep;
  sweep.axes = read_axes(list, json, problems);
  if (list.empty()) problems.add("/sweep", "the list is empty; name at least one key to vary.");
  std::size_t count = 1;
  for (const SweepAxis& axis : sweep.axes) count = std::min(count * axis.values.size(), kMostSweepRuns + 1);
  if (count > kMostSweepRuns)
    problems.add("/sweep", fmt::format("these are more than {} combinations.", kMostSweepRuns));
  problems.throw_if_any();
  std::vector<std::size_t> at(sweep.axes.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    sweep.runs.push_back({at, {scenario.file, {}, scenario.kind, {}, scenario.policies}});
    sweep.runs.back().scenario.json = varied(json, sweep, sweep.runs.back(), scenario.file);
    for (std::size_t a = at.size(); a-- > 0;) {
      if (++at[a] < sweep.axes[a].values.size()) break;
      at[a] = 0;
    }
  }
  return sweep;
}

}  // namespace vramlab
