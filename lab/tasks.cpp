#include "lab/tasks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "lab/parallel.hpp"

namespace vramlab {

void Threads::perform(const std::vector<Task>& tasks, std::vector<std::size_t> wanted,
                      const TaskClient& client) {
  const std::vector<std::size_t> order = longest_first(tasks, std::move(wanted));
  std::vector<std::exception_ptr> errors(tasks.size());
  std::atomic<bool> refused{false};  // whoever waits cannot keep more
  std::atomic<bool> stopped{false};
  std::mutex taking;
  for_each_index(order.size(), threads_, [&](std::size_t i) {
    if (refused) return;
    if (client.stop != nullptr && client.stop->load()) {
      stopped = true;
      return;
    }
    Json result;
    try {
      result = tasks[order[i]].perform();
    } catch (...) {
      errors[order[i]] = std::current_exception();
      return;
    }
    const std::lock_guard lock{taking};
    try {
      if (!refused) client.take(order[i], result);
    } catch (...) {
      refused = true;
      throw;
    }
  });
  if (stopped && client.stopped) client.stopped();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::vector<std::size_t> longest_first(const std::vector<Task>& tasks, std::vector<std::size_t> wanted) {
  // One of unknown length may be the longest.
  const auto unknown_first = [](double length) {
    return length > 0 ? length : std::numeric_limits<double>::infinity();
  };
  std::ranges::stable_sort(wanted, std::ranges::greater{},
                           [&](std::size_t i) { return unknown_first(tasks[i].length); });
  return wanted;
}

std::vector<Json> perform_all(const std::vector<Task>& tasks, unsigned threads) {
  std::vector<Json> results(tasks.size());
  std::vector<std::size_t> all(tasks.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  Threads{threads}.perform(tasks, std::move(all),
                           {.take = [&](std::size_t i, const Json& result) { results[i] = result; }});
  return results;
}

double length_of(const ScenarioDocument& scenario) {
  const auto number = [&](const char* pointer) {
    const Json* value = nullptr;
    const Json::json_pointer place{pointer};
    if (scenario.json.contains(place)) value = &scenario.json.at(place);
    return value != nullptr && value->is_number() ? value->get<double>() : 0;
  };
  constexpr std::array kCounts{"/workload/iterations", "/workload/data/samples", "/then_epoch/iterations",
                               "/generate/count"};
  double count = 0;
  for (const char* pointer : kCounts) count = std::max(count, number(pointer));
  const auto policies = scenario.json.find("policies");
  return count * (policies == scenario.json.end() ? 1 : static_cast<double>(policies->size()));
}

Json labelled_json(const std::vector<LabelledFigures>& results) {
  Json list = Json::array();
  for (const LabelledFigures& one : results) {
    list.push_back({{"label", one.label}, {"metrics", figures_json(one.metrics)}});
  }
  return list;
}

std::vector<LabelledFigures> labelled_from(const Json& json) {
  std::vector<LabelledFigures> results;
  for (const Json& one : json) {
    results.push_back({one.at("label").get<std::string>(), {}});
    for (const auto& [name, value] : one.at("metrics").items()) {
      results.back().metrics.push_back({name, value.is_null() ? std::nan("") : value.get<double>()});
    }
  }
  return results;
}

}  // namespace vramlab
