#include "lab/model/recorded.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "recordings/exact_json.hpp"

namespace vramlab {
namespace {

using VariableKind = RecordedVariable::Kind;

constexpr std::array kKinds{std::pair{"parameter", VariableKind::parameter},
                            std::pair{"fixed", VariableKind::fixed},
                            std::pair{"items", VariableKind::items},
                            std::pair{"sum", VariableKind::sum},
                            std::pair{"most", VariableKind::most},
                            std::pair{"first_item", VariableKind::first_item},
                            std::pair{"last_item", VariableKind::last_item},
                            std::pair{"item", VariableKind::item},
                            std::pair{"round", VariableKind::round},
                            std::pair{"parts", VariableKind::parts},
                            std::pair{"part", VariableKind::part}};

std::vector<std::string> variable_names(const RecordedSpec& spec) {
  std::vector<std::string> names;
  for (const RecordedVariable& variable : spec.variables) names.push_back(variable.name);
  return names;
}

// Cells of rows: truth is 1 or 0, a kind of variable its word.

template <class T>
Json cell(const T& value) {
  return value;
}
Json cell(bool value) { return value ? 1 : 0; }
Json cell(VariableKind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& one) { return one.second == kind; })
      ->first;
}

template <class T>
void read_cell(const Json& json, T& value) {
  value = exact<T>(json);
}
void read_cell(const Json& json, bool& value) { value = exact<std::int32_t>(json, 0, 1) != 0; }
void read_cell(const Json& json, VariableKind& kind) {
  const auto word = exact<std::string>(json);
  const auto found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& one) { return one.first == word; });
  if (found == kKinds.end()) throw InputError("", '"' + word + "\" is not a kind of variable.");
  kind = found->second;
}

/// A key of the packed part of a file, and how its value is written and read.
struct Part {
  const char* key;
  std::function<Json(const RecordedSpec&)> write;
  std::function<void(const Json&, RecordedSpec&)> read;  ///< throws InputError without a place for damage
  bool may_lack = false;                                 ///< absent where its list is empty
};

template <class T>
Part whole(const char* key, T RecordedSpec::*member) {
  return {key, [=](const RecordedSpec& spec) { return Json(spec.*member); },
          [=](const Json& json, RecordedSpec& spec) { spec.*member = exact<T>(json); }};
}

// A list with a row for each entry: the `columns` of the entry. The last one may lack, as in older files.
template <class Entry, class... T>
Part rows(const char* key, std::vector<Entry> RecordedSpec::*list, bool may_lack_last,
          T Entry::*... columns) {
  const auto write = [=](const RecordedSpec& spec) {
    Json json = Json::array();
    for (const Entry& entry : spec.*list) {
      Json& row = json.emplace_back(Json::array());
      (row.push_back(cell(entry.*columns)), ...);
    }
    return json;
  };
  const auto read = [=](const Json& json, RecordedSpec& spec) {
    for (const Json& row : json) {
      Entry& entry = (spec.*list).emplace_back();
      std::size_t column = 0;
      const bool lacks = may_lack_last && row.size() == sizeof...(columns) - 1;
      const auto read_one = [&](auto& value) {
        if (!lacks || column < row.size()) read_cell(row.at(column++), value);
      };
      (read_one(entry.*columns), ...);
    }
  };
  return {key, write, read};
}

Part may_lack(Part part) {
  part.may_lack = true;
  return part;
}

Json products_json(const RecordedSpec& spec) {
  Json json = Json::array();
  const std::vector<std::string> names = variable_names(spec);
  for (const Monomial& monomial : spec.monomials) json.push_back(monomial.text(names));
  return json;
}

void read_products(const Json& json, RecordedSpec& spec) {
  const std::vector<std::string> names = variable_names(spec);
  for (const Json& text : json) {
    const auto product = Monomial::parse(exact<std::string>(text), names);
    if (!product) throw InputError("", text.dump() + " is not a product of the model's variables.");
    spec.monomials.push_back(*product);
  }
}

void read_forms(const Json& json, RecordedSpec& spec) { spec.forms = read_size_forms(json); }

