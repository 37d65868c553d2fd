#include "lab/scenario/fields.hpp"

#include <algorithm>
#include <any>
#include <cstdint>

#include <fmt/format.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

// A value as it stands in the file, cut to what fits a line.
std::string shown(const Json& json) {
  constexpr std::size_t kLongestName = 60;
  const std::string text = json.dump(-1, ' ', /*ensure_ascii=*/true);  // cut anywhere, it stays readable
  return text.size() <= kLongestName ? text : text.substr(0, kLongestName) + " ...";
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
        problems_.push_back({pointer + "/" + key, "unknown key." + suggest_name(key, keys_of(fields))});
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
        return require(is_line(json), pointer, json,
                       "text in quotes, without line breaks or control characters");
      case FieldKind::boolean:
        return require(json.is_boolean(), pointer, json, "true or false");
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
        return require(json.is_array() && std::all_of(json.begin(), json.end(), is_integer), pointer, json,
                       "a list of whole numbers, such as [6, 6]");
      case FieldKind::texts:
        return require(json.is_array() && std::all_of(json.begin(), json.end(), is_line), pointer, json,
                       "a list of texts in quotes");
      case FieldKind::batch_size:
        return require(is_integer(json) || json == kAutoBatchSize, pointer, json,
                       "a whole number or \"auto_batch_size\"");
      case FieldKind::bound:
        return require(json.is_number() || json.is_boolean() || is_size_text(json), pointer, json,
                       "a number, true or false, or a size such as \"12GiB\"");
      case FieldKind::model:
        return require(json.is_string() || json.is_object(), pointer, json,
                       "a model file's name or a model in { }");
      case FieldKind::any_list:
        return require(json.is_array(), pointer, json, "a list of values in [ ]");
    }
  }

  void size(const Json& json, const Field& field, const std::string& pointer) {
    const bool number =
        json.is_number_unsigned() || (json.is_number_integer() && json.get<std::int64_t>() >= 0);
    if (number || is_size_text(json)) {
      return in_range(static_cast<double>(size_value(json)), json, field, pointer);
    }
    problems_.push_back(
        {pointer, shown(json) + " is not a size. Write 12GiB, 12288MiB or a number of bytes."});
  }

  void choice(const Json& json, const Field& field, const std::string& pointer) {
    if (!json.is_string())
      return wrong(pointer, json, fmt::format("one of {}", fmt::join(field.choices, ", ")));
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

  static bool is_size_text(const Json& json) {
    return json.is_string() && parse_bytes(json.get<std::string>());
  }

  static std::string range(const Field& field) {
    if (!field.is_bounded()) return "";
    if (field.kind == FieldKind::integer) return fmt::format(" from {:.0f} to {:.0f}", field.low, field.high);
    if (field.kind == FieldKind::number) return fmt::format(" from {:g} to {:g}", field.low, field.high);
    return fmt::format(" {} to {}", format_bytes(static_cast<Bytes>(field.low)),
                       format_bytes(static_cast<Bytes>(field.high)));
  }

  void in_range(double value, const Json& json, const Field& field, const std::string& pointer) {
    if (!field.is_bounded() || (value >= field.low && value <= field.high)) return;
    problems_.push_back(
        {pointer, fmt::format("{} is out of range; allowed is{}.", shown(json), range(field))});
  }

  void require(bool holds, const std::string& pointer, const Json& json, const std::string& wanted) {
    if (!holds) wrong(pointer, json, wanted);
  }
  void wrong(const std::string& pointer, const Json& json, const std::string& wanted) {
    problems_.push_back({pointer, fmt::format("found {}, needed is {}.", shown(json), wanted)});
  }

  std::vector<Problem>& problems_;
};

NamedRanges ranges(const Json& json) {
  NamedRanges result;
  for (const auto& [name, range] : json.items()) {
    result.push_back({name, range[0].get<std::int64_t>(), range[1].get<std::int64_t>()});
  }
  return result;
}

NamedIntegers integers(const Json& json) {
  NamedIntegers result;
  for (const auto& [name, value] : json.items()) result.emplace_back(name, value.get<std::int64_t>());
  return result;
}

// Of a value that passed its check.
FieldValue field_value(const Json& json, FieldKind kind) {
  switch (kind) {
    case FieldKind::boolean:
      return json.get<bool>();
    case FieldKind::integer:
      return json.get<std::int64_t>();
    case FieldKind::number:
      return json.get<double>();
    case FieldKind::text:
    case FieldKind::choice:
      return json.get<std::string>();
    case FieldKind::size:
      return static_cast<std::int64_t>(size_value(json));
    case FieldKind::bound:
      return bound_value(json);
    case FieldKind::values:
      return integers(json);
    case FieldKind::bounds:
      return ranges(json);
    case FieldKind::integers:
      return json.get<std::vector<std::int64_t>>();
    case FieldKind::texts:
      return json.get<std::vector<std::string>>();
    case FieldKind::object:
    case FieldKind::list:
    case FieldKind::batch_size:
    case FieldKind::model:
    case FieldKind::any_list:
      break;
  }
  return std::any{&json};
}

}  // namespace

void check_fields(const Json& json, const std::vector<Field>& fields, bool open, const std::string& pointer,
                  std::vector<Problem>& problems) {
  FieldCheck{problems}.object(json, fields, open, pointer);
}

void require_fields(const Json& json, const RecordBase& record, const std::string& where) {
  std::vector<Problem> problems;
  check_fields(json, record.fields, record.open, "", problems);
  for (Problem& problem : problems) problem.where = where + problem.where;
  if (!problems.empty()) throw InputError(std::move(problems));
}

void check_range_names(const Json& json, const std::vector<Field>& fields, const std::string& pointer,
                       std::vector<Problem>& problems) {
  for (const Field& field : fields) {
    const auto value = json.find(field.key);
    if (value == json.end()) continue;
    const std::string here = pointer + "/" + field.key;
    if (field.kind == FieldKind::object) check_range_names(*value, field.fields, here, problems);
    for (std::size_t i = 0; field.kind == FieldKind::list && i < value->size(); ++i) {
      check_range_names((*value)[i], field.fields, here + "/" + std::to_string(i), problems);
    }
    if (field.kind != FieldKind::bounds || field.choices.empty()) continue;
    for (const auto& [name, range] : value->items()) {
      if (std::find(field.choices.begin(), field.choices.end(), name) != field.choices.end()) continue;
      problems.push_back({here + "/" + name, "unknown key." + suggest_name(name, field.choices)});
    }
  }
}

void read_into(const Json& json, const RecordBase& record, void* section) {
  if (record.whole.store) record.whole.store(section, std::any{&json});
  for (std::size_t i = 0; i < record.fields.size(); ++i) {
    const auto value = json.find(record.fields[i].key);
    if (value == json.end()) continue;
    const FieldAccess& access = record.access[i];
    if (access.nested == nullptr) {
      if (access.store) access.store(section, field_value(*value, record.fields[i].kind));
    } else if (record.fields[i].kind == FieldKind::list) {
      if (access.store) access.store(section, {});
      if (!access.enter) continue;
      for (const Json& member : *value) read_into(member, *access.nested, access.enter(section));
    } else if (access.enter) {
      read_into(*value, *access.nested, access.enter(section));
    }
  }
}

Bytes size_value(const Json& json) {
  return json.is_string() ? parse_bytes(json.get<std::string>()).value() : json.get<Bytes>();
}

double bound_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
  return json.is_string() ? static_cast<double>(size_value(json)) : json.get<double>();
}

}  // namespace vramlab
