// What the C++ library of emscripten 3.1.6 (libc++ 14) lacks of C++20, as far as vramlab uses it. Included
// before everything else, in that build alone (cmake/VramlabWeb.cmake).
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace std {

// <charconv>: floating point.

inline from_chars_result from_chars(const char* first, const char* last, double& value,
                                    chars_format format = chars_format::general) {
  const bool hex = format == chars_format::hex;
  const string_view text{first, static_cast<size_t>(last - first)};
  const string_view allowed = hex ? "0123456789abcdefABCDEF.pP+-" : "0123456789.eE+-infatyINFATY";
  string copy{text.substr(0, min(text.find_first_not_of(allowed), text.size()))};
  if (format == chars_format::fixed) copy.resize(min(copy.find_first_of("eE"), copy.size()));
  const size_t sign = copy.starts_with('-') ? 1 : 0;
  if (copy.size() == sign || copy[sign] == '+' || copy[sign] == '-') return {first, errc::invalid_argument};
  if (hex) copy.insert(sign, "0x");
  char* end = nullptr;
  errno = 0;
  const double found = strtod(copy.c_str(), &end);
  if (end == copy.c_str()) return {first, errc::invalid_argument};
  const char* const rest = first + (end - copy.c_str()) - (hex ? 2 : 0);
  if (errno == ERANGE && (found == 0 || found > 1 || found < -1)) return {rest, errc::result_out_of_range};
  value = found;
  return {rest, errc{}};
}

inline to_chars_result copied(char* first, char* last, const char* text) {
  const size_t size = strlen(text);
  if (size > static_cast<size_t>(last - first)) return {last, errc::value_too_large};
  return {static_cast<char*>(memcpy(first, text, size)) + size, errc{}};
}

inline to_chars_result to_chars(char* first, char* last, double value, chars_format format, int precision) {
  char text[400];
  const char* const form = format == chars_format::fixed     ? "%.*f"
                           : format == chars_format::general ? "%.*g"
                                                             : "%.*e";
  snprintf(text, sizeof text, form, precision, value);
  return copied(first, last, text);
}

// Hexadecimal alone, exact and without 0x.
inline to_chars_result to_chars(char* first, char* last, double value, chars_format) {
  char text[40];
  snprintf(text, sizeof text, "%a", value);
  if (char* const prefix = strstr(text, "0x")) memmove(prefix, prefix + 2, strlen(prefix + 2) + 1);
  return copied(first, last, text);
}

// The fewest digits that give the same number, and of the two notations the shorter.
inline to_chars_result to_chars(char* first, char* last, double value) {
  char scientific[40];
  int digits = 0;
  do snprintf(scientific, sizeof scientific, "%.*e", digits, value);
  while (strtod(scientific, nullptr) != value && ++digits < 17);
  const char* const exponent = strchr(scientific, 'e');
  if (exponent == nullptr) return copied(first, last, scientific);
  char fixed[400];
  snprintf(fixed, sizeof fixed, "%.*f", max(0, digits - atoi(exponent + 1)), value);
  return copied(first, last, strlen(fixed) <= strlen(scientific) ? fixed : scientific);
}

// <memory>, <bit>, <string>, <thread>.

template <class T>
unique_ptr<T> make_unique_for_overwrite(size_t size) {
  return unique_ptr<T>(new remove_extent_t<T>[size]);
}

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}

inline strong_ordering operator<=>(const string& a, const string& b) noexcept { return a.compare(b) <=> 0; }

template <class T>
auto operator<=>(const vector<T>& a, const vector<T>& b) {
  common_comparison_category_t<decltype(a[0] <=> b[0]), strong_ordering> order = strong_ordering::equal;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if ((order = a[i] <=> b[i]) != 0) return order;
  }
  return order = a.size() <=> b.size();
}

/// There are no threads here; nobody asks for a second one.
struct jthread {
  template <class Work>
  explicit jthread(Work work) {
    work();
  }
};

// <algorithm>: ranges and projections.