Json tensors_json(const RecordedSpec& spec) {
  Json json;
  for (const char* key : {"size", "group", "kept", "workspace"}) json[key] = Json::array();
  for (std::size_t t = 0; t < spec.tensors.size(); ++t) {
    const RecordedTensor& tensor = spec.tensors[t];
    json["size"].push_back(tensor.size);
    json["group"].push_back(tensor.group);
    if (tensor.kept >= 0) json["kept"].push_back({t, tensor.kept});
    if (tensor.workspace) json["workspace"].push_back(t);
    if (tensor.kernel >= 0) json["kernel"].push_back({t, tensor.kernel});
    if (tensor.stream != 0) json["stream"].push_back({t, tensor.stream});
  }
  return json;
}

void read_tensors(const Json& json, RecordedSpec& spec) {
  const auto sizes = exact<std::vector<std::int32_t>>(json.at("size"));
  const auto groups = exact<std::vector<std::uint32_t>>(json.at("group"));
  if (sizes.size() != groups.size()) throw InputError("", "has columns of different lengths.");
  for (std::size_t t = 0; t < sizes.size(); ++t) spec.tensors.push_back({sizes[t], groups[t]});
  const auto tensor = [&](const Json& number) -> RecordedTensor& {
    const auto place = exact<std::size_t>(number);
    if (place >= spec.tensors.size()) throw InputError("", "names a tensor that is not there.");
    return spec.tensors[place];
  };
  for (const Json& kept : json.at("kept")) tensor(kept.at(0)).kept = exact<std::int32_t>(kept.at(1));
  for (const Json& number : json.at("workspace")) tensor(number).workspace = true;
  for (const Json& kernel : json.value("kernel", Json::array())) {
    tensor(kernel.at(0)).kernel = exact<std::int32_t>(kernel.at(1));
  }
  for (const Json& stream : json.value("stream", Json::array())) {
    tensor(stream.at(0)).stream = exact<std::uint32_t>(stream.at(1));
  }
}

// A size that repeats is written once, with its number.
Json kernels_json(const RecordedSpec& spec) {
  Json json = Json::array();
  for (const RecordedKernel& kernel : spec.kernels) {
    Json lists = Json::array();
    for (const RecordedKernel::Refusal& refusal : kernel.refusals) {
      Json runs = Json::array();
      for (const Bytes size : refusal.sizes) {
        if (!runs.empty() && runs[runs.size() - 2] == size) {
          runs.back() = runs.back().get<std::size_t>() + 1;
        } else {
          runs.insert(runs.end(), {Json(size), Json(1)});
        }
      }
      lists.push_back({refusal.shape, std::move(runs)});
    }
    json.push_back(std::move(lists));
  }
  return json;
}

void read_kernels(const Json& json, RecordedSpec& spec) {
  constexpr std::size_t kMostAttempts = 10'000;
  for (const Json& lists : json) {
    RecordedKernel& kernel = spec.kernels.emplace_back();
    for (const Json& list : lists) {
      RecordedKernel::Refusal& refusal = kernel.refusals.emplace_back();
      refusal.shape = exact<std::uint32_t>(list.at(0));
      for (std::size_t i = 0; i < list.at(1).size(); i += 2) {
        const auto times = exact<std::size_t>(list.at(1).at(i + 1), 0, kMostAttempts);
        refusal.sizes.insert(refusal.sizes.end(), times, exact<Bytes>(list.at(1).at(i)));
      }
    }
  }
}

const std::vector<Part>& parts() {
  using S = RecordedSpec;
  using V = RecordedVariable;
  using G = RecordedGroup;
  using L = RecordedLoop;
  static const std::vector<Part> all{
      rows("variables", &S::variables, true, &V::name, &V::kind, &V::value, &V::weights, &V::of),
      whole("fields", &S::fields),
      rows("item_kinds", &S::item_kinds, false, &RecordedItemKind::parameter, &RecordedItemKind::columns),
      {"products", products_json, read_products},
      whole("main_product", &S::main_product),
      whole("samples", &S::samples),
      whole("shapes", &S::shapes),
      {"forms", [](const S& spec) { return size_forms_json(spec.forms); }, read_forms},
      rows("tables", &S::tables, false, &RecordedTable::sizes, &RecordedTable::forms, &RecordedTable::scales),
      rows("groups", &S::groups, false, &G::in, &G::within, &G::monomial, &G::from, &G::below),
      {"tensors", tensors_json, read_tensors},
      {"kernels", kernels_json, read_kernels, true},
      rows("loops", &S::loops, false, &L::count, &L::plus, &L::from_last, &L::skipped),
      may_lack(rows("failures", &S::failures, false, &RecordedFailure::point, &RecordedFailure::needed)),
      may_lack(rows("segments", &S::segments, false, &RecordedSegment::address, &RecordedSegment::size)),
      whole("extras", &S::extras),
      whole("kept", &S::kept),
      {"program", program_text,
       [](const Json& json, S& spec) { read_program_text(exact<std::string>(json), spec); }},
      whole("build", &S::build)};
  return all;
}

