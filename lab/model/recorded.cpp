#include "lab/model/recorded.hpp"

#include <array>
#include <sstream>
#include <utility>

namespace vramlab {
namespace {

using VariableKind = RecordedVariable::Kind;

constexpr std::array kKinds{
    std::pair{"parameter", VariableKind::parameter}, std::pair{"fixed", VariableKind::fixed},
    std::pair{"items", VariableKind::items},         std::pair{"sum", VariableKind::sum},
    std::pair{"most", VariableKind::most},           std::pair{"first_item", VariableKind::first_item},
    std::pair{"last_item", VariableKind::last_item}, std::pair{"item", VariableKind::item},
    std::pair{"round", VariableKind::round}};

std::vector<std::string> variable_names(const RecordedSpec& spec) {
  std::vector<std::string> names;
  for (const RecordedVariable& variable : spec.variables) names.push_back(variable.name);
  return names;
}

Json ranges(const std::vector<Parameter>& parameters) {
  Json json = Json::object();
  for (const Parameter& parameter : parameters) json[parameter.name] = {parameter.low, parameter.high};
  return json;
}

Json variables_json(const RecordedSpec& spec) {
  Json json = Json::array();
  for (const RecordedVariable& variable : spec.variables) {
    const char* kind = "";
    for (const auto& [name, value] : kKinds) {
      if (value == variable.kind) kind = name;
    }
    json.push_back({variable.name, kind, variable.value, variable.weights});
  }
  return json;
}

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
  }
  return json;
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

Json data_json(const RecordedSpec& spec) {
  Json data;
  data["variables"] = variables_json(spec);
  data["fields"] = spec.fields;
  data["item_kinds"] = Json::array();
  for (const RecordedItemKind& kind : spec.item_kinds)
    data["item_kinds"].push_back({kind.parameter, kind.columns});
  data["products"] = Json::array();
  const std::vector<std::string> names = variable_names(spec);
  for (const Monomial& monomial : spec.monomials) data["products"].push_back(monomial.text(names));
  data["main_product"] = spec.main_product;
  data["samples"] = spec.samples;
  data["shapes"] = spec.shapes;
  data["forms"] = Json::array();
  for (const SizeForm& form : spec.forms) {
    Json terms = Json::array();
    for (const SizeTerm& term : form.terms) {
      for (const std::int64_t number : {std::int64_t{term.monomial}, term.numerator, term.denominator}) {
        terms.push_back(number);
      }
    }
    data["forms"].push_back(std::move(terms));
  }
  data["tables"] = Json::array();
  for (const RecordedTable& table : spec.tables)
    data["tables"].push_back({table.sizes, table.forms, table.scales ? 1 : 0});
  data["groups"] = Json::array();
  for (const RecordedGroup& group : spec.groups) {
    data["groups"].push_back({group.in, group.within, group.monomial, group.from, group.below ? 1 : 0});
  }
  data["tensors"] = tensors_json(spec);
  if (!spec.kernels.empty()) data["kernels"] = kernels_json(spec);
  data["loops"] = Json::array();
  for (const RecordedLoop& loop : spec.loops) {
    data["loops"].push_back({loop.count, loop.plus, loop.from_last ? 1 : 0, loop.skipped});
  }
  data["extras"] = spec.extras;
  data["kept"] = spec.kept;
  std::string program;
  for (const std::string& word : program_words(spec)) program += (program.empty() ? "" : " ") + word;
  data["program"] = program;
  data["build"] = spec.build;
  return data;
}

/// Reads the packed part. Every access names its key, so that damage has a place.
class DataReader {
 public:
  DataReader(const Json& json, const std::string& where) : json_(json), data_(json["data"]), where_(where) {}

