#include "lab/scenario/fields.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

// A value as it stands in the file, cut to what fits a line.
std::string shown(const Json& json) {
  constexpr std::size_t kLongest = 60;
  const std::string text = json.dump(-1, ' ', /*ensure_ascii=*/true);  // cut anywhere, it stays readable
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + " ...";
}

class FieldCheck {
 public:
  explicit FieldCheck(std::vector<Problem>& problems) : problems_(problems) {}

  void object(const Json& json, const std::vector<Field>& fields, bool open, const std::string& pointer) {
    if (!json.is_object()) return wrong(pointer.empty() ? "/" : pointer, json, "an object in { }");
    for (const Field& field : fields) {
      if (field.required && !json.contains(field.key)) {
        problems_.push_back(
            {pointer.empty() ? "/" : pointer, fmt::format("\"{}\" is missing: {}{}", field.key, field.help,
                                                          open ? mistyped(json, fields, field.key) : "")});
      }
    }
    for (const auto& [key, value] : json.items()) {
      const auto field =
          std::find_if(fields.begin(), fields.end(), [&name = key](const Field& f) { return f.key == name; });
      if (field != fields.end()) {
        check(value, *field, pointer + "/" + key);
      } else if (!open) {
        problems_.push_back({pointer + "/" + key, "unknown key." + suggest_name(key, keys(fields))});
      }
    }
  }

 private:
  // An object that takes other keys too says nothing of a mistyped one, so the missing key asks for it.
  static std::string mistyped(const Json& json, const std::vector<Field>& fields,
                              const std::string& missing) {
    std::vector<std::string> unknown;
    for (const auto& [key, value] : json.items()) {
      const auto is = [&name = key](const Field& field) { return field.key == name; };
      if (std::none_of(fields.begin(), fields.end(), is)) unknown.push_back(key);
    }
    const std::string near = nearest_name(missing, unknown);
    return near.empty() ? "" : fmt::format(". Is it meant by \"{}\"?", near);
  }

  void check(const Json& json, const Field& field, const std::string& pointer) {
    switch (field.kind) {
      case FieldKind::text:
        if (!is_line(json)) wrong(pointer, json, "text in quotes, without line breaks or control characters");
        return;
      case FieldKind::boolean:
        if (!json.is_boolean()) wrong(pointer, json, "true or false");
        return;
      case FieldKind::integer:
        if (!is_integer(json)) return wrong(pointer, json, "a whole number" + range(field));
        return in_range(json.get<double>(), json, field, pointer);
      case FieldKind::number:
        if (!json.is_number()) return wrong(pointer, json, "a number" + range(field));
        return in_range(json.get<double>(), json, field, pointer);
      case FieldKind::size:
        return size(json, field, pointer);
      case FieldKind::choice:
        return choice(json, field, pointer);
      case FieldKind::object:
        return object(json, field.fields, field.open, pointer);
      case FieldKind::list:
        return list(json, field, pointer);
      case FieldKind::values:
        return values(json, pointer);
      case FieldKind::bounds:
        return bounds(json, pointer);
      case FieldKind::integers:
        return integers(json, pointer);
      case FieldKind::texts:
        if (!json.is_array() || !std::all_of(json.begin(), json.end(), is_line)) {
          wrong(pointer, json, "a list of texts in quotes");
        }
        return;
      case FieldKind::batch_size:
        if (!is_integer(json) && json != kAutoBatchSize) {
          wrong(pointer, json, "a whole number or \"auto_batch_size\"");
        }
        return;
      case FieldKind::bound:
        if (!json.is_number() && !json.is_boolean() &&
            !(json.is_string() && parse_bytes(json.get<std::string>()))) {
          wrong(pointer, json, "a number, true or false, or a size such as \"12GiB\"");
        }
        return;
      case FieldKind::model:
        if (!json.is_string() && !json.is_object())
          wrong(pointer, json, "a model file's name or a model in { }");
        return;
      case FieldKind::any_list:
        if (!json.is_array()) wrong(pointer, json, "a list of values in [ ]");
        return;
    }
  }

  void size(const Json& json, const Field& field, const std::string& pointer) {
    const bool negative =
        json.is_number_integer() && !json.is_number_unsigned() && json.get<std::int64_t>() < 0;
    const bool readable =
        (json.is_number_integer() && !negative) || (json.is_string() && parse_bytes(json.get<std::string>()));
    if (!readable) {
      problems_.push_back(
          {pointer, shown(json) + " is not a size. Write 12GiB, 12288MiB or a number of bytes."});
      return;
    }
    in_range(static_cast<double>(size_value(json)), json, field, pointer);
  }

