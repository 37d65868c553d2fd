#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "lab/experiment.hpp"
#include "lab/kinds/regression/spec.hpp"
#include "lab/scenario/schema.hpp"

namespace vramlab {
namespace {

using Judgements = std::vector<Judgement>;

constexpr ValueRange kAnything{};

double is(bool truth) { return truth ? 1 : 0; }

template <class Value>
double over_devices(const Judgements& judgements, const Value& value) {
  double sum = 0;
  for (const Judgement& one : judgements) sum += static_cast<double>(value(one));
  return sum;
}

bool has_verdict(const Judgements& judgements, Verdict verdict) {
  return std::ranges::any_of(judgements, [&](const Judgement& one) { return one.verdict == verdict; });
}

// Figures of several devices are summed up.
const std::vector<MetricRow<Judgements>>& judged_rows() {
  using enum Better;
  static const std::vector<MetricRow<Judgements>> rows{
      {{"holds",
        "holds",
        "count",
        more,
        "1 if nothing grew by more than is allowed, every card still holds it and the files agree",
        {},
        kTruth},
       [](const Judgements& all) { return is(std::ranges::all_of(all, &Judgement::holds)); }},
      {{"same_program", "same program", "count", more, "1 if both programs ask for the same", {}, kTruth},
       [](const Judgements& all) {
         return is(!has_verdict(all, Verdict::program) && !has_verdict(all, Verdict::files_disagree));
       }},
      {{"same_settings",
        "same settings",
        "count",
        neither,
        "1 if settings and rules of both are the same",
        {},
        kTruth},
       [](const Judgements& all) {
         return is(std::ranges::none_of(all, [](const Judgement& one) {
           return std::ranges::any_of(one.blame,
                                      [](const Blame& blame) { return blame.kind == BlameKind::setting; });
         }));
       }},
      {{"delta_allocated_bytes",
        "allocated growth",
        "bytes",
        less,
        "growth of the peak of allocated bytes",
        {},
        kAnything},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) { return one.delta_allocated(); });
       }},
      {{"delta_reserved_bytes",
        "reserved growth",
        "bytes",
        less,
        "growth of the peak of reserved bytes",
        {},
        kAnything},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) { return one.delta_reserved(); });
       }},
      {{"peak_allocated_bytes", "peak allocated", "bytes", less,
        "highest allocated bytes of the new recording"},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) { return one.whole.allocated.second; });
       }},
      {{"peak_reserved_bytes", "peak reserved", "bytes", less, "highest reserved bytes of the new recording"},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) { return one.whole.reserved.second; });
       }},
      {{"figures_grown", "figures grown", "count", less,
        "peaks, of all and of each step, that grew by more than is allowed"},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) { return one.grown.size(); });
       }},
      {{"cards_lost", "cards lost", "count", less,
        "cards that held the golden program and do not hold the new one"},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) {
           return std::ranges::count_if(
               one.cards, [](const JudgedCard& card) { return card.golden_fits && !card.new_fits; });
         });
       }},
      {{"leak_bytes_per_step", "leak", "bytes", less,
        "what each step leaves behind and did not in the golden recording"},
       [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) {
           Bytes bytes = 0;
           for (const Blame& blame : one.blame) bytes += blame.allocated >= 0 ? blame.per_step : 0;
           return bytes;
         });
       }},
      {{"causes", "causes", "count", neither, "how many things are to blame"}, [](const Judgements& all) {
         return over_devices(all, [](const Judgement& one) { return one.blame.size(); });
       }}};
  return rows;
}

/// Two recordings held against each other.
class RegressionExperiment : public ScenarioExperiment<RegressionScenario, std::vector<RegressionResult>> {
 public:
  using ScenarioExperiment::ScenarioExperiment;

  [[nodiscard]] std::vector<std::string> labels() const override { return {kRegressionLabel}; }
  [[nodiscard]] std::string labelled() const override { return "recording"; }

  void run(const std::vector<std::string>& labels) override {
    require_labels(labels);
    JudgeQuestion question = scenario_.question;
    question.curves = question_.report;
    Judgements judgements = judge_all(scenario_.golden, scenario_.now, question);
    std::vector<Metric> metrics = regression_metrics(judgements);
    results_.push_back({{kRegressionLabel, std::move(metrics)}, std::move(judgements)});
  }

  [[nodiscard]] std::string verdict() const override {
    std::string text;
    for (const Judgement& one : judged()) text += (text.empty() ? "" : " ") + verdict_sentence(one);
    return text;
  }
  [[nodiscard]] std::string head_line() const override {
    return fmt::format("{}: {} held against {}", scenario_.name, scenario_.files.now, scenario_.files.golden);
  }
  [[nodiscard]] std::vector<std::string> head() const override {
    std::vector<std::string> lines{head_line()};
    for (const Judgement& one : judged()) {
      for (const std::string& sentence : blame_sentences(one)) lines.push_back(sentence);
      for (const std::string& note : one.notes) lines.push_back("note: " + note);
    }
    return lines;
  }
  [[nodiscard]] std::vector<Table> tables() const override {
    std::vector<Table> tables;
    for (const Judgement& one : judged()) {
      if (!one.blame.empty()) tables.push_back(blame_table(one));
      tables.push_back(figures_table(one));
      if (!one.cards.empty()) tables.push_back(judged_cards_table(one));
    }
    return tables;
  }
  [[nodiscard]] Json json() const override {
    Json json{{"scenario", scenario_.name}};
    json.update(judgements_json(scenario_.files, judged()));
    return json;
  }
  [[nodiscard]] std::vector<Json> sections() const override {
    std::vector<Json> sections;
    for (const Judgement& one : judged()) sections.push_back(judgement_section(scenario_.files, one));
    return sections;
  }
  [[nodiscard]] std::vector<std::string> around(const Expectation& /*expectation*/) const override {
    std::vector<std::string> lines;
    for (const Judgement& one : judged()) {
      lines.push_back("  " + verdict_sentence(one));
      for (const std::string& sentence : blame_sentences(one)) lines.push_back("  " + sentence);
      for (const std::string& sentence : growth_sentences(one)) lines.push_back("  " + sentence);
    }
    return lines;
  }

 private:
  [[nodiscard]] const Judgements& judged() const { return results_.front().judgements; }
};

}  // namespace

const MetricTable& regression_metric_table() {
  static const MetricTable table = table_of(judged_rows());
  return table;
}

std::vector<Metric> regression_metrics(const std::vector<Judgement>& judgements) {
  return measure(judged_rows(), judgements);
}

Kind regression_kind() {
  return {
      .name = "regression",
      .table = regression_table,
      .schema =
          [](const PolicySet& /*known*/) { return fields_schema(regression_table().fields, /*open=*/false); },
      .metrics = regression_metric_table,
      .read = [](const ScenarioDocument& document, const Question& question) -> std::unique_ptr<Experiment> {
        return std::make_unique<RegressionExperiment>(read_regression(document), question);
      }};
}

}  // namespace vramlab
