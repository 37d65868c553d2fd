#include "lab/advise/units.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr std::size_t kMostPlacesNamed = 8;
constexpr Bytes kLeastLeaf = 20;    // the same of a single call that calls no others: a normalisation
constexpr Bytes kLeastPart = 1000;  // a unit that saves less than one in so many bytes is not worth a row
// A call that is not repeated and saves no more than one in so many bytes is one unit, whatever it calls.
constexpr Bytes kSmallUnit = 20;

using UnitKey = std::pair<std::uint32_t, std::uint32_t>;  // place and number

std::vector<ModelUnit> units_from(const ModelParts& parts, const std::vector<std::uint32_t>& calls) {
  std::map<UnitKey, ModelUnit> found;
  std::vector<UnitKey> order;
  for (const std::uint32_t number : calls) {
    const Call& call = parts.calls.calls[number];
    const UnitKey key{call.place, call.number};
    const auto [unit, is_new] = found.try_emplace(key, ModelUnit{call.place, call.number, {}});
    if (is_new) order.push_back(key);
    if (!parts.memory[number].saved.empty()) unit->second.calls.push_back(number);
  }
  std::vector<ModelUnit> units;
  for (const UnitKey& key : order) {
    if (!found[key].calls.empty()) units.push_back(std::move(found[key]));
  }
  return units;
}

/// Goes inwards from the outermost calls.
class UnitChoice {
 public:
  explicit UnitChoice(const ModelParts& parts) : parts_(parts), inner_(parts.calls.calls.size()) {
    const std::vector<Call>& calls = parts.calls.calls;
    for (std::uint32_t i = 0; i < calls.size(); ++i)
      (calls[i].parent == kNoCall ? outermost_ : inner_[calls[i].parent]).push_back(i);
    for (const std::uint32_t call : outermost_) all_[calls[call].pass] += bytes(call);
  }

  std::vector<std::uint32_t> choose() {
    enter(outermost_);
    std::ranges::sort(chosen_);
    return std::move(chosen_);
  }

 private:
  [[nodiscard]] Bytes bytes(std::uint32_t call) const { return parts_.memory[call].bytes; }

  [[nodiscard]] bool calls_others(std::uint32_t call) const { return parts_.calls.calls[call].has_calls; }

  // A layer is one of several calls from a line, in one call, and no more than half of all.
  void enter(const std::vector<std::uint32_t>& siblings) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> repeats;  // by pass and place
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> layers;   // that call others
    for (const std::uint32_t call : siblings) {
      ++repeats[group_of(call)];
      if (calls_others(call)) ++layers[group_of(call)];
    }
    for (const std::uint32_t call : siblings) {
      const Bytes all = all_[parts_.calls.calls[call].pass];
      const bool alone = !calls_others(call) && repeats[group_of(call)] == 1;
      if ((alone ? kLeastLeaf : kLeastPart) * bytes(call) < all || bytes(call) == 0) continue;
      const bool layer = layers[group_of(call)] > 1 && calls_others(call) && 2 * bytes(call) <= all;
      const bool deeper = std::ranges::any_of(inner_[call], [&](auto inner) { return calls_others(inner); });
      const bool small = kSmallUnit * bytes(call) <= all;
      if (layer || !deeper || small) {
        chosen_.push_back(call);
      } else {
        enter(inner_[call]);
      }
    }
  }
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> group_of(std::uint32_t call) const {
    return {parts_.calls.calls[call].pass, parts_.calls.calls[call].place};
  }

  const ModelParts& parts_;
  std::vector<std::uint32_t> outermost_;
  std::vector<std::vector<std::uint32_t>> inner_;  ///< by call
  std::map<std::uint32_t, Bytes> all_;             ///< by pass
  std::vector<std::uint32_t> chosen_;
};

struct NamedRepeats {
  std::string place;
  std::set<std::uint32_t> numbers;  ///< empty = all
};

[[noreturn]] void refuse_numbers(const std::string& text, const std::string& option) {
  throw InputError(option, '"' + text + "\": behind the # stand numbers of repeats, as in #0,2,5-8.");
}