  void choice(const Json& json, const Field& field, const std::string& pointer) {
    if (!json.is_string())
      return wrong(pointer, json, "one of " + fmt::format("{}", fmt::join(field.choices, ", ")));
    const auto word = json.get<std::string>();
    if (std::find(field.choices.begin(), field.choices.end(), word) != field.choices.end()) return;
    problems_.push_back({pointer, shown(json) + " is not known here." + suggest_name(word, field.choices)});
  }

  void list(const Json& json, const Field& field, const std::string& pointer) {
    if (!json.is_array()) return wrong(pointer, json, "a list in [ ]");
    for (std::size_t i = 0; i < json.size(); ++i) {
      object(json[i], field.fields, field.open, pointer + "/" + std::to_string(i));
    }
  }

  void values(const Json& json, const std::string& pointer) {
    if (!json.is_object()) return wrong(pointer, json, "an object such as {\"batch\": 8}");
    for (const auto& [key, value] : json.items()) {
      if (!is_integer(value)) wrong(pointer + "/" + key, value, "a whole number");
    }
  }

  void integers(const Json& json, const std::string& pointer) {
    const bool right = json.is_array() && std::all_of(json.begin(), json.end(), is_integer);
    if (!right) wrong(pointer, json, "a list of whole numbers, such as [6, 6]");
  }

  void bounds(const Json& json, const std::string& pointer) {
    if (!json.is_object()) return wrong(pointer, json, "an object such as {\"batch\": [2, 64]}");
    for (const auto& [key, value] : json.items()) {
      if (!value.is_array() || value.size() != 2 || !is_integer(value[0]) || !is_integer(value[1])) {
        wrong(pointer + "/" + key, value, "two whole numbers, [smallest, largest]");
      } else if (value[0].get<std::int64_t>() > value[1].get<std::int64_t>()) {
        problems_.push_back(
            {pointer + "/" + key, fmt::format("the smallest value {} is above the largest, {}.",
                                              value[0].dump(), value[1].dump())});
      }
    }
  }

  // What fits 64 bits with a sign; larger numbers in a file are valid JSON too.
  static bool is_integer(const Json& json) {
    return json.is_number_integer() &&
           (!json.is_number_unsigned() || json.get<std::uint64_t>() <= std::uint64_t{INT64_MAX});
  }

  // Texts end up in tables, messages and pictures, where a line break would be taken for more than text.
  static bool is_line(const Json& json) {
    if (!json.is_string()) return false;
    const auto& text = json.get_ref<const std::string&>();
    return std::none_of(text.begin(), text.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  }

  static std::string range(const Field& field) {
    if (!field.is_bounded()) return "";
    if (field.kind == FieldKind::integer) return fmt::format(" from {:.0f} to {:.0f}", field.low, field.high);
    return fmt::format(" from {:g} to {:g}", field.low, field.high);
  }

  void in_range(double value, const Json& json, const Field& field, const std::string& pointer) {
    if (!field.is_bounded() || (value >= field.low && value <= field.high)) return;
    problems_.push_back(
        {pointer, fmt::format("{} is out of range; allowed is{}.", shown(json),
                              field.kind == FieldKind::size
                                  ? fmt::format(" {} to {}", format_bytes(static_cast<Bytes>(field.low)),
                                                format_bytes(static_cast<Bytes>(field.high)))
                                  : range(field))});
  }

  void wrong(const std::string& pointer, const Json& json, const std::string& wanted) {
    problems_.push_back({pointer, fmt::format("found {}, needed is {}.", shown(json), wanted)});
  }

  static std::vector<std::string> keys(const std::vector<Field>& fields) {
    std::vector<std::string> names;
    for (const Field& field : fields) names.push_back(field.key);
    return names;
  }

  std::vector<Problem>& problems_;
};

constexpr const char* kSizePattern = "^[0-9]+(\\.[0-9]+)? *(B|KiB|MiB|GiB|TiB)?$";

Json field_schema(const Field& field) {
  Json schema;
  const auto set_range = [&] {
    if (!field.is_bounded()) return;
    schema["minimum"] = field.low;
    schema["maximum"] = field.high;
  };
  switch (field.kind) {
    case FieldKind::text:
      schema["type"] = "string";
      break;
    case FieldKind::boolean:
      schema["type"] = "boolean";
      break;
    case FieldKind::integer:
      schema["type"] = "integer";
      set_range();
      break;
    case FieldKind::number:
      schema["type"] = "number";
      set_range();
      break;
    case FieldKind::size:
      schema["type"] = Json::array({"string", "integer"});
      schema["pattern"] = kSizePattern;
      schema["minimum"] = 0;
      break;
    case FieldKind::bound:
      schema["type"] = Json::array({"number", "boolean", "string"});
      schema["pattern"] = kSizePattern;
      break;
    case FieldKind::choice:
      schema["enum"] = field.choices;
      break;
    case FieldKind::object:
      schema = fields_schema(field.fields, field.open);
      break;
    case FieldKind::list:
      schema["type"] = "array";
      schema["items"] = fields_schema(field.fields, field.open);
      break;
    case FieldKind::values:
      schema["type"] = "object";
      schema["additionalProperties"]["type"] = "integer";
      break;
    case FieldKind::bounds:
      schema["type"] = "object";
      schema["additionalProperties"] = {
          {"type", "array"}, {"items", {{"type", "integer"}}}, {"minItems", 2}, {"maxItems", 2}};
      break;
    case FieldKind::integers:
      schema["type"] = "array";
      schema["items"] = {{"type", "integer"}};
      break;
    case FieldKind::texts:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      break;
    case FieldKind::batch_size:
      schema["oneOf"] = {{{"type", "integer"}}, {{"const", kAutoBatchSize}}};
      break;
    case FieldKind::model:
      schema["type"] = Json::array({"string", "object"});
      break;
    case FieldKind::any_list:
      schema["type"] = "array";
      break;
  }
  schema["description"] = field.help;
  return schema;
}

}  // namespace

