// How a row of a table reaches the member of its section: stores a checked value, gives the default, enters a
// nested part.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/records/field.hpp"
#include "core/units.hpp"

namespace vramlab {

struct RecordBase;

/// The way to a member of a section whose type is not known here. Functions may be empty.
struct FieldAccess {
  /// Puts a value there. For a list: makes it be there, empty as yet; `value` is not looked at.
  std::function<void(void* section, const FieldValue& value)> store{};
  /// What stands there; empty if nothing does.
  std::function<std::optional<FieldValue>(const void* section)> load{};
  /// Objects and lists: the part to fill, of a list a new member.
  std::function<void*(void* section)> enter{};
  const RecordBase* nested = nullptr;  ///< objects and lists: the table of the part

  /// The same from an outer section; `way` leads from its address to that of the inner one.
  [[nodiscard]] FieldAccess from(std::function<void*(void*)> way) const;
};

/// The types that members may have as they are; std::optional of them, too, which has no default.
template <class T>
struct FieldType;

template <class T, FieldKind Kind, class Stored = T>
struct PlainFieldType {
  static constexpr FieldKind kind = Kind;
  static T from(const FieldValue& value) { return static_cast<T>(std::get<Stored>(value)); }
  static std::optional<FieldValue> to(const T& value) { return FieldValue{static_cast<Stored>(value)}; }
};

// clang-format off
template <> struct FieldType<bool> : PlainFieldType<bool, FieldKind::boolean> {};
template <> struct FieldType<std::int32_t> : PlainFieldType<std::int32_t, FieldKind::integer, std::int64_t> {};
template <> struct FieldType<std::uint32_t> : PlainFieldType<std::uint32_t, FieldKind::integer, std::int64_t> {};
template <> struct FieldType<std::int64_t> : PlainFieldType<std::int64_t, FieldKind::integer> {};
template <> struct FieldType<Bytes> : PlainFieldType<Bytes, FieldKind::size, std::int64_t> {};
template <> struct FieldType<double> : PlainFieldType<double, FieldKind::number> {};
template <> struct FieldType<std::string> : PlainFieldType<std::string, FieldKind::text> {};
template <> struct FieldType<std::vector<std::int64_t>> : PlainFieldType<std::vector<std::int64_t>, FieldKind::integers> {};
template <> struct FieldType<std::vector<std::string>> : PlainFieldType<std::vector<std::string>, FieldKind::texts> {};
template <> struct FieldType<NamedIntegers> : PlainFieldType<NamedIntegers, FieldKind::values> {};
template <> struct FieldType<NamedRanges> : PlainFieldType<NamedRanges, FieldKind::bounds> {};
// clang-format on

/// Seconds in the file. The end of time is not a default: it means never.
template <>
struct FieldType<SimTime> {
  static constexpr FieldKind kind = FieldKind::number;
  static SimTime from(const FieldValue& value) { return from_seconds(std::get<double>(value)); }
  static std::optional<FieldValue> to(SimTime time) {
    return time == SimTime::max() ? std::nullopt : std::optional<FieldValue>{to_seconds(time)};
  }
};

template <class T>
struct FieldType<std::optional<T>> {
  static constexpr FieldKind kind = FieldType<T>::kind;
  static std::optional<T> from(const FieldValue& value) { return FieldType<T>::from(value); }
  static std::optional<FieldValue> to(const std::optional<T>& value) {
    return value ? FieldType<T>::to(*value) : std::nullopt;
  }
};

/// The member behind a row: made from a pointer to a member of a type above, or by a function below.
template <class Section>
struct Member {
  FieldKind kind = FieldKind::text;
  FieldAccess access;
  std::vector<std::string> choices;

  Member(FieldKind of, FieldAccess how, std::vector<std::string> words = {})
      : kind(of), access(std::move(how)), choices(std::move(words)) {}

  template <class T, class Base>
  requires std::derived_from<Section, Base> Member(
      T Base::*member)  // NOLINT(google-explicit-constructor): a row names its member
      : Member(FieldType<T>::kind, {.store =
                                        [member](void* section, const FieldValue& value) {
                                          static_cast<Section*>(section)->*member = FieldType<T>::from(value);
                                        },
                                    .load = [member](const void* section) -> std::optional<FieldValue> {
                                      return FieldType<T>::to(static_cast<const Section*>(section)->*member);
                                    }}) {}

  template <class Base>
  requires(std::derived_from<Section, Base> && !std::same_as<Section, Base>) Member(
      Member<Base> other)  // NOLINT(google-explicit-constructor): a base's member is one of the section
      : Member(other.kind, other.access.from([](void* section) -> void* {
          return static_cast<Base*>(static_cast<Section*>(section));
        }),
               std::move(other.choices)) {}
};

/// A member of a member: `within(&Setup::loss, &Loss::alpha)`.
template <class Section, class Inner>
Member<Section> within(Inner Section::*inner, std::type_identity_t<Member<Inner>> member) {
  return {member.kind, member.access.from([inner](void* section) -> void* {
            return &(static_cast<Section*>(section)->*inner);
          }),
          std::move(member.choices)};
}

/// A member of a type above whose value looks otherwise: `as(FieldKind::integer, &Scenario::seed)`, or a text
/// that is one of `words`.
template <class Section, class T>
Member<Section> as(FieldKind kind, T Section::*member, std::vector<std::string> words = {}) {
  return {kind, Member<Section>{member}.access, std::move(words)};
}

template <auto Pointer>
struct MemberOf;
template <class Owner, class T, T Owner::*Pointer>
struct MemberOf<Pointer> {
  using Section = Owner;
  using Type = T;
};

/// An enum whose enumerators count from 0 in the order of `words`, or a bool: `one_of<&Options::rule>(…)`.
template <auto Pointer>
auto one_of(std::vector<std::string> words) {
  using Section = typename MemberOf<Pointer>::Section;
  using Type = typename MemberOf<Pointer>::Type;
  FieldAccess access{.store =
                         [words](void* section, const FieldValue& value) {
                           const auto at =
                               std::find(words.begin(), words.end(), std::get<std::string>(value));
                           static_cast<Section*>(section)->*Pointer = static_cast<Type>(at - words.begin());
                         },
                     .load = [words](const void* section) -> std::optional<FieldValue> {
                       const auto value = static_cast<const Section*>(section)->*Pointer;
                       return words.at(static_cast<std::size_t>(value));
                     }};
  return Member<Section>{FieldKind::choice, std::move(access), std::move(words)};
}

/// A key that is only checked: nothing of the section keeps it.
template <class Section>
Member<Section> unkept(FieldKind kind, std::vector<std::string> words = {}) {
  return {kind, {}, std::move(words)};
}

/// A member that keeps a number in another unit than the file: thousandths, seconds for milliseconds.
template <class Section, class T>
Member<Section> converted(T Section::*member, std::type_identity_t<std::function<T(double)>> from,
                          std::type_identity_t<std::function<double(T)>> to) {
  return {FieldKind::number,
          {.store =
               [=](void* section, const FieldValue& value) {
                 static_cast<Section*>(section)->*member = from(std::get<double>(value));
               },
           .load = [=](const void* section) -> std::optional<FieldValue> {
             return to(static_cast<const Section*>(section)->*member);
           }}};
}

/// A value that the reader passes on as it stands: what it puts into the `std::any` is a `T`.
template <class Section, class T>
Member<Section> raw(FieldKind kind, T Section::*member) {
  return {kind, {.store = [member](void* section, const FieldValue& value) {
            static_cast<Section*>(section)->*member = std::any_cast<T>(std::get<std::any>(value));
          }}};
}

}  // namespace vramlab