  RecordedSpec read() {
    RecordedSpec spec;
    spec.name = json_.value("name", "recorded");
    read_ranges(json_["parameters"], spec.parameters);
    read_ranges(json_["recorded_range"], spec.recorded);
    get("variables", [&](const Json& json) {
      for (const Json& one : json)
        spec.variables.push_back({one.at(0), kind(one.at(1)), one.at(2), one.at(3)});
    });
    get("fields", [&](const Json& json) { spec.fields = json; });
    get("item_kinds", [&](const Json& json) {
      for (const Json& one : json) spec.item_kinds.push_back({one.at(0), one.at(1)});
    });
    read_products(spec);
    get("main_product", [&](const Json& json) { spec.main_product = json; });
    get("samples", [&](const Json& json) { spec.samples = json; });
    get("shapes", [&](const Json& json) { spec.shapes = json.get<std::vector<VariableValues>>(); });
    read_sizes(spec);
    read_structure(spec);
    get("extras", [&](const Json& json) { spec.extras = json.get<std::vector<Bytes>>(); });
    get("kept", [&](const Json& json) { spec.kept = json; });
    get("build", [&](const Json& json) { spec.build = json.get<std::vector<std::int64_t>>(); });
    read_program(spec);
    read_time(spec);
    spec.workspace_refusals = json_.value("workspace_refusals", spec.workspace_refusals);
    return spec;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(where_ + pointer, what);
  }

  template <class Read>
  void get(const std::string& key, const Read& read) const {
    if (!data_.contains(key)) fail("/data/" + key, "is missing. Fit the model again (vramlab fit).");
    try {
      read(data_[key]);
    } catch (const nlohmann::json::exception&) {
      fail("/data/" + key, "is damaged. Fit the model again (vramlab fit).");
    }
  }

  static void read_ranges(const Json& json, std::vector<Parameter>& out) {
    for (const auto& [name, range] : json.items()) out.push_back({name, range[0], range[1]});
  }

  [[nodiscard]] VariableKind kind(const std::string& word) const {
    for (const auto& [name, value] : kKinds) {
      if (word == name) return value;
    }
    fail("/data/variables", '"' + word + "\" is not a kind of variable.");
  }

  void read_products(RecordedSpec& spec) const {
    const std::vector<std::string> names = variable_names(spec);
    get("products", [&](const Json& json) {
      for (const Json& text : json) {
        const auto product = Monomial::parse(text.get<std::string>(), names);
        if (!product) fail("/data/products", text.dump() + " is not a product of the model's variables.");
        spec.monomials.push_back(*product);
      }
    });
  }

  void read_sizes(RecordedSpec& spec) const {
    get("forms", [&](const Json& json) {
      for (const Json& numbers : json) {
        SizeForm form;
        for (std::size_t i = 0; i < numbers.size(); i += 3) {
          form.terms.push_back({numbers.at(i), numbers.at(i + 1), numbers.at(i + 2)});
        }
        spec.forms.push_back(std::move(form));
      }
    });
    get("tables", [&](const Json& json) {
      for (const Json& one : json) {
        spec.tables.push_back({one.at(0).get<std::vector<Bytes>>(),
                               one.at(1).get<std::vector<std::int32_t>>(), one.at(2).get<int>() != 0});
      }
    });
  }

  void read_structure(RecordedSpec& spec) const {
    get("groups", [&](const Json& json) {
      for (const Json& one : json) {
        spec.groups.push_back({one.at(0), one.at(1), one.at(2), one.at(3), one.at(4).get<int>() != 0});
      }
    });
    get("tensors", [&](const Json& json) {
      const auto sizes = json.at("size").get<std::vector<std::int32_t>>();
      const auto groups = json.at("group").get<std::vector<std::uint32_t>>();
      if (sizes.size() != groups.size()) fail("/data/tensors", "has columns of different lengths.");
      for (std::size_t t = 0; t < sizes.size(); ++t) spec.tensors.push_back({sizes[t], groups[t]});
      for (const Json& kept : json.at("kept")) tensor(spec, kept.at(0)).kept = kept.at(1);
      for (const Json& number : json.at("workspace")) tensor(spec, number).workspace = true;
      if (!json.contains("kernel")) return;
      for (const Json& kernel : json["kernel"]) tensor(spec, kernel.at(0)).kernel = kernel.at(1);
    });
    read_kernels(spec);
    get("loops", [&](const Json& json) {
      for (const Json& one : json) {
        spec.loops.push_back({one.at(0), one.at(1), one.at(2).get<int>() != 0, one.at(3)});
      }
    });
  }