namespace ranges {

template <class Compare, class Projection>
auto by(Compare& compare, Projection& projection) {
  return [&](auto&& a, auto&& b) -> bool {
    return invoke(compare, invoke(projection, a), invoke(projection, b));
  };
}

#define VRAMLAB_TESTING(name)                                                                \
  template <class Range, class Test, class Projection = identity>                            \
  auto name(Range&& range, Test test, Projection projection = {}) {                          \
    return std::name(begin(range), end(range),                                               \
                     [&](auto&& x) -> bool { return invoke(test, invoke(projection, x)); }); \
  }
VRAMLAB_TESTING(all_of)
VRAMLAB_TESTING(any_of)
VRAMLAB_TESTING(none_of)
VRAMLAB_TESTING(count_if)
VRAMLAB_TESTING(find_if)
VRAMLAB_TESTING(partition_point)
#undef VRAMLAB_TESTING

#define VRAMLAB_COMPARING(name)                                                \
  template <class Range, class Compare = less, class Projection = identity>    \
  requires requires(Range & range) { begin(range); }                           \
  auto name(Range&& range, Compare compare = {}, Projection projection = {}) { \
    return std::name(begin(range), end(range), by(compare, projection));       \
  }
VRAMLAB_COMPARING(sort)
VRAMLAB_COMPARING(stable_sort)
VRAMLAB_COMPARING(max_element)
VRAMLAB_COMPARING(min_element)
#undef VRAMLAB_COMPARING

template <class Iterator, class Compare = less, class Projection = identity>
requires requires(Iterator place) { *++place; }
Iterator max_element(Iterator first, Iterator last, Compare compare = {}, Projection projection = {}) {
  return std::max_element(first, last, by(compare, projection));
}

template <class Range, class Compare = less, class Projection = identity>
auto max(Range&& range, Compare compare = {}, Projection projection = {}) {
  return *std::max_element(begin(range), end(range), by(compare, projection));
}

template <class T>
T max(initializer_list<T> values) {
  return std::max(values);
}

template <class Range, class Value, class Projection = identity>
auto find(Range&& range, const Value& value, Projection projection = {}) {
  return std::find_if(begin(range), end(range),
                      [&](auto&& x) -> bool { return invoke(projection, x) == value; });
}

template <class Range, class Value, class Projection = identity>
auto count(Range&& range, const Value& value, Projection projection = {}) {
  return std::count_if(begin(range), end(range),
                       [&](auto&& x) -> bool { return invoke(projection, x) == value; });
}

template <class Range, class Value, class Compare = less, class Projection = identity>
auto lower_bound(Range&& range, const Value& value, Compare compare = {}, Projection projection = {}) {
  return std::partition_point(begin(range), end(range), [&](auto&& x) -> bool {
    return invoke(compare, invoke(projection, x), value);
  });
}

template <class Range, class Value, class Compare = less, class Projection = identity>
auto upper_bound(Range&& range, const Value& value, Compare compare = {}, Projection projection = {}) {
  return std::partition_point(begin(range), end(range), [&](auto&& x) -> bool {
    return !invoke(compare, value, invoke(projection, x));
  });
}

template <class Range, class Value, class Compare = less, class Projection = identity>
bool binary_search(Range&& range, const Value& value, Compare compare = {}, Projection projection = {}) {
  const auto found = ranges::lower_bound(range, value, compare, projection);
  return found != end(range) && !invoke(compare, value, invoke(projection, *found));
}

template <class A, class B, class Same = equal_to>
bool equal(const A& a, const B& b, Same same = {}) {
  return std::equal(begin(a), end(a), begin(b), end(b), same);
}

template <class A, class B>
bool is_permutation(const A& a, const B& b) {
  return std::is_permutation(begin(a), end(a), begin(b), end(b));
}

template <class Range, class Compare = less, class Projection = identity>
auto nth_element(Range&& range, decltype(begin(range)) nth, Compare compare = {},
                 Projection projection = {}) {
  std::nth_element(begin(range), nth, end(range), by(compare, projection));
  return end(range);
}

template <class Value>
struct least_and_most {
  Value min;
  Value max;
};

template <class Range, class Compare = less, class Projection = identity>
auto minmax(Range&& range, Compare compare = {}, Projection projection = {}) {
  const auto [least, most] = std::minmax_element(begin(range), end(range), by(compare, projection));
  return least_and_most<decay_t<decltype(*least)>>{*least, *most};
}

template <class A, class B>
struct both_places {
  A in1;
  B in2;
};

template <class A, class B>
auto mismatch(A&& a, B&& b) {
  const auto [in_a, in_b] = std::mismatch(begin(a), end(a), begin(b), end(b));
  return both_places<decay_t<decltype(in_a)>, decay_t<decltype(in_b)>>{in_a, in_b};
}

template <class A, class B, class Out>
Out set_intersection(const A& a, const B& b, Out out) {
  return std::set_intersection(begin(a), end(a), begin(b), end(b), out);
}

template <class A, class B>
bool includes(const A& a, const B& b) {
  return std::includes(begin(a), end(a), begin(b), end(b));
}

template <class Range>
auto reverse(Range&& range) {
  std::reverse(begin(range), end(range));
  return end(range);
}

template <class Range, class Out>
Out copy(Range&& range, Out out) {
  return std::copy(begin(range), end(range), out);
}

template <class Range, class Out, class Test>
Out copy_if(Range&& range, Out out, Test test) {
  return std::copy_if(begin(range), end(range), out, test);
}

template <class Range, class Out>
Out move(Range&& range, Out out) {
  return std::move(begin(range), end(range), out);
}

template <class Range, class Out, class Change>
Out transform(Range&& range, Out out, Change change) {
  return std::transform(begin(range), end(range), out, [&](auto&& x) { return invoke(change, x); });
}

template <class Range, class Old, class New>
void replace(Range&& range, const Old& from, const New& to) {
  std::replace_if(
      begin(range), end(range), [&](auto&& x) { return x == from; }, to);
}

}  // namespace ranges

// What the trees of g++'s library (ext/pb_ds) take of the rest of that library.

namespace tr1 {
using namespace std;
}

template <class T>
struct __is_integer {
  enum { __value = is_integral_v<T> };
};

}  // namespace std

namespace __gnu_cxx {
template <class T>
struct __numeric_traits {
  static constexpr T __min = std::numeric_limits<T>::min();
  static constexpr T __max = std::numeric_limits<T>::max();
};
}  // namespace __gnu_cxx

#define _GLIBCXX_BEGIN_NAMESPACE_VERSION
#define _GLIBCXX_END_NAMESPACE_VERSION
#define _GLIBCXX_VISIBILITY(kind)
#define _GLIBCXX_CONSTEXPR constexpr
#define _GLIBCXX20_CONSTEXPR
#define _GLIBCXX_NODISCARD [[nodiscard]]
#define _GLIBCXX_THROW_OR_ABORT(error) throw error
#define _GLIBCXX_DEBUG_ONLY(statement)
#define _GLIBCXX_DEBUG_ASSERT(condition)
#define _EXT_NUMERIC_TRAITS 1  // the header of that
#define __N(text) text
#define __try try
#define __catch catch
#define __throw_exception_again throw
