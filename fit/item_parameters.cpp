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

}  // namespace

RecordedItems::RecordedItems(const std::vector<StepParameters>& shapes) : shapes_(shapes) {
  for (const auto& [name, values] : shapes[0].lists) fields_.push_back(name);
  find_kind_names();
  for (const StepParameters& shape : shapes) read_items(shape);
}

// A parameter whose name is a word of the lists counts the items of that kind.
void RecordedItems::find_kind_names() {
  std::set<std::string> words;
  for (const StepParameters& shape : shapes_) {
    for (const auto& [name, values] : shape.words) words.insert(values.begin(), values.end());
  }
  for (const auto& [name, value] : shapes_[0].scalars) {
    if (words.contains(name)) kind_names_.push_back(name);
  }
  if (!kind_names_.empty()) return;
  throw InputError("",
                   "the marks list items, but no parameter counts them. Give each item a kind "
                   "(\"tasks\": [\"short\", \"long\"]) and the number of each (\"short\": 1, \"long\": 1).");
}

void RecordedItems::read_items(const StepParameters& shape) {
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

FitParameters RecordedItems::first_parameters(std::vector<std::string>& warnings) const {
  std::vector<StepParameters> counts(shapes_.size());
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    for (const std::string& name : kind_names_) counts[s].scalars[name] = shapes_[s].scalars.at(name);
    for (const auto& [name, value] : shapes_[s].scalars) {
      const bool constant =
          std::all_of(shapes_.begin(), shapes_.end(), [&, &key = name, &one = value](const auto& other) {
            const auto found = other.scalars.find(key);
            return found != other.scalars.end() && found->second == one;
          });
      if (constant) counts[s].scalars[name] = value;
    }
  }
  FitParameters parameters = fit_parameters(counts, warnings);
  parameters.variables.push_back({.name = "items", .kind = VariableKind::items});
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    parameters.shapes[s].push_back(static_cast<std::int64_t>(items(s)));
  }
  return parameters;
}

std::uint32_t RecordedItems::item_count(const FitParameters& parameters) const {
  return static_cast<std::uint32_t>(parameters.variables.size() - 1);
}

std::size_t RecordedItems::item_at(const RecordedLoop& loop, std::size_t shape, std::size_t round) const {
  const std::size_t item = round + static_cast<std::size_t>(loop.skipped);
  return loop.from_last ? items(shape) - 1 - item : item;
}

// Sizes of the loop's allocation number `place` in a shape, round by round; empty if it has none there.
std::vector<Bytes> RecordedItems::round_sizes(std::int32_t loop, std::size_t place,
                                              const ShapeProgram& program) {
  std::size_t seen = 0;
  for (const ShapeAllocation& one : program.allocations) {
    if (one.loop == loop && seen++ == place) return one.sizes;
  }
  return {};
}

// Whether the loop's allocation number `place` follows a field or the kind of its item, in every round of
// every shape. Empty if the loop goes round an item that is not there.
std::optional<bool> RecordedItems::place_follows(const RecordedLoop& loop, std::int32_t number,
                                                 std::size_t place,
                                                 const std::vector<ShapeProgram>& programs) const {
  struct Seen {
    Bytes size = 0;
    std::size_t shape = 0;
    std::size_t item = 0;
  };
  std::optional<Seen> first;
  std::set<Bytes> sizes;
  std::map<std::size_t, Bytes> size_of_kind;
  std::vector<bool> by_field(fields_.size(), true);
  bool by_kind = true;
  for (std::size_t s = 0; s < programs.size(); ++s) {
    const std::vector<Bytes> rounds = round_sizes(number, place, programs[s]);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      const std::size_t item = item_at(loop, s, round);
      if (item >= items(s)) return std::nullopt;
      const Bytes size = rounds[round];
      if (!first) first = {size, s, item};
      sizes.insert(size);
      by_kind = by_kind && size_of_kind.try_emplace(kinds_[s][item], size).first->second == size;
      for (std::size_t f = 0; f < fields_.size(); ++f) {
        const auto here = static_cast<Bytes>(values_[s][f][item]);
        const auto there = static_cast<Bytes>(values_[first->shape][f][first->item]);
        by_field[f] = by_field[f] && size * there == first->size * here;
      }
    }
  }
  return sizes.size() > 1 && (by_kind || std::find(by_field.begin(), by_field.end(), true) != by_field.end());
}

// How many allocations of the loop follow a field or the kind of their item.
std::size_t RecordedItems::follows(const RecordedLoop& loop, std::int32_t number,
                                   const std::vector<ShapeProgram>& programs) const {
  std::size_t body = 0;
  for (const ShapeProgram& program : programs) {
    body = std::max(body, static_cast<std::size_t>(
                              std::count_if(program.allocations.begin(), program.allocations.end(),
                                            [&](const ShapeAllocation& one) { return one.loop == number; })));
  }
  std::size_t count = 0;
  for (std::size_t place = 0; place < body; ++place) {
    const std::optional<bool> does = place_follows(loop, number, place, programs);
    if (!does) return 0;
    count += *does ? 1 : 0;
  }
  return count;
}

std::size_t RecordedItems::largest_shape() const {
  const auto fewer = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  return static_cast<std::size_t>(std::max_element(kinds_.begin(), kinds_.end(), fewer) - kinds_.begin());
}