std::uint32_t read_number(std::string_view text, const std::string& whole, const std::string& option) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number > 1'000'000)
    refuse_numbers(whole, option);
  return number;
}

NamedRepeats read_repeats(const std::string& text, const std::string& option) {
  NamedRepeats named;
  const std::size_t hash = text.find('#');
  named.place = text.substr(0, hash);
  if (hash == std::string::npos) return named;
  std::string_view list = std::string_view{text}.substr(hash + 1);
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view range = list.substr(0, comma);
    if (range.starts_with('#')) range.remove_prefix(1);
    const std::size_t dash = range.find('-');
    const std::uint32_t first = read_number(range.substr(0, dash), text, option);
    const std::uint32_t last =
        dash == std::string_view::npos ? first : read_number(range.substr(dash + 1), text, option);
    if (last < first) refuse_numbers(text, option);
    for (std::uint32_t number = first; number <= last; ++number) named.numbers.insert(number);
    if (comma == std::string_view::npos) return named;
    list.remove_prefix(comma + 1);
  }
}

bool has_place(const ModelParts& parts, const std::string& place) {
  return std::ranges::find(parts.calls.places, place) != parts.calls.places.end();
}

// "model.layers" stands for all of "model.layers.*", and "model.layers.3" for the fourth.
void find_module(const ModelParts& parts, NamedRepeats& named) {
  if (has_place(parts, named.place)) return;
  for (const char* const end : {".*", " *", "_*", "*"}) {
    if (!has_place(parts, named.place + end)) continue;
    named.place += end;
    return;
  }
  const std::size_t last = named.place.find_last_not_of("0123456789");
  const std::string list = named.place.substr(0, last == std::string::npos ? 0 : last + 1) + '*';
  if (!has_place(parts, list) || list.size() > named.place.size()) return;
  std::uint32_t number = 0;
  const char* const end = named.place.data() + named.place.size();
  const auto [read, error] = std::from_chars(named.place.data() + list.size() - 1, end, number);
  if (error != std::errc{} || read != end || !named.numbers.empty()) return;
  named.place = list;
  named.numbers.insert(number);
}

// Those that hold most, by the calls of one place together.
std::string known_places(const ModelParts& parts) {
  std::map<std::uint32_t, std::pair<Bytes, std::uint32_t>> places;  // bytes, repeats
  for (std::size_t i = 0; i < parts.calls.calls.size(); ++i) {
    const Call& call = parts.calls.calls[i];
    if (parts.memory[i].bytes == 0) continue;
    auto& [bytes, repeats] = places[call.place];
    bytes += parts.memory[i].bytes;
    repeats = std::max(repeats, call.number + 1);
  }
  std::vector<std::tuple<Bytes, std::uint32_t, std::uint32_t>> sorted;  // bytes, place, repeats
  for (const auto& [place, held] : places) sorted.emplace_back(held.first, place, held.second);
  std::ranges::sort(sorted, std::ranges::greater{});
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostPlacesNamed); ++i) {
    const auto& [bytes, place, repeats] = sorted[i];
    text += (i == 0 ? "" : ", ") + parts.calls.places[place];
    if (repeats > 1) text += fmt::format(" (#0 to #{})", repeats - 1);
  }
  if (sorted.size() > kMostPlacesNamed) text += fmt::format(" and {} more", sorted.size() - kMostPlacesNamed);
  return text;
}

}  // namespace

ModelParts parts_of(const ClientProgram& program) {
  ModelParts parts{.lifetimes = lifetimes_of(program), .uses = uses_of(program), .calls = {}, .memory = {}};
  parts.calls = calls_of(program, parts.lifetimes, parts.uses);
  parts.memory = memory_of_calls(program, parts.lifetimes, parts.uses, parts.calls);
  return parts;
}

std::string name_of(const ModelParts& parts, const ModelUnit& unit) {
  return parts.calls.places[unit.place] + '#' + std::to_string(unit.number);
}

std::vector<ModelUnit> advised_units(const ModelParts& parts) {
  return units_from(parts, UnitChoice(parts).choose());
}

