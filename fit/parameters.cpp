#include "fit/parameters.hpp"

#include <algorithm>

#define EIGEN_DONT_VECTORIZE  // as in policies/predictors/memory_law.hpp
#include <Eigen/Dense>
#include <fmt/format.h>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr unsigned kHighestDegree = 3;
constexpr std::uint8_t kHighestPower = 2;
constexpr std::int64_t kHowFarBeyond = 8;  // times the largest recorded value of a parameter may be asked for

void require_same_names(const std::vector<StepParameters>& shapes) {
  const auto& first = shapes[0].scalars;
  const bool same = std::all_of(shapes.begin(), shapes.end(), [&](const StepParameters& shape) {
    return std::equal(first.begin(), first.end(), shape.scalars.begin(), shape.scalars.end(),
                      [](const auto& a, const auto& b) { return a.first == b.first; });
  });
  if (same) return;
  throw InputError("", "the recorded steps have different parameters. Mark every step with all of them.");
}

// Adds the products of those that are there with a variable.
void multiply(std::vector<Monomial>& all, std::size_t variable, std::uint8_t highest_power,
              unsigned highest_degree) {
  const std::size_t before = all.size();
  for (std::size_t m = 0; m < before; ++m) {
    for (std::uint8_t power = 1; power <= highest_power; ++power) {
      Monomial product = all[m];
      product.powers[variable] = power;
      if (product.degree() <= highest_degree) all.push_back(product);
    }
  }
}

void sort_by_degree(std::vector<Monomial>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Monomial& a, const Monomial& b) { return a.degree() < b.degree(); });
}

// At most products of two different ones, and none with what counts rounds or is another in each round.
bool may_be_confused(const RecordedSpec& spec, const Monomial& monomial) {
  for (std::uint32_t v = 0; v < spec.variables.size(); ++v) {
    const bool of_loops = !spec.variables[v].is_global() ||
                          std::any_of(spec.loops.begin(), spec.loops.end(),
                                      [&](const RecordedLoop& loop) { return loop.count == v; });
    if (monomial.powers[v] > (of_loops ? 0 : 1)) return false;
  }
  return monomial.degree() <= 2;
}

}  // namespace

std::vector<std::string> names_of(const std::vector<RecordedVariable>& variables) {
  std::vector<std::string> names;
  for (const RecordedVariable& variable : variables) names.push_back(variable.name);
  return names;
}

std::vector<std::vector<std::int64_t>> monomials_by_shape(const RecordedSpec& spec) {
  std::vector<std::vector<std::int64_t>> values;
  for (const VariableValues& shape : spec.shapes) {
    auto& of_shape = values.emplace_back();
    for (const Monomial& monomial : spec.monomials) of_shape.push_back(monomial.value(shape).value_or(0));
  }
  return values;
}

void add_loop_variable(RecordedSpec& spec, RecordedVariable variable) {
  spec.variables.push_back(std::move(variable));
  for (Monomial& monomial : spec.monomials) monomial.powers.push_back(0);
  for (VariableValues& shape : spec.shapes) shape.push_back(0);
  multiply(spec.monomials, spec.variables.size() - 1, 1, kHighestDegree - 1);
  sort_by_degree(spec.monomials);
}

std::uint32_t add_part_variables(RecordedSpec& spec, std::uint32_t parameter, std::int64_t size) {
  using Kind = RecordedVariable::Kind;
  const auto count = static_cast<std::uint32_t>(spec.variables.size());
  const std::size_t part = count + 1;
  const std::string& name = spec.variables[parameter].name;
  const std::string number = name + "_parts";
  const std::string rows = name + "_of_part";
  spec.variables.push_back({.name = number, .kind = Kind::parts, .value = size, .of = parameter});
  spec.variables.push_back({.name = rows, .kind = Kind::part, .value = size, .of = parameter});
  for (VariableValues& shape : spec.shapes) {
    const std::int64_t all = shape[parameter];
    shape.push_back((all + size - 1) / size);
    shape.push_back(std::min(all, size));
  }
  for (Monomial& monomial : spec.monomials) monomial.powers.resize(spec.variables.size(), 0);
  multiply(spec.monomials, part, 1, kHighestDegree);
  std::stable_sort(spec.monomials.begin(), spec.monomials.end(), [&](const Monomial& a, const Monomial& b) {
    const unsigned rest_a = a.degree() - a.powers[part];
    const unsigned rest_b = b.degree() - b.powers[part];
    if (rest_a != rest_b) return rest_a < rest_b;
    return rest_a == 0 ? a.powers[part] < b.powers[part] : a.powers[part] > b.powers[part];
  });
  return count;
}

std::uint32_t work_product(const RecordedSpec& spec) {
  Monomial work = spec.monomials[spec.main_product];
  for (std::size_t v = 0; v < spec.variables.size(); ++v) {
    if (spec.variables[v].kind != RecordedVariable::Kind::part) continue;
    work.powers[spec.variables[v].of] = std::max(work.powers[spec.variables[v].of], work.powers[v]);
    work.powers[v] = 0;
  }
  const auto found = std::find(spec.monomials.begin(), spec.monomials.end(), work);
  return found == spec.monomials.end() ? spec.main_product
                                       : static_cast<std::uint32_t>(found - spec.monomials.begin());
}