  // Absent where no workspace was refused.
  void read_kernels(RecordedSpec& spec) const {
    if (!data_.contains("kernels")) return;
    constexpr std::size_t kMostAttempts = 10'000;
    get("kernels", [&](const Json& json) {
      for (const Json& lists : json) {
        RecordedKernel& kernel = spec.kernels.emplace_back();
        for (const Json& list : lists) {
          RecordedKernel::Refusal& refusal = kernel.refusals.emplace_back();
          refusal.shape = list.at(0);
          for (std::size_t i = 0; i < list.at(1).size(); i += 2) {
            const auto times = list.at(1).at(i + 1).get<std::size_t>();
            if (times > kMostAttempts) fail("/data/kernels", "repeats a size too often.");
            refusal.sizes.insert(refusal.sizes.end(), times, list.at(1).at(i).get<Bytes>());
          }
        }
      }
    });
  }

  [[nodiscard]] RecordedTensor& tensor(RecordedSpec& spec, const Json& number) const {
    const auto place = number.get<std::size_t>();
    if (place >= spec.tensors.size()) fail("/data/tensors", "names a tensor that is not there.");
    return spec.tensors[place];
  }

  void read_program(RecordedSpec& spec) const {
    get("program", [&](const Json& json) {
      std::istringstream words{json.get<std::string>()};
      std::uint32_t allocated = 0;
      std::uint32_t made = 0;
      for (std::string word; words >> word;) {
        const auto op = read_program_word(word, spec.tensors, allocated, made);
        if (!op) fail("/data/program", '"' + word.substr(0, 40) + "\" is not an operation.");
        spec.program.push_back(*op);
      }
    });
  }

  void read_time(RecordedSpec& spec) const {
    const Json& time = json_["step_time"];
    spec.time.floor_seconds = time.value("floor_ms", 0.0) * 1e-3;
    spec.time.base_seconds = time.value("base_ms", 0.0) * 1e-3;
    const std::vector<std::string> names = variable_names(spec);
    const Json slopes = time.value("us_per", Json::object());
    for (const auto& [text, slope] : slopes.items()) {
      const auto product = Monomial::parse(text, names);
      if (!product || !slope.is_number() || slope.get<double>() < 0) {
        fail("/step_time/us_per/" + text,
             "must be a product of the model's variables, with its microseconds.");
      }
      std::uint32_t number = 0;
      while (number < spec.monomials.size() && spec.monomials[number] != *product) ++number;
      if (number == spec.monomials.size()) spec.monomials.push_back(*product);
      spec.time.slopes.push_back({number, slope.get<double>() * 1e-6});
    }
  }

  const Json& json_;
  const Json& data_;
  const std::string& where_;
};

double rounded(double value) { return std::stod(Json(value).dump()); }

}  // namespace

Json recorded_model_json(const RecordedSpec& spec) {
  Json json;
  json["kind"] = "recorded";
  json["version"] = 2;
  json["name"] = spec.name;
  json["parameters"] = ranges(spec.parameters);
  json["recorded_range"] = ranges(spec.recorded);
  Json& time = json["step_time"];
  time["floor_ms"] = rounded(spec.time.floor_seconds * 1e3);
  time["base_ms"] = rounded(spec.time.base_seconds * 1e3);
  time["us_per"] = Json::object();
  for (const StepTimeForm::Slope& slope : spec.time.slopes) {
    time["us_per"][spec.monomials[slope.monomial].text(variable_names(spec))] = rounded(slope.seconds * 1e6);
  }
  json["workspace_refusals"] = spec.workspace_refusals;
  json["data"] = data_json(spec);
  return json;
}

RecordedSpec read_recorded_spec(const Json& json, const std::string& where) {
  return DataReader(json, where).read();
}

std::string model_file_text(const Json& json) {
  std::string text = "{";
  const char* separator = "\n";
  for (const auto& [key, value] : json.items()) {
    text += separator + ("  " + Json(key).dump()) + ": ";
    separator = ",\n";
    if (!value.is_object() || value.empty()) {
      text += value.dump();
      continue;
    }
    text += '{';
    const char* inner = "\n";
    for (const auto& [name, member] : value.items()) {
      text += inner + ("    " + Json(name).dump()) + ": " + member.dump();
      inner = ",\n";
    }
    text += "\n  }";
  }
  return text + "\n}\n";
}

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
      {"data", unkept_object<R>(), "", 0, 0, "the recorded program, as vramlab fit writes it", kRequired},
  };
}

}  // namespace vramlab