Json ranges_json(const std::vector<Parameter>& parameters) {
  Json json = Json::object();
  for (const Parameter& parameter : parameters) json[parameter.name] = {parameter.low, parameter.high};
  return json;
}

std::vector<Parameter> read_ranges(const Json& json) {
  std::vector<Parameter> ranges;
  for (const auto& [name, range] : json.items()) {
    ranges.push_back({name, exact<std::int64_t>(range[0]), exact<std::int64_t>(range[1])});
  }
  return ranges;
}

// Does `read`, and puts what it finds wrong at `place`.
template <class Read>
auto read_at(const std::string& place, const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    throw InputError(place, error.problems().front().what);
  } catch (const nlohmann::json::exception&) {
    throw InputError(place, "is damaged. Fit the model again (vramlab fit).");
  }
}

void read_time(const Json& json, const std::string& where, RecordedSpec& spec) {
  constexpr double kLongest = 1e6;  // milliseconds of a step, or microseconds for each unit of a product
  const auto seconds = [&](const Json& object, const std::string& key, double unit) {
    if (!object.contains(key)) return 0.0;
    return exact<double>(object[key], 0, kLongest) * unit;
  };
  for (const auto& [key, member] : {std::pair{"floor_ms", &StepTimeForm::floor_seconds},
                                    std::pair{"base_ms", &StepTimeForm::base_seconds},
                                    std::pair{"least_at_floor_ms", &StepTimeForm::least_at_floor},
                                    std::pair{"most_at_floor_ms", &StepTimeForm::most_at_floor}}) {
    spec.time.*member =
        read_at(where + "/step_time/" + key, [&, &name = key] { return seconds(json, name, 1e-3); });
  }
  const std::vector<std::string> names = variable_names(spec);
  const auto number_of = [&](const std::string& place, const std::string& text) {
    const auto product = Monomial::parse(text, names);
    if (!product) throw InputError(place, "is not a product of the model's variables.");
    const auto known = std::find(spec.monomials.begin(), spec.monomials.end(), *product);
    const auto number = static_cast<std::uint32_t>(known - spec.monomials.begin());
    if (known == spec.monomials.end()) spec.monomials.push_back(*product);
    return number;
  };
  if (json.contains("floor_for_each")) {
    const std::string place = where + "/step_time/floor_for_each";
    spec.time.rounds =
        number_of(place, read_at(place, [&] { return exact<std::string>(json["floor_for_each"]); }));
  }
  const Json slopes = json.value("us_per", Json::object());
  if (!slopes.is_object()) throw InputError(where + "/step_time/us_per", "is not an object in { }.");
  for (const auto& [text, slope] : slopes.items()) {
    const std::string place = where + "/step_time/us_per/" + text;
    const std::uint32_t number = number_of(place, text);
    spec.time.slopes.push_back(
        {number, read_at(place, [&, &name = text] { return seconds(slopes, name, 1e-6); })});
  }
}

// One line a key, `levels` deep.
std::string lines(const Json& json, int levels, const std::string& indent) {
  if (levels == 0 || !json.is_object() || json.empty()) return json.dump();
  std::string text = "{";
  const char* separator = "\n";
  for (const auto& [key, value] : json.items()) {
    text += separator + indent + "  " + Json(key).dump() + ": " + lines(value, levels - 1, indent + "  ");
    separator = ",\n";
  }
  return text + "\n" + indent + "}";
}

}  // namespace

Json size_forms_json(const std::vector<SizeForm>& forms) {
  Json json = Json::array();
  for (const SizeForm& form : forms) {
    Json& numbers = json.emplace_back(Json::array());
    for (const SizeTerm& term : form.terms) {
      numbers.insert(numbers.end(), {Json(term.monomial), Json(term.numerator), Json(term.denominator)});
    }
    if (form.unit > 1) numbers.insert(numbers.end(), {Json(form.unit), Json(form.most)});
  }
  return json;
}

