#include "cli/diff_models.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/diff/difference.hpp"
#include "lab/model/file.hpp"
#include "lab/model/prediction.hpp"

namespace vramlab {
namespace {

using Align = Table::Align;

std::string signed_size(std::int64_t bytes) {
  if (bytes == 0) return "0";
  return fmt::format("{}{}", bytes < 0 ? "-" : "+", format_bytes(static_cast<Bytes>(std::abs(bytes))));
}

void add_row(Table& table, const LawDifference& row) {
  table.add_row({row.law, format_bytes(row.a), format_bytes(row.b), signed_size(row.growth()),
                 fmt::format("{:+}", row.growth()), fmt::format("{}", row.count_a),
                 fmt::format("{}", row.count_b)});
}

Table laws_table(const std::vector<LawDifference>& rows, const LawDifference& total, std::size_t top) {
  Table table{{{"law", Align::left}, {"A"}, {"B"}, {"growth"}, {"bytes"}, {"tensors A"}, {"tensors B"}}};
  LawDifference others;
  std::size_t hidden = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (top == 0 || i < top || rows.size() == top + 1) {
      add_row(table, rows[i]);
      continue;
    }
    ++hidden;
    others = {"", others.a + rows[i].a, others.b + rows[i].b, others.count_a + rows[i].count_a,
              others.count_b + rows[i].count_b};
  }
  others.law = fmt::format("({} others)", hidden);
  if (hidden > 0) add_row(table, others);
  add_row(table, total);
  return table;
}

bool has(const WorkloadModel& model, const std::string& name) {
  return model.parameters().find(name).has_value();
}

// B starts at A's values, so that equal names mean equal values.
void settle(PredictionQuestion& a, PredictionQuestion& b, const std::vector<std::string>& settings) {
  for (std::size_t p = 0; p < a.point.size(); ++p) {
    const std::string& name = a.model->parameters().parameters[p].name;
    if (has(*b.model, name)) b.set(fmt::format("{}={}", name, a.point[p]));
  }
  for (const std::string& setting : settings) {
    const std::string name = setting.substr(0, setting.find('='));
    const bool only_b = !has(*a.model, name) && has(*b.model, name);
    const bool only_a = has(*a.model, name) && !has(*b.model, name);
    if (!only_b) a.set(setting);
    if (!only_a) b.set(setting);
  }
}

Json point_json(const PredictionQuestion& question) {
  Json json = Json::object();
  for (std::size_t p = 0; p < question.point.size(); ++p) {
    json[question.model->parameters().parameters[p].name] = question.point[p];
  }
  return json;
}

std::string point_text(const PredictionQuestion& question) {
  std::string text;
  const Json point = point_json(question);
  for (const auto& [name, value] : point.items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.dump());
  }
  return text;
}

Json row_json(const LawDifference& row) {
  return {{"law", row.law},           {"a_bytes", row.a},
          {"b_bytes", row.b},         {"growth_bytes", row.growth()},
          {"a_tensors", row.count_a}, {"b_tensors", row.count_b}};
}

Json rows_json(const std::vector<LawDifference>& rows) {
  Json json = Json::array();
  for (const LawDifference& row : rows) json.push_back(row_json(row));
  return json;
}

}  // namespace

Json diff_models(const std::string& a, const std::string& b, const std::vector<std::string>& settings,
                 std::size_t top, Output& output) {
  const auto model_a = load_model_file(a);
  const auto model_b = load_model_file(b);
  PredictionQuestion at_a(*model_a);
  PredictionQuestion at_b(*model_b);
  settle(at_a, at_b, settings);
  const ModelDifference difference = compare_models(*model_a, at_a.point, *model_b, at_b.point);
  const LawDifference& peak = difference.peak_total;
  output.line(fmt::format("A settled step holds {} at most in A and {} in B ({}, as requested).",
                          format_bytes(peak.a), format_bytes(peak.b), signed_size(peak.growth())));
  output.line(fmt::format("A = {} at {}, B = {} at {}", a, point_text(at_a), b, point_text(at_b)));
  output.line("\nat the peak of a step");
  output.table(laws_table(difference.peak, difference.peak_total, top));
  output.line("\nall that a step allocates");
  output.table(laws_table(difference.step, difference.step_total, top));
  return {{"kind", "models"},
          {"a", a},
          {"b", b},
          {"parameters", {{"a", point_json(at_a)}, {"b", point_json(at_b)}}},
          {"peak", row_json(difference.peak_total)},
          {"peak_by_law", rows_json(difference.peak)},
          {"step", row_json(difference.step_total)},
          {"step_by_law", rows_json(difference.step)}};
}

}  // namespace vramlab
