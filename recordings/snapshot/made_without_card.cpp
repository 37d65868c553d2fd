#include "recordings/snapshot/made_without_card.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "recordings/exact_json.hpp"

namespace vramlab {
namespace {

using nlohmann::json;

constexpr Bytes kMostOfCard = Bytes{1} << 50;  // above any card
constexpr std::array<std::string_view, 3> kHow{"measured", "law", "assumed"};

/// A member of an object, and where it stands.
template <class Value>
Value member(const json& object, const std::string& where, const std::string& key) {
  if (!object.is_object()) throw InputError(where, "is not an object in { }.");
  if (!object.contains(key)) throw InputError(where + '/' + key, "is missing.");
  try {
    return exact<Value>(object.at(key));
  } catch (const InputError& error) {
    throw InputError(where + '/' + key, error.problems().front().what);
  }
}

SuppliedPart read_part(const json& object, const std::string& where) {
  SuppliedPart part{.name = member<std::string>(object, where, "name"),
                    .how = member<std::string>(object, where, "how"),
                    .source = member<std::string>(object, where, "source"),
                    .allocations = member<std::uint64_t>(object, where, "allocations"),
                    .bytes = member<Bytes>(object, where, "bytes")};
  if (std::find(kHow.begin(), kHow.end(), part.how) == kHow.end()) {
    throw InputError(where + "/how", '"' + part.how + "\" is none of measured, law and assumed.");
  }
  return part;
}

}  // namespace

MadeWithoutCard parse_made_without_card(std::string_view text, const std::string& name) {
  const std::string where = name + ": /made_without_card";
  const json read = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (read.is_discarded()) throw InputError(where, "is not valid JSON.");
  MadeWithoutCard made{.card = member<std::string>(read, where, "card"),
                       .total_memory = member<Bytes>(read, where, "total_memory"),
                       .torch = member<std::string>(read, where, "torch"),
                       .empty_caches = member<std::vector<std::size_t>>(read, where, "empty_caches"),
                       .parts = {}};
  if (made.total_memory > kMostOfCard)
    throw InputError(where + "/total_memory", "is more than any card has.");
  const std::vector<std::size_t>& emptied = made.empty_caches;
  if (std::adjacent_find(emptied.begin(), emptied.end(), std::greater_equal<>()) != emptied.end()) {
    throw InputError(where + "/empty_caches", "is not in order of the history, each entry once.");
  }
  if (!read.contains("parts") || !read.at("parts").is_array()) {
    throw InputError(where + "/parts", "is missing, or is no list.");
  }
  for (std::size_t i = 0; i < read.at("parts").size(); ++i) {
    made.parts.push_back(read_part(read.at("parts")[i], where + "/parts/" + std::to_string(i)));
  }
  return made;
}

std::string made_sentence(const MadeWithoutCard& made) {
  return "Made without a card, with PyTorch's fake tensors" +
         (made.torch.empty() ? "" : " (" + made.torch + ")") + ", as on one " + made.card +
         ": order and sizes of the requests are the program's. Addresses and times are made up, so only a "
         "recording on a card can confirm it.";
}

std::vector<std::string> sentences_of(const MadeWithoutCard& made) {
  std::vector<std::string> sentences{made_sentence(made)};
  for (const SuppliedPart& part : made.parts) {
    const std::string how = part.how == "law" ? "By law" : part.how == "assumed" ? "Assumed" : "Measured";
    sentences.push_back(how + ": " + part.name + ", " + std::to_string(part.allocations) +
                        (part.allocations == 1 ? " allocation" : " allocations") + ", at most " +
                        format_bytes(part.bytes) + " at once: " + part.source + '.');
  }
  return sentences;
}

}  // namespace vramlab