std::vector<SizeForm> read_size_forms(const Json& json) {
  std::vector<SizeForm> forms;
  for (const Json& numbers : json) {
    SizeForm& form = forms.emplace_back();
    std::size_t i = 0;
    for (; i + 3 <= numbers.size(); i += 3) {
      form.terms.push_back({exact<std::uint32_t>(numbers.at(i)), exact<std::int64_t>(numbers.at(i + 1)),
                            exact<std::int64_t>(numbers.at(i + 2))});
    }
    if (i == numbers.size()) continue;
    form.unit = exact<std::int64_t>(numbers.at(i));
    form.most = exact<std::int64_t>(numbers.at(i + 1));
  }
  return forms;
}

Json recorded_model_json(const RecordedSpec& spec) {
  Json json;
  json["kind"] = "recorded";
  json["version"] = 2;
  json["name"] = spec.name;
  json["parameters"] = ranges_json(spec.parameters);
  json["recorded_range"] = ranges_json(spec.recorded);
  Json& time = json["step_time"];
  time["floor_ms"] = spec.time.floor_seconds * 1e3;
  time["base_ms"] = spec.time.base_seconds * 1e3;
  if (spec.time.most_at_floor > 0) {
    time["least_at_floor_ms"] = spec.time.least_at_floor * 1e3;
    time["most_at_floor_ms"] = spec.time.most_at_floor * 1e3;
  }
  if (spec.time.rounds > 0) {
    time["floor_for_each"] = spec.monomials[spec.time.rounds].text(variable_names(spec));
  }
  time["us_per"] = Json::object();
  for (const StepTimeForm::Slope& slope : spec.time.slopes) {
    time["us_per"][spec.monomials[slope.monomial].text(variable_names(spec))] = slope.seconds * 1e6;
  }
  json["workspace_refusals"] = spec.workspace_refusals;
  if (spec.outside > 0) {
    json["outside_bytes"] = spec.outside;
    json["card_bytes"] = spec.card_total;
  }
  Json& data = json["data"];
  for (const Part& part : parts()) {
    Json value = part.write(spec);
    if (!part.may_lack || !value.empty()) data[part.key] = std::move(value);
  }
  return json;
}

RecordedSpec read_recorded_spec(const Json& json, const std::string& where) {
  RecordedSpec spec;
  spec.name = json.value("name", "recorded");
  spec.parameters = read_ranges(json["parameters"]);
  spec.recorded = read_ranges(json["recorded_range"]);
  const Json& data = json["data"];
  for (const Part& part : parts()) {
    const std::string place = where + "/data/" + part.key;
    if (!data.contains(part.key)) {
      if (part.may_lack) continue;
      throw InputError(place, "is missing. Fit the model again (vramlab fit).");
    }
    read_at(place, [&] { part.read(data[part.key], spec); });
  }
  read_time(json["step_time"], where, spec);
  spec.workspace_refusals = json.value("workspace_refusals", spec.workspace_refusals);
  spec.outside = json.value("outside_bytes", spec.outside);
  spec.card_total = json.value("card_bytes", spec.card_total);
  return spec;
}

std::string model_file_text(const Json& json) { return lines(json, 2, "") + "\n"; }

std::vector<Row<RecordedSpec>> recorded_model_rows() {
  using R = RecordedSpec;
  return {
      {"version", unkept<R>(FieldKind::integer), "", 2, 2,
       "version of the format, 2; a model of another version must be fitted again", kRequired},
      {"card", unkept_object<R>(), "", 0, 0, "what the model was made of, and how well it does"},
      {"parameters", unkept<R>(FieldKind::bounds), "", 0, 0, "ranges that may be asked for", kRequired},
      {"recorded_range", unkept<R>(FieldKind::bounds), "", 0, 0, "ranges that were recorded", kRequired},
      {"step_time", unkept_object<R>(), "", 0, 0, "duration of a step", kRequired},
      {"workspace_refusals", &R::workspace_refusals, "", 1, 1000,
       "attempts before a kernel does without workspace"},
      {"outside_bytes", unkept<R>(FieldKind::integer), "bytes", 0, 1e15,
       "of the card besides the allocator when it was recorded: context and libraries"},
      {"card_bytes", unkept<R>(FieldKind::integer), "bytes", 0, 1e15, "memory of that card"},
      {"data", unkept_object<R>(), "", 0, 0, "the recorded program, as vramlab fit writes it", kRequired},
  };
}

}  // namespace vramlab
