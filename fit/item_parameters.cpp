#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "fit/parameters.hpp"
#include "models/recorded_program.hpp"

namespace vramlab {
namespace {

using VariableKind = RecordedVariable::Kind;
constexpr std::int64_t kLargestWeight = 4096;  // of a field in a padded length

// A parameter whose name is a word of the lists counts the items of that kind.
std::vector<std::string> find_kind_names(const std::vector<StepParameters>& shapes) {
  std::set<std::string> words;
  for (const StepParameters& shape : shapes) {
    for (const auto& [name, values] : shape.words) words.insert(values.begin(), values.end());
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : shapes[0].scalars) {
    if (words.contains(name)) names.push_back(name);
  }
  if (!names.empty()) return names;
  throw InputError("",
                   "the marks list items, but no parameter counts them. Give each item a kind "
                   "(\"tasks\": [\"short\", \"long\"]) and the number of each (\"short\": 1, \"long\": 1).");
}

// 1, every variable but the counts by kind, and pairs of those that describe the whole step: the first
// `globals`.
std::vector<Monomial> products_of(const RecordedSpec& spec, std::size_t globals) {
  const std::size_t all = spec.variables.size();
  std::vector<Monomial> products;
  const auto add = [&](std::initializer_list<std::size_t> variables) {
    Monomial& product = products.emplace_back(Monomial{std::vector<std::uint8_t>(all, 0)});
    for (const std::size_t v : variables) ++product.powers[v];
  };
  std::vector<std::size_t> whole;
  add({});
  for (std::size_t v = spec.recorded.size(); v < all; ++v) {
    if (spec.variables[v].kind == VariableKind::fixed) continue;
    add({v});
    if (v < globals) whole.push_back(v);
  }
  for (std::size_t a = 0; a < whole.size(); ++a) {
    for (std::size_t b = a + 1; b < whole.size(); ++b) add({whole[a], whole[b]});
  }
  return products;
}

}  // namespace

RecordedItems::RecordedItems(const std::vector<StepParameters>& shapes)
    : shapes_(shapes), kind_names_(find_kind_names(shapes)) {
  for (const auto& [name, values] : shapes[0].lists) fields_.push_back(name);
  for (const StepParameters& shape : shapes) {
    if (shape.words.size() != 1 || shape.lists.size() != fields_.size()) {
      throw InputError("", "every step needs one list of kinds and the same lists of numbers.");
    }
    auto& kinds = kinds_.emplace_back();
    for (const std::string& word : shape.words.begin()->second) {
      const auto kind = std::find(kind_names_.begin(), kind_names_.end(), word);
      if (kind == kind_names_.end())
        throw InputError("", "no parameter counts items of kind \"" + word + "\".");
      kinds.push_back(static_cast<std::size_t>(kind - kind_names_.begin()));
    }
    auto& values = values_.emplace_back();
    for (const std::string& field : fields_) {
      const auto list = shape.lists.find(field);
      if (list == shape.lists.end() || list->second.size() != kinds.size()) {
        throw InputError("", '"' + field + "\" has not one entry an item in every step.");
      }
      values.push_back(list->second);
    }
    for (std::size_t k = 0; k < kind_names_.size(); ++k) {
      if (std::count(kinds.begin(), kinds.end(), k) == shape.scalars.at(kind_names_[k])) continue;
      throw InputError(
          "", "the number of items of kind \"" + kind_names_[k] + "\" is not what the parameter says.");
    }
  }
}

RecordedSpec RecordedItems::first_parameters(std::vector<std::string>& warnings) const {
  std::vector<std::string> names = kind_names_;
  for (const auto& [name, value] : shapes_[0].scalars) {
    const bool constant =
        std::all_of(shapes_.begin(), shapes_.end(), [&, &key = name, &one = value](const auto& other) {
          const auto found = other.scalars.find(key);
          return found != other.scalars.end() && found->second == one;
        });
    if (constant) names.push_back(name);
  }
  std::vector<StepParameters> counts(shapes_.size());
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    for (const std::string& name : names) counts[s].scalars[name] = shapes_[s].scalars.at(name);
  }
  RecordedSpec spec = fit_parameters(counts, warnings);
  spec.variables.push_back({.name = "items", .kind = VariableKind::items});
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    spec.shapes[s].push_back(static_cast<std::int64_t>(items(s)));
  }
  return spec;
}

