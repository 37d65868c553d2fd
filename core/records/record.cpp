#include "core/records/record.hpp"

namespace vramlab {
namespace {

bool is_within(const Field& field, const FieldValue& value) {
  if (!field.is_bounded()) return true;
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  const double found = integer != nullptr  ? static_cast<double>(*integer)
                       : number != nullptr ? *number
                                           : field.low;
  return found >= field.low && found <= field.high;
}

// An empty list is what a list that is left out is anyway.
bool is_told(const FieldValue& value) {
  return std::holds_alternative<bool>(value) || std::holds_alternative<std::int64_t>(value) ||
         std::holds_alternative<double>(value) || std::holds_alternative<std::string>(value);
}

}  // namespace

FieldAccess FieldAccess::from(std::function<void*(void*)> way) const {
  FieldAccess outer{.nested = nested};
  if (store) {
    outer.store = [way, inner = store](void* section, const FieldValue& value) {
      inner(way(section), value);
    };
  }
  if (load) {
    outer.load = [way, inner = load](const void* section) { return inner(way(const_cast<void*>(section))); };
  }
  if (enter) outer.enter = [way, inner = enter](void* section) { return inner(way(section)); };
  return outer;
}

void RecordBase::add(Field field, FieldAccess way, const void* defaults) {
  if (way.load && !field.required) {
    auto value = way.load(defaults);
    if (value && is_told(*value) && is_within(field, *value)) field.default_value = std::move(value);
  }
  if (way.nested != nullptr) {
    field.fields = way.nested->fields;
    field.open = way.nested->open;
  }
  fields.push_back(std::move(field));
  access.push_back(std::move(way));
}

}  // namespace vramlab