void check_fields(const Json& json, const std::vector<Field>& fields, bool open, const std::string& pointer,
                  std::vector<Problem>& problems) {
  FieldCheck{problems}.object(json, fields, open, pointer);
}

Json fields_schema(const std::vector<Field>& fields, bool open) {
  Json schema;
  schema["type"] = "object";
  for (const Field& field : fields) schema["properties"][field.key] = field_schema(field);
  for (const Field& field : fields) {
    if (field.required) schema["required"].push_back(field.key);
  }
  schema["additionalProperties"] = open;
  return schema;
}

Bytes size_value(const Json& json) {
  return json.is_string() ? parse_bytes(json.get<std::string>()).value() : json.get<Bytes>();
}

double bound_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  return json.is_string() ? static_cast<double>(size_value(json)) : json.get<double>();
}

namespace {

std::string value_name(const Field& field) {
  switch (field.kind) {
    case FieldKind::text:
      return "text";
    case FieldKind::integer:
      return "whole number";
    case FieldKind::number:
      return "number";
    case FieldKind::boolean:
      return "true or false";
    case FieldKind::size:
      return "size";
    case FieldKind::choice:
      return fmt::format("{}{}", field.choices.size() > 1 ? "one of " : "", fmt::join(field.choices, ", "));
    case FieldKind::object:
      return "object";
    case FieldKind::list:
      return "list of objects";
    case FieldKind::values:
      return "a value for each parameter";
    case FieldKind::bounds:
      return "[low, high] for each parameter";
    case FieldKind::bound:
      return "number, size, true or false";
    case FieldKind::integers:
      return "list of whole numbers";
    case FieldKind::texts:
      return "list of texts";
    case FieldKind::batch_size:
      return fmt::format("whole number, or {}", kAutoBatchSize);
    case FieldKind::model:
      return "file or object";
    case FieldKind::any_list:
      return "list";
  }
  throw InternalError("a kind of field without a name");
}

std::string range_text(const Field& field) {
  if (!field.is_bounded()) return "";
  if (field.kind == FieldKind::size) {
    return fmt::format("{} to {}", format_bytes(static_cast<Bytes>(field.low)),
                       format_bytes(static_cast<Bytes>(field.high)));
  }
  const auto number = [](double value) {
    return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.15g}", value);
  };
  return fmt::format("{} to {}", number(field.low), number(field.high));
}

void add_rows(const std::vector<Field>& fields, const std::string& way, std::vector<FieldRow>& rows) {
  for (const Field& field : fields) {
    const std::string key = way + field.key;
    rows.push_back({key, value_name(field), range_text(field), field.help, field.required});
    add_rows(field.fields, key + (field.kind == FieldKind::list ? "[]." : "."), rows);
  }
}

}  // namespace

std::vector<FieldRow> field_rows(const std::vector<Field>& fields) {
  std::vector<FieldRow> rows;
  add_rows(fields, "", rows);
  return rows;
}

}  // namespace vramlab