std::uint32_t rounds_product(RecordedSpec& spec) {
  for (std::size_t v = 0; v < spec.variables.size(); ++v) {
    if (spec.variables[v].kind != RecordedVariable::Kind::parts) continue;
    Monomial rounds{std::vector<std::uint8_t>(spec.variables.size(), 0)};
    rounds.powers[v] = 1;
    const auto known = std::find(spec.monomials.begin(), spec.monomials.end(), rounds);
    const auto number = static_cast<std::uint32_t>(known - spec.monomials.begin());
    if (known == spec.monomials.end()) spec.monomials.push_back(std::move(rounds));
    return number;
  }
  return 0;
}

RecordedSpec fit_parameters(const std::vector<StepParameters>& shapes, std::vector<std::string>& warnings) {
  using Kind = RecordedVariable::Kind;
  require_same_names(shapes);
  RecordedSpec spec;
  std::vector<RecordedVariable> fixed;
  for (const auto& [name, value] : shapes[0].scalars) {
    Parameter range{name, value, value};
    for (const StepParameters& shape : shapes) {
      range.low = std::min(range.low, shape.scalars.at(name));
      range.high = std::max(range.high, shape.scalars.at(name));
    }
    if (range.low == range.high) {
      fixed.push_back({.name = name, .kind = Kind::fixed, .value = value});
    } else {
      spec.recorded.push_back(range);
      spec.parameters.push_back({name, std::min<std::int64_t>(range.low, 1), kHowFarBeyond * range.high});
    }
  }
  if (spec.recorded.empty() && fixed.empty()) {
    throw InputError(
        "", "the recorded steps have no parameters. Give them in the marks (\"params\": {\"batch\": 8}).");
  }
  if (spec.recorded.empty()) {  // one shape: its first parameter stands for it
    const bool unknown = fixed.size() == 1 && fixed[0].name == "recorded";  // nobody said what they were
    const std::string names =
        unknown ? "their parameters" : fmt::format("{}", fmt::join(names_of(fixed), ", "));
    warnings.push_back(fmt::format(
        "all recorded steps have the same parameters: the model holds for them alone. Record steps "
        "at other values of {}.",
        names));
    spec.recorded.push_back({fixed[0].name, fixed[0].value, fixed[0].value});
    spec.parameters = spec.recorded;
    fixed.erase(fixed.begin());
  }
  for (const Parameter& parameter : spec.recorded) spec.variables.push_back({.name = parameter.name});
  for (const RecordedVariable& variable : fixed) {
    spec.variables.push_back(variable);
    warnings.push_back(fmt::format(
        "{0} was {1} in every recorded step, so nothing is known of other values. To predict them record "
        "steps at two or more values of {0}.",
        variable.name, variable.value));
  }
  spec.monomials.push_back({std::vector<std::uint8_t>(spec.variables.size(), 0)});
  for (std::size_t v = 0; v < spec.recorded.size(); ++v) {
    multiply(spec.monomials, v, kHighestPower, kHighestDegree);
  }
  sort_by_degree(spec.monomials);
  for (const StepParameters& shape : shapes) {
    VariableValues& values = spec.shapes.emplace_back();
    for (const RecordedVariable& variable : spec.variables) values.push_back(shape.scalars.at(variable.name));
  }
  return spec;
}

// 1, every parameter, and every product of two different ones must be independent over the shapes, or sizes
// that follow one of them cannot be told from sizes that follow another.
void warn_of_confusion(const RecordedSpec& spec, std::vector<std::string>& warnings) {
  if (spec.shapes.size() == 1) return;
  std::vector<std::size_t> columns;
  std::vector<std::string> names;
  for (std::size_t m = 0; m < spec.monomials.size(); ++m) {
    if (!may_be_confused(spec, spec.monomials[m])) continue;
    columns.push_back(m);
    names.push_back(spec.monomials[m].text(names_of(spec.variables)));
  }
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(spec.shapes.size()),
                         static_cast<Eigen::Index>(columns.size()));
  const auto values = monomials_by_shape(spec);
  for (std::size_t s = 0; s < values.size(); ++s) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      matrix(static_cast<Eigen::Index>(s), static_cast<Eigen::Index>(c)) =
          static_cast<double>(values[s][columns[c]]);
    }
  }
  const Eigen::VectorXd scale = matrix.colwise().norm().cwiseMax(1e-9).transpose();
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(matrix * scale.cwiseInverse().asDiagonal());
  if (qr.rank() == matrix.cols()) return;
  warnings.push_back(fmt::format(
      "the {} recorded shapes do not tell these apart: {}. Record {} or more further shapes in which the "
      "parameters move independently.",
      spec.shapes.size(), fmt::join(names, ", "), matrix.cols() - qr.rank()));
}

}  // namespace vramlab
