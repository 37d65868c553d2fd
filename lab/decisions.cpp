#include "lab/decisions.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/error.hpp"
#include "lab/scenario/sweep.hpp"

namespace vramlab {
namespace {

DecisionsAgreement compare_lists(const Decisions& card, const Decisions& simulated) {
  DecisionsAgreement agreement{.label = card.label,
                               .lines = std::max(card.lines.size(), simulated.lines.size())};
  const auto at = [](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() ? lines[i] : std::string{};
  };
  bool parted = false;
  for (std::size_t i = 0; i < agreement.lines; ++i) {
    const std::string here = at(card.lines, i);
    const std::string there = at(simulated.lines, i);
    agreement.equal += here == there ? 1 : 0;
    if (here == there || std::exchange(parted, true)) continue;
    agreement.on_card = here;
    agreement.simulated = there;
  }
  return agreement;
}

std::string ended_or(const std::string& line) { return line.empty() ? "nothing more" : '"' + line + '"'; }

}  // namespace

ScenarioOnBoth::ScenarioOnBoth(const ScenarioDocument& document, const Question& on_card)
    : kind_(kind_of(document).name) {
  if (has_sweep(document)) {
    throw InputError(document.file, "is a sweep; a card runs one scenario at a time.");
  }
  Question question = on_card;
  question.decisions = true;
  card_ = read_experiment(document, question);
  simulated_ = read_experiment(document, {.decisions = true});
}

void ScenarioOnBoth::run() {
  card_->run({});
  simulated_->run({});
  const std::vector<Decisions> card = card_->decisions();
  const std::vector<Decisions> simulated = simulated_->decisions();
  if (card.size() != simulated.size()) throw InternalError("a card ran other policies than the simulator");
  policies_.clear();
  for (std::size_t i = 0; i < card.size(); ++i) policies_.push_back(compare_lists(card[i], simulated[i]));
}

bool ScenarioOnBoth::agrees() const {
  return std::ranges::all_of(policies_, [](const DecisionsAgreement& one) { return one.agrees(); });
}

std::string family_name(const std::string& kind) {
  static const std::map<std::string, std::string> kNames{
      {"training", "tuners"}, {"search", "searchers"}, {"epoch", "composers"}, {"jobs", "queue policies"}};
  const auto found = kNames.find(kind);
  return found == kNames.end() ? kind : found->second;
}

Table decisions_table(const std::vector<ScenarioOnBoth>& all) {
  Table table{{left("family"), left("scenario"), "policies alike", "decisions alike"}};
  for (const ScenarioOnBoth& one : all) {
    std::size_t alike = 0;
    std::size_t equal = 0;
    std::size_t lines = 0;
    for (const DecisionsAgreement& policy : one.policies()) {
      alike += policy.agrees() ? 1 : 0;
      equal += policy.equal;
      lines += policy.lines;
    }
    table.add_row({family_name(one.kind()), one.name(), fmt::format("{} of {}", alike, one.policies().size()),
                   fmt::format("{} of {}", equal, lines)});
  }
  return table;
}

std::vector<std::string> decision_differences(const std::vector<ScenarioOnBoth>& all) {
  std::vector<std::string> lines;
  for (const ScenarioOnBoth& one : all) {
    for (const DecisionsAgreement& policy : one.policies()) {
      if (policy.agrees()) continue;
      lines.push_back(fmt::format("{}, {}: the card has {}, the simulator {}.", one.name(), policy.label,
                                  ended_or(policy.on_card), ended_or(policy.simulated)));
    }
  }
  return lines;
}

Json decisions_json(const std::vector<ScenarioOnBoth>& all) {
  Json list = Json::array();
  for (const ScenarioOnBoth& one : all) {
    Json policies = Json::array();
    for (const DecisionsAgreement& policy : one.policies()) {
      policies.push_back({{"label", policy.label},
                          {"decisions", policy.lines},
                          {"equal", policy.equal},
                          {"first_difference", nullptr}});
      if (policy.agrees()) continue;
      policies.back()["first_difference"] = {{"card", policy.on_card}, {"simulated", policy.simulated}};
    }
    list.push_back({{"kind", one.kind()},
                    {"scenario", one.name()},
                    {"agrees", one.agrees()},
                    {"policies", std::move(policies)}});
  }
  return list;
}

}  // namespace vramlab