std::vector<Bytes> RecordedItems::sizes_by_kind(const RecordedLoop& loop, std::size_t allocation,
                                                const std::vector<ShapeProgram>& programs) const {
  std::vector<Bytes> sizes(kind_names_.size(), 0);
  const std::size_t largest = largest_shape();
  const ShapeAllocation& one = programs[largest].allocations[allocation];
  for (std::size_t round = 0; round < one.sizes.size(); ++round) {
    Bytes& size = sizes[kinds_[largest][item_at(loop, largest, round)]];
    if (size != 0 && size != one.sizes[round]) return {};
    size = one.sizes[round];
  }
  if (std::count(sizes.begin(), sizes.end(), Bytes{0}) > 0) return {};
  return std::set<Bytes>(sizes.begin(), sizes.end()).size() > 1 ? sizes : std::vector<Bytes>{};
}

void RecordedItems::find_kind_field(const std::vector<RecordedLoop>& loops,
                                    const std::vector<ShapeProgram>& programs) {
  const std::size_t largest = largest_shape();
  for (std::size_t a = 0; a < programs[largest].allocations.size(); ++a) {
    const std::int32_t loop = programs[largest].allocations[a].loop;
    if (loop < 0) continue;
    const std::vector<Bytes> sizes = sizes_by_kind(loops[static_cast<std::size_t>(loop)], a, programs);
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

void RecordedItems::complete(FitParameters& parameters, std::vector<RecordedLoop>& loops,
                             const std::vector<ShapeProgram>& programs, std::vector<std::string>& warnings) {
  for (std::size_t l = 0; l < loops.size(); ++l) {
    std::size_t best = 0;
    RecordedLoop chosen = loops[l];
    for (const bool from_last : {false, true}) {
      for (std::int64_t skipped = 0; skipped <= -loops[l].plus; ++skipped) {
        RecordedLoop candidate = loops[l];
        candidate.from_last = from_last;
        candidate.skipped = skipped;
        const std::size_t score = follows(candidate, static_cast<std::int32_t>(l), programs);
        if (score <= best) continue;
        best = score;
        chosen = candidate;
      }
    }
    loops[l] = chosen;
  }
  find_kind_field(loops, programs);
  add_derived(parameters, warnings);
}

RecordedConditions RecordedItems::conditions(std::size_t shape) const {
  RecordedConditions conditions;
  for (const std::string& name : kind_names_) conditions.point.push_back(shapes_[shape].scalars.at(name));
  conditions.fields = values_[shape];
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

void RecordedItems::add_most(FitParameters& parameters, const std::string& name,
                             std::vector<std::string>& warnings) const {
  // the last field, if one was found by kind, with any weight beside the first with weight 1
  RecordedVariable variable{.name = name, .kind = VariableKind::most};
  for (std::int64_t weight = 0; weight <= kLargestWeight; ++weight) {
    bool right = true;
    for (std::size_t s = 0; s < shapes_.size() && right; ++s) {
      std::int64_t most = 0;
      for (std::size_t item = 0; item < items(s); ++item) {
        most =
            std::max(most, values_[s][0][item] + (fields_.size() > 1 ? weight * values_[s].back()[item] : 0));
      }
      right = most == shapes_[s].scalars.at(name);
    }
    if (!right) continue;
    variable.weights.assign(fields_.size(), 0);
    variable.weights[0] = 1;
    if (fields_.size() > 1) variable.weights.back() = weight;
    parameters.variables.push_back(variable);
    return;
  }
  warnings.push_back(name + " moves, and is not a largest value over the items; sizes cannot follow it.");
}

void RecordedItems::add_derived(FitParameters& parameters, std::vector<std::string>& warnings) const {
  const auto add = [&](const std::string& name, VariableKind kind, std::size_t field) {
    RecordedVariable variable{
        .name = name, .kind = kind, .weights = std::vector<std::int64_t>(fields_.size(), 0)};
    variable.weights[field] = 1;
    parameters.variables.push_back(std::move(variable));
  };
  for (const auto& [name, value] : shapes_[0].scalars) {
    const bool known = std::any_of(parameters.variables.begin(), parameters.variables.end(),
                                   [&key = name](const RecordedVariable& v) { return v.name == key; });
    if (!known) add_most(parameters, name, warnings);
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) add("sum_" + fields_[f], VariableKind::sum, f);
  const std::size_t globals = parameters.variables.size();
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    add("first_" + fields_[f], VariableKind::first_item, f);
    add("last_" + fields_[f], VariableKind::last_item, f);
    add("item_" + fields_[f], VariableKind::item, f);
  }
  set_products(parameters, globals);
  RecordedSpec spec;
  spec.parameters = parameters.recorded;
  spec.variables = parameters.variables;
  spec.fields = fields_;
  spec.monomials = parameters.monomials;
  for (std::size_t s = 0; s < shapes_.size(); ++s) {
    const RecordedConditions asked = conditions(s);
    parameters.shapes[s] = RecordedValues(spec, asked).variables();
  }
}

// 1, every variable but the counts by kind, and pairs of those that describe the whole step: the first
// `globals`.
void RecordedItems::set_products(FitParameters& parameters, std::size_t globals) {
  const std::size_t all = parameters.variables.size();
  parameters.monomials.assign(1, Monomial{std::vector<std::uint8_t>(all, 0)});
  const auto product = [&](std::initializer_list<std::size_t> variables) {
    Monomial monomial{std::vector<std::uint8_t>(all, 0)};
    for (const std::size_t v : variables) ++monomial.powers[v];
    parameters.monomials.push_back(std::move(monomial));
  };
  std::vector<std::size_t> whole;
  for (std::size_t v = parameters.recorded.size(); v < all; ++v) {
    if (parameters.variables[v].kind == VariableKind::fixed) continue;
    product({v});
    if (v < globals) whole.push_back(v);
  }
  for (std::size_t a = 0; a < whole.size(); ++a) {
    for (std::size_t b = a + 1; b < whole.size(); ++b) product({whole[a], whole[b]});
  }
}

}  // namespace vramlab
