// What the C functions share: how a description in JSON is read, which policies there are, what a reading
// says, and how errors are kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "capi/vramlab.h"
#include "capi/vramlab_policy.h"
#include "core/error.hpp"
#include "core/observation.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

using Json = nlohmann::ordered_json;

/// Why the last call of this thread failed.
inline thread_local std::string last_error;

/// Does `work`; no exception may leave a C function. Returns 0, or 1 after setting `last_error`.
template <class Work>
int guarded(const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "failed, and threw what is not a std::exception.";
  }
  return 1;
}

/// Throws InputError for a null pointer.
void require(const void* given, const char* what);

/// Throws InputError unless `text` is a JSON object.
Json parse_object(const char* text, const std::string& what);

/// Members of `json`. Throw InputError at `where`/`key` for another type, the first also if there is none.
std::int64_t whole_number(const Json& json, const char* key, const std::string& where);
std::int64_t whole_number_or(const Json& json, const char* key, std::int64_t otherwise,
                             const std::string& where = {});
Bytes bytes_or(const Json& json, const char* key, Bytes otherwise, const std::string& where = {});
bool flag_or(const Json& json, const char* key, bool otherwise);
std::string text_of(const Json& json, const char* key, const std::string& where = {});

/// "use", "profile" and, as options, all keys but "plugins" and those of `others`. Throws InputError.
PolicyChoice read_choice(const Json& json, std::initializer_list<std::string_view> others);

/// The built-in policies, those in the folders of VRAMLAB_PLUGIN_PATH, and those of the files in "plugins".
/// Throws InputError.
std::shared_ptr<const PolicySet> policies_for(const Json& json);

/// What a job asks for; `cards` is the key of its number of cards.
Json demand_json(const JobDemand& demand, const char* cards);

/// {NAME: number}. Throws PolicyFault.
std::string statistics_text(const Policy& policy);

/// A size that a program computed below 0 comes here as one of nearly 2^64. Throws InputError for it.
Bytes checked_size(std::uint64_t bytes, const char* name);

/// 0, 1 or 2 as a result. Throws InputError for anything else.
StepResult step_result(std::int32_t code, const char* what);

/// What `count` cards say; the first one's step and time count. Throws InputError for no card, a device
/// without memory, and sizes and times that cannot be.
Observation observation_of(const vramlab_step* cards, std::uint64_t count, CardsRule rule);

/// The list `key`; of unsigned numbers alone where `Number` is whole. Throws InputError.
template <class Number>
std::vector<Number> numbers_of(const Json& json, const char* key) {
  const auto fits = [](const Json& one) {
    if constexpr (std::is_integral_v<Number>) {
      return one.is_number_unsigned() && one.get<std::uint64_t>() <= std::numeric_limits<Number>::max();
    } else {
      return one.is_number();
    }
  };
  const bool known = json.contains(key) && json[key].is_array() && std::ranges::all_of(json[key], fits);
  if (!known) throw InputError(std::string{"/"} + key, "must be a list of numbers.");
  return json[key].get<std::vector<Number>>();
}

/// The word for `value` in a list in which each stands at its own number, and back. The second throws
/// InputError.
template <class Value>
const char* word_for(Value value, std::initializer_list<const char*> words) {
  return words.begin()[static_cast<std::size_t>(value)];
}

template <class Value>
Value value_of(const std::string& word, std::initializer_list<const char*> words, const std::string& where) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (word == words.begin()[i]) return static_cast<Value>(i);
  }
  throw InputError(where, "\"" + word + "\" is not known." +
                              suggest_name(word, std::vector<std::string>(words.begin(), words.end())));
}

/// What `work` makes, in `owner.text`; null if it fails.
template <class Owner, class Work>
const char* text_from(Owner* owner, const char* what, const Work& work) {
  const int failed = guarded([&] {
    require(owner, what);
    owner->text = work();
  });
  return failed != 0 ? nullptr : owner->text.c_str();
}

/// `known` and the policy that `json` describes, behind the guard that policies of plugins have; another
/// program answers for it through `call` (capi/vramlab.h), as long as the set, or anything made by it, lives.
/// Throws InputError for a wrong description and for a name that is taken.
std::shared_ptr<const PolicySet> with_callback_policy(const std::shared_ptr<const PolicySet>& known,
                                                      const Json& json, vramlab_policy_call call,
                                                      void* context);

}  // namespace vramlab
