// A section of a file, or of options, declared once: each row names a key, the member that keeps its value,
// unit, range and help. The default is that of a default-constructed section. Checks, help, documents, the
// JSON schema and reading follow from the rows; a reader keeps only the rules between keys.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/records/field.hpp"
#include "core/records/member.hpp"

namespace vramlab {

/// A table whose section has no type: what checks, documents and readers of any format walk over.
struct RecordBase {
  std::vector<Field> fields;
  std::vector<FieldAccess> access;  ///< one a field
  bool open = false;                ///< further keys are allowed
  FieldAccess whole;                ///< `store` gets the whole object as it stands; may be empty

 protected:
  void add(Field field, FieldAccess way, const void* defaults);
};

/// One key of a section.
template <class Section>
struct Row {
  std::string key;
  Member<Section> member;
  std::string unit{};  ///< may be empty
  double low = 0;      ///< integers, numbers and sizes; both 0: no bounds
  double high = 0;
  std::string help{};  ///< one sentence, without the default
  bool required = false;
};

/// The last word of a row without which an object is not complete.
inline constexpr bool kRequired = true;

/// The table of a section. A default outside the row's range stands for "left out", and is not told.
template <class Section>
struct Record : RecordBase {
  Record(std::initializer_list<Row<Section>> rows) : Record(std::vector<Row<Section>>(rows)) {}

  explicit Record(const std::vector<Row<Section>>& rows) {
    const auto defaults =
        std::make_unique<const Section>();  // large ones on the stack make g++ 12 warn wrongly
    for (const Row<Section>& row : rows) {
      add({.key = row.key,
           .kind = row.member.kind,
           .help = row.help,
           .required = row.required,
           .low = row.low,
           .high = row.high,
           .choices = row.member.choices,
           .unit = row.unit},
          row.member.access, defaults.get());
    }
  }

  /// Of objects that may have further keys; `takes` gets each of them as it stands.
  Record(const std::vector<Row<Section>>& rows, Member<Section> takes) : Record(rows) {
    open = true;
    whole = std::move(takes.access);
  }
};

/// The rows of several lists, of the section itself and of its bases, as rows of the section.
template <class Section, class... Lists>
std::vector<Row<Section>> joined(const Lists&... lists) {
  std::vector<Row<Section>> rows;
  const auto add = [&rows](const auto& list) {
    for (const auto& row : list) {
      rows.push_back(
          {row.key, Member<Section>{row.member}, row.unit, row.low, row.high, row.help, row.required});
    }
  };
  (add(lists), ...);
  return rows;
}

/// An object of its own, always there or not.
template <class Section, class Part>
Member<Section> object_of(Part Section::*member, const Record<Part>& record) {
  return {FieldKind::object,
          {.enter = [member](void* section) -> void* { return &(static_cast<Section*>(section)->*member); },
           .nested = &record}};
}
template <class Section, class Part>
Member<Section> object_of(std::optional<Part> Section::*member, const Record<Part>& record) {
  return {FieldKind::object,
          {.enter = [member](void* section) -> void* {
             return &(static_cast<Section*>(section)->*member).emplace();
           },
           .nested = &record}};
}

/// A list of objects, empty where the key is missing, or absent then.
template <class Section, class Part>
Member<Section> list_of(std::vector<Part> Section::*member, const Record<Part>& record) {
  return {FieldKind::list,
          {.store = [member](void* section,
                             const FieldValue&) { (static_cast<Section*>(section)->*member).clear(); },
           .enter = [member](void* section) -> void* {
             return &(static_cast<Section*>(section)->*member).emplace_back();
           },
           .nested = &record}};
}
template <class Section, class Part>
Member<Section> list_of(std::optional<std::vector<Part>> Section::*member, const Record<Part>& record) {
  return {FieldKind::list,
          {.store = [member](void* section,
                             const FieldValue&) { (static_cast<Section*>(section)->*member).emplace(); },
           .enter = [member](void* section) -> void* {
             return &(static_cast<Section*>(section)->*member)->emplace_back();
           },
           .nested = &record}};
}

/// A list of objects that is only checked here, and read elsewhere by the same table.
template <class Section>
Member<Section> unkept_list(const RecordBase& record) {
  return {FieldKind::list, {.nested = &record}};
}

/// An object with any keys, which is not kept, or read elsewhere.
template <class Section>
Member<Section> unkept_object() {
  static const Record<Section> any{{}, unkept<Section>(FieldKind::object)};
  return {FieldKind::object, {.nested = &any}};
}

/// An object whose keys are members of the same section.
template <class Section>
Member<Section> group_of(const Record<Section>& record) {
  return {FieldKind::object, {.enter = [](void* section) { return section; }, .nested = &record}};
}

}  // namespace vramlab
