#include "lab/report_sections.hpp"

namespace vramlab {
namespace {

// What the ladder shows of one search.
Json ladder_json(const Json& search, const std::string& label) {
  Json json;
  json["label"] = label;
  for (const char* key :
       {"batch", "found", "edge_batch", "headroom_bytes", "extrapolated", "reason", "trials"}) {
    json[key] = search.value(key, Json(nullptr));
  }
  return json;
}

}  // namespace

Json search_section(const Json& result, const SectionHead& head, const std::string& description) {
  Json json;
  json["kind"] = "search";
  json["title"] = result.value("scenario", result.value("name", std::string{"search"}));
  json["verdict"] = head.verdict;
  json["head"] = head.head;
  json["description"] = description;
  json["limit"] = nullptr;
  json["metrics"] = metrics_json("search");
  json["results"] = Json::array();
  json["policies"] = Json::array();
  for (const Json& policy : result["policies"]) {
    const auto label = policy["label"].get<std::string>();
    json["results"].push_back({{"label", label}, {"metrics", policy["metrics"]}});
    if (!policy.contains("buckets")) {
      json["policies"].push_back(ladder_json(policy, label));
    } else {
      for (const Json& bucket : policy["buckets"]) {
        json["policies"].push_back(ladder_json(bucket, label + ", " + bucket["bucket"].get<std::string>()));
      }
    }
    const Json& trials = json["policies"].back()["trials"];
    if (!trials.empty()) json["limit"] = trials.front().value("total_bytes", Json(nullptr));
  }
  return json;
}

}  // namespace vramlab