std::size_t RecordedItems::item_at(const RecordedLoop& loop, std::size_t shape, std::size_t round) const {
  const std::size_t item = round + static_cast<std::size_t>(loop.skipped);
  return loop.from_last ? items(shape) - 1 - item : item;
}

// By place in the body of the loop; empty if it goes round an item that is not there.
std::vector<std::vector<RecordedItems::Seen>> RecordedItems::seen_in(
    const RecordedLoop& loop, std::int32_t number, const std::vector<ShapeProgram>& programs) const {
  std::vector<std::vector<Seen>> places;
  for (std::size_t s = 0; s < programs.size(); ++s) {
    std::size_t place = 0;
    for (const ShapeAllocation& one : programs[s].allocations) {
      if (one.loop != number) continue;
      if (place == places.size()) places.emplace_back();
      for (std::size_t round = 0; round < one.sizes.size(); ++round) {
        const std::size_t item = item_at(loop, s, round);
        if (item >= items(s)) return {};
        places[place].push_back({one.sizes[round], s, item});
      }
      ++place;
    }
  }
  return places;
}

// Whether sizes differ, and follow a field or the kind of their item.
bool RecordedItems::follows_items(const std::vector<Seen>& seen) const {
  const Seen& first = seen[0];
  std::map<std::size_t, Bytes> size_of_kind;
  bool same = true;
  bool by_kind = true;
  std::vector<bool> by_field(fields_.size(), true);
  for (const Seen& one : seen) {
    const std::size_t kind = kinds_[one.shape][one.item];
    same = same && one.size == first.size;
    by_kind = by_kind && size_of_kind.try_emplace(kind, one.size).first->second == one.size;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const auto here = static_cast<Bytes>(values_[one.shape][f][one.item]);
      const auto there = static_cast<Bytes>(values_[first.shape][f][first.item]);
      by_field[f] = by_field[f] && one.size * there == first.size * here;
    }
  }
  return !same && (by_kind || std::find(by_field.begin(), by_field.end(), true) != by_field.end());
}

std::size_t RecordedItems::largest_shape() const {
  const auto fewer = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  return static_cast<std::size_t>(std::max_element(kinds_.begin(), kinds_.end(), fewer) - kinds_.begin());
}

// Of what a loop allocates in the largest shape; empty if a kind has none or several, or all have the same.
std::vector<Bytes> RecordedItems::sizes_by_kind(const RecordedLoop& loop, const ShapeAllocation& one) const {
  std::vector<Bytes> sizes(kind_names_.size(), 0);
  const std::size_t largest = largest_shape();
  for (std::size_t round = 0; round < one.sizes.size(); ++round) {
    Bytes& size = sizes[kinds_[largest][item_at(loop, largest, round)]];
    if (size != 0 && size != one.sizes[round]) return {};
    size = one.sizes[round];
  }
  if (std::count(sizes.begin(), sizes.end(), Bytes{0}) > 0) return {};
  return std::count(sizes.begin(), sizes.end(), sizes[0]) < std::ssize(sizes) ? sizes : std::vector<Bytes>{};
}

void RecordedItems::find_kind_field(const std::vector<RecordedLoop>& loops,
                                    const std::vector<ShapeProgram>& programs) {
  for (const ShapeAllocation& one : programs[largest_shape()].allocations) {
    if (one.loop < 0) continue;
    const std::vector<Bytes> sizes = sizes_by_kind(loops[static_cast<std::size_t>(one.loop)], one);
    if (sizes.empty()) continue;
    Bytes unit = 0;
    for (const Bytes size : sizes) unit = std::gcd(unit, size);
    fields_.emplace_back("units");
    for (std::size_t s = 0; s < shapes_.size(); ++s) {
      auto& column = values_[s].emplace_back();
      for (const std::size_t kind : kinds_[s])
        column.push_back(static_cast<std::int64_t>(sizes[kind] / unit));
    }
    return;
  }
}

