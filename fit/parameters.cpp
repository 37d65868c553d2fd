#include "fit/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <Eigen/Dense>

#include "core/error.hpp"

namespace vramlab {
namespace {

constexpr unsigned kHighestDegree = 3;
constexpr std::uint8_t kHighestPower = 2;

std::vector<std::string> scalar_names(const std::vector<StepParameters>& shapes) {
  std::vector<std::string> names;
  for (const auto& [name, value] : shapes[0].scalars) names.push_back(name);
  for (const StepParameters& shape : shapes) {
    std::vector<std::string> others;
    for (const auto& [name, value] : shape.scalars) others.push_back(name);
    if (others == names) continue;
    throw InputError("", "the recorded steps have different parameters. Mark every step with all of them.");
  }
  return names;
}

// All products of the moving variables up to the highest degree, the number 1 first.
std::vector<Monomial> products(std::size_t variables, std::size_t moving) {
  std::vector<Monomial> all{Monomial{std::vector<std::uint8_t>(variables, 0)}};
  for (std::size_t v = 0; v < moving; ++v) {
    const std::size_t before = all.size();
    for (std::size_t m = 0; m < before; ++m) {
      for (std::uint8_t power = 1; power <= kHighestPower; ++power) {
        Monomial product = all[m];
        product.powers[v] = power;
        if (product.degree() <= kHighestDegree) all.push_back(product);
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Monomial& a, const Monomial& b) { return a.degree() < b.degree(); });
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool uses_loop_variable(const FitParameters& fit, const std::vector<std::uint8_t>& powers) {
  for (std::size_t v = 0; v < powers.size(); ++v) {
    if (powers[v] > 0 && !fit.variables[v].is_global()) return true;
  }
  return false;
}

}  // namespace

std::vector<std::int64_t> FitParameters::monomial_values(const VariableValues& values) const {
  std::vector<std::int64_t> result;
  for (const Monomial& monomial : monomials) result.push_back(monomial.value(values).value_or(0));
  return result;
}

void FitParameters::add_loop_variable(RecordedVariable variable) {
  variables.push_back(std::move(variable));
  for (Monomial& monomial : monomials) monomial.powers.push_back(0);
  for (VariableValues& shape : shapes) shape.push_back(0);
  const std::size_t before = monomials.size();
  for (std::size_t m = 0; m < before; ++m) {
    Monomial product = monomials[m];
    product.powers.back() = 1;
    if (product.degree() < kHighestDegree) monomials.push_back(product);
  }
  std::stable_sort(monomials.begin(), monomials.end(),
                   [](const Monomial& a, const Monomial& b) { return a.degree() < b.degree(); });
}

FitParameters fit_parameters(const std::vector<StepParameters>& shapes, std::vector<std::string>& warnings) {
  FitParameters fit;
  std::vector<std::string> fixed;
  for (const std::string& name : scalar_names(shapes)) {
    Parameter range{name, shapes[0].scalars.at(name), shapes[0].scalars.at(name)};
    for (const StepParameters& shape : shapes) {
      range.low = std::min(range.low, shape.scalars.at(name));
      range.high = std::max(range.high, shape.scalars.at(name));
    }
    if (range.low == range.high) {
      fixed.push_back(name);
    } else {
      fit.recorded.push_back(range);
    }
  }
  if (fit.recorded.empty() && fixed.empty()) {
    throw InputError(
        "", "the recorded steps have no parameters. Give them in the marks (\"params\": {\"batch\": 8}).");
  }
  if (fit.recorded.empty()) {  // one shape: its first parameter stands for it
    const std::int64_t value = shapes[0].scalars.at(fixed[0]);
    fit.recorded.push_back({fixed[0], value, value});
    warnings.push_back(
        "all recorded steps have the same parameters: the model holds for them alone. Record "
        "steps at other values of " +
        joined(fixed) + ".");
    fixed.erase(fixed.begin());
  }
  using Kind = RecordedVariable::Kind;
  for (const Parameter& parameter : fit.recorded) fit.variables.push_back({parameter.name, Kind::parameter});
  for (const std::string& name : fixed) {
    fit.variables.push_back({.name = name, .kind = Kind::fixed, .value = shapes[0].scalars.at(name)});
    warnings.push_back(name + " was " + std::to_string(shapes[0].scalars.at(name)) +
                       " in every recorded step, so nothing is known of other values. To predict them record "
                       "steps at two or more values of " +
                       name + ".");
  }
  fit.monomials = products(fit.variables.size(), fit.recorded.size());
  for (const StepParameters& shape : shapes) {
    VariableValues values;
    for (const RecordedVariable& variable : fit.variables) values.push_back(shape.scalars.at(variable.name));
    fit.shapes.push_back(values);
  }
  return fit;
}

// 1, every parameter, and every product of two different ones must be independent over the shapes, or sizes
// that follow one of them cannot be told from sizes that follow another.
void warn_of_confusion(const FitParameters& fit, const std::vector<std::uint32_t>& counters,
                       std::vector<std::string>& warnings) {
  std::vector<std::size_t> columns;
  std::vector<std::string> names;
  std::vector<std::string> variable_names;
  for (const RecordedVariable& variable : fit.variables) variable_names.push_back(variable.name);
  for (std::size_t m = 0; m < fit.monomials.size(); ++m) {
    const auto& powers = fit.monomials[m].powers;
    if (fit.monomials[m].degree() > 2 ||
        std::any_of(powers.begin(), powers.end(), [](auto p) { return p > 1; })) {
      continue;
    }
    if (std::any_of(counters.begin(), counters.end(), [&](std::uint32_t v) { return powers[v] > 0; }))
      continue;
    if (uses_loop_variable(fit, powers)) continue;
    columns.push_back(m);
    names.push_back(fit.monomials[m].text(variable_names));
  }
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(fit.shapes.size()),
                         static_cast<Eigen::Index>(columns.size()));
  for (std::size_t s = 0; s < fit.shapes.size(); ++s) {
    const auto values = fit.monomial_values(fit.shapes[s]);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      matrix(static_cast<Eigen::Index>(s), static_cast<Eigen::Index>(c)) =
          static_cast<double>(values[columns[c]]);
    }
  }
  const Eigen::VectorXd scale = matrix.colwise().norm().cwiseMax(1e-9).transpose();
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> qr(matrix * scale.cwiseInverse().asDiagonal());
  if (qr.rank() == matrix.cols() || fit.shapes.size() == 1) return;
  warnings.push_back("the " + std::to_string(fit.shapes.size()) +
                     " recorded shapes do not tell these apart: " + joined(names) + ". Record " +
                     std::to_string(matrix.cols() - qr.rank()) +
                     " or more further shapes in which the parameters move independently.");
}

}  // namespace vramlab