std::vector<ModelUnit> named_units(const ModelParts& parts, const std::string& text,
                                   std::optional<std::uint32_t> every, const std::string& option) {
  const std::string known = known_places(parts);
  if (known.empty()) {
    throw InputError(option,
                     "no part of this program is known to keep anything for a backward pass. Record "
                     "whole steps, with torch.cuda.memory._record_memory_history(stacks=\"python\").");
  }
  NamedRepeats named = read_repeats(text, option);
  find_module(parts, named);
  std::vector<std::uint32_t> calls;
  std::set<std::uint32_t> missing = named.numbers;
  bool is_place = false;
  for (std::uint32_t i = 0; i < parts.calls.calls.size(); ++i) {
    const Call& call = parts.calls.calls[i];
    if (parts.calls.places[call.place] != named.place) continue;
    is_place = true;
    missing.erase(call.number);
    if (!named.numbers.empty() && !named.numbers.contains(call.number)) continue;
    if (!every || call.number % *every == 0) calls.push_back(i);
  }
  if (!is_place)
    throw InputError(option, '"' + named.place + "\" is no call of this program. It has " + known + '.');
  if (!missing.empty()) {
    throw InputError(
        option, fmt::format("\"{}\" has no repeat #{}. It has {}.", named.place, *missing.begin(), known));
  }
  std::vector<ModelUnit> units = units_from(parts, calls);
  if (units.empty()) {
    throw InputError(option, '"' + text +
                                 "\" keeps nothing for backward that could be computed again: what it "
                                 "makes is its output, or is computed again already. It has " +
                                 known + '.');
  }
  return units;
}

std::vector<std::uint32_t> outer_calls(const ModelParts& parts, const std::vector<ModelUnit>& units) {
  std::set<std::uint32_t> all;
  for (const ModelUnit& unit : units) all.insert(unit.calls.begin(), unit.calls.end());
  std::vector<std::uint32_t> outer;
  for (const std::uint32_t call : all) {
    std::uint32_t parent = parts.calls.calls[call].parent;
    while (parent != kNoCall && !all.contains(parent)) parent = parts.calls.calls[parent].parent;
    if (parent == kNoCall) outer.push_back(call);
  }
  return outer;
}

RecomputedProgram recomputed_program(const ClientProgram& program, const std::vector<std::string>& texts,
                                     std::optional<std::uint32_t> every) {
  const ModelParts parts = parts_of(program);
  std::vector<ModelUnit> units;
  for (const std::string& text : texts)
    std::ranges::move(named_units(parts, text, every, "--recompute"), std::back_inserter(units));
  RecomputedProgram recomputed;
  std::vector<TreatedCall> treated;
  for (const std::uint32_t call : outer_calls(parts, units)) {
    treated.push_back({&parts.memory[call], Treatment::recompute});
    recomputed.written += parts.memory[call].written;
  }
  recomputed.program = program_as_if(program, parts.lifetimes, treated);
  recomputed.parts = names_of(parts.calls.places, units);
  recomputed.calls = treated.size();
  return recomputed;
}

std::string names_of(const std::vector<std::string>& places, const std::vector<ModelUnit>& units) {
  std::map<std::uint32_t, std::set<std::uint32_t>> numbers;
  for (const ModelUnit& unit : units) numbers[unit.place].insert(unit.number);
  std::string text;
  for (const auto& [place, of_place] : numbers) {
    text += (text.empty() ? "" : "; ") + places[place];
    std::string list;
    for (auto first = of_place.begin(); first != of_place.end();) {
      auto last = first;
      std::uint32_t run = 1;
      for (auto next = std::next(last); next != of_place.end() && *next == *last + 1; ++next, ++run)
        last = next;
      const bool range = run > 2;
      if (!range) last = first;
      list += fmt::format("{} #{}", list.empty() ? "" : ",", *first);
      if (range) list += fmt::format("-#{}", *last);
      first = std::next(last);
    }
    text += list;
  }
  return text;
}

}  // namespace vramlab