void RecordedItems::complete(RecordedSpec& spec, const std::vector<ShapeProgram>& programs,
                             std::vector<std::string>& warnings) {
  for (std::size_t l = 0; l < spec.loops.size(); ++l) {
    std::ptrdiff_t best = 0;
    const RecordedLoop found = spec.loops[l];
    for (const bool from_last : {false, true}) {
      for (std::int64_t skipped = 0; skipped <= -found.plus; ++skipped) {
        const RecordedLoop candidate{found.count, found.plus, from_last, skipped};
        const auto places = seen_in(candidate, static_cast<std::int32_t>(l), programs);
        const auto follow = std::count_if(places.begin(), places.end(),
                                          [&](const auto& seen) { return follows_items(seen); });
        if (follow <= best) continue;
        best = follow;
        spec.loops[l] = candidate;
      }
    }
  }
  find_kind_field(spec.loops, programs);
  spec.fields = fields_;
  spec.item_kinds = kinds();
  add_derived(spec, warnings);
}

RecordedConditions RecordedItems::conditions(std::size_t shape) const {
  RecordedConditions conditions{{}, values_[shape]};
  for (const std::string& name : kind_names_) conditions.point.push_back(shapes_[shape].scalars.at(name));
  return conditions;
}

std::vector<RecordedItemKind> RecordedItems::kinds() const {
  std::vector<RecordedItemKind> result;
  for (std::size_t k = 0; k < kind_names_.size(); ++k) {
    RecordedItemKind kind{static_cast<std::uint32_t>(k), {}};
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      auto& column = kind.columns.emplace_back();
      for (std::size_t s = 0; s < shapes_.size(); ++s) {
        for (std::size_t item = 0; item < items(s); ++item) {
          if (kinds_[s][item] == k) column.push_back(values_[s][f][item]);
        }
      }
      // a column that is the same throughout needs one entry
      if (std::adjacent_find(column.begin(), column.end(), std::not_equal_to<>()) == column.end())
        column.resize(1);
    }
    result.push_back(std::move(kind));
  }
  return result;
}

void RecordedItems::add_most(RecordedSpec& spec, const std::string& name,
                             std::vector<std::string>& warnings) const {
  // the last field, if one was found by kind, with any weight beside the first with weight 1
  const std::int64_t largest_weight = fields_.size() > 1 ? kLargestWeight : 0;
  for (std::int64_t weight = 0; weight <= largest_weight; ++weight) {
    bool right = true;
    for (std::size_t s = 0; s < shapes_.size() && right; ++s) {
      std::int64_t most = 0;
      for (std::size_t item = 0; item < items(s); ++item) {
        const std::int64_t further = fields_.size() > 1 ? weight * values_[s].back()[item] : 0;
        most = std::max(most, values_[s][0][item] + further);
      }
      right = most == shapes_[s].scalars.at(name);
    }
    if (!right) continue;
    std::vector<std::int64_t> weights(fields_.size(), 0);
    weights.back() = weight;
    weights[0] = 1;
    spec.variables.push_back({.name = name, .kind = VariableKind::most, .weights = std::move(weights)});
    return;
  }
  warnings.push_back(name + " moves, and is not a largest value over the items; sizes cannot follow it.");
}

void RecordedItems::add_derived(RecordedSpec& spec, std::vector<std::string>& warnings) const {
  const auto add = [&](const std::string& name, VariableKind kind, std::size_t field) {
    std::vector<std::int64_t> weights(fields_.size(), 0);
    weights[field] = 1;
    spec.variables.push_back({.name = name + fields_[field], .kind = kind, .weights = std::move(weights)});
  };
  for (const auto& [name, value] : shapes_[0].scalars) {
    const std::vector<std::string> known = names_of(spec.variables);
    if (std::find(known.begin(), known.end(), name) == known.end()) add_most(spec, name, warnings);
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) add("sum_", VariableKind::sum, f);
  const std::size_t globals = spec.variables.size();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    add("first_", VariableKind::first_item, f);
    add("last_", VariableKind::last_item, f);
    add("item_", VariableKind::item, f);
  }
  spec.monomials = products_of(spec, globals);
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const RecordedConditions asked = conditions(s);
    spec.shapes[s] = RecordedValues(spec, asked).variables();
  }
}

}  // namespace vramlab
