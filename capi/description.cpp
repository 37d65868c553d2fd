#include "capi/description.hpp"

#include <algorithm>
#include <cstdlib>

#include "plugins/plugin_loader.hpp"

namespace vramlab {
namespace {

constexpr Bytes kMostBytes = Bytes{1} << 60;
constexpr std::uint64_t kMostCards = 1024;

MemoryView view_of(const vramlab_step& step) {
  if (step.total == 0) throw InputError("", "the step says that the device has 0 bytes in all.");
  return {.allocated = checked_size(step.allocated, "allocated"),
          .peak_allocated = checked_size(step.peak_allocated, "peak_allocated"),
          .reserved = checked_size(step.reserved, "reserved"),
          .peak_reserved = checked_size(step.peak_reserved, "peak_reserved"),
          .total = checked_size(step.total, "total"),
          .alloc_retries = step.alloc_retries,
          .allocator_ooms = step.allocator_ooms};
}

void set_option(OptionMap& options, const std::string& key, const Json& value) {
  const std::string where = "/" + key;
  if (value.is_boolean()) {
    options.set(key, value.get<bool>(), where);
  } else if (value.is_number_integer()) {
    options.set(key, value.get<std::int64_t>(), where);
  } else if (value.is_number()) {
    options.set(key, value.get<double>(), where);
  } else if (value.is_string()) {
    options.set(key, value.get<std::string>(), where);
  } else {
    throw InputError(where, "an option is a number, true or false, or text in quotes.");
  }
}

}  // namespace

Bytes checked_size(std::uint64_t bytes, const char* name) {
  if (bytes <= kMostBytes) return bytes;
  throw InputError(name, "is no size: " + std::to_string(static_cast<std::int64_t>(bytes)) +
                             ". Allowed: 0 to 2^60 bytes.");
}

void require(const void* given, const char* what) {
  if (given == nullptr) throw InputError("", std::string{what} + " is NULL.");
}

Json parse_object(const char* text, const std::string& what) {
  require(text, what.c_str());
  try {
    Json json = Json::parse(text, nullptr, true, true);
    if (json.is_object()) return json;
  } catch (const Json::exception& error) {
    throw InputError("", what + " is not JSON: " + error.what());
  }
  throw InputError("", what + " must be a JSON object.");
}

std::int64_t whole_number(const Json& json, const char* key, const std::string& where) {
  const bool known = json.is_object() && json.contains(key) && json[key].is_number_integer();
  const bool fits = known && (!json[key].is_number_unsigned() || json[key].get<std::uint64_t>() <= INT64_MAX);
  if (fits) return json[key].get<std::int64_t>();
  throw InputError(where + "/" + key, "must be a whole number.");
}

std::int64_t whole_number_or(const Json& json, const char* key, std::int64_t otherwise,
                             const std::string& where) {
  return json.is_object() && !json.contains(key) ? otherwise : whole_number(json, key, where);
}

Bytes bytes_or(const Json& json, const char* key, Bytes otherwise, const std::string& where) {
  const std::int64_t size = whole_number_or(json, key, static_cast<std::int64_t>(otherwise), where);
  if (size >= 0 && static_cast<Bytes>(size) <= kMostBytes) return static_cast<Bytes>(size);
  throw InputError(where + "/" + key, "is no size: " + std::to_string(size) + ". Allowed: 0 to 2^60 bytes.");
}

bool flag_or(const Json& json, const char* key, bool otherwise) {
  if (!json.contains(key)) return otherwise;
  if (!json[key].is_boolean()) throw InputError(std::string{"/"} + key, "must be true or false.");
  return json[key].get<bool>();
}

std::string text_of(const Json& json, const char* key, const std::string& where) {
  if (!json.contains(key)) return {};
  if (!json[key].is_string()) throw InputError(where + "/" + key, "must be text in quotes.");
  return json[key].get<std::string>();
}

PolicyChoice read_choice(const Json& json, std::initializer_list<std::string_view> others) {
  PolicyChoice choice{.use = text_of(json, "use"), .profile = text_of(json, "profile")};
  for (const auto& [key, value] : json.items()) {
    if (key == "use" || key == "profile" || key == "plugins" || std::ranges::count(others, key) > 0) continue;
    set_option(choice.options, key, value);
  }
  return choice;
}

std::shared_ptr<const PolicySet> policies_for(const Json& json) {
  const char* folders = std::getenv("VRAMLAB_PLUGIN_PATH");
  auto policies = with_plugin_path(builtin_policies(), folders == nullptr ? "" : folders);
  if (!json.contains("plugins")) return policies;
  const Json& files = json["plugins"];
  const bool texts =
      files.is_array() && std::ranges::all_of(files, [](const Json& file) { return file.is_string(); });
  if (!texts) throw InputError("/plugins", "must be a list of files, each a text in quotes.");
  for (const Json& file : files) policies = with_plugin(policies, file.get<std::string>());
  return policies;
}

Json demand_json(const JobDemand& demand, const char* cards) {
  Json variants = Json::array();
  for (const DemandVariant& one : demand.variants) {
    variants.push_back({{"name", one.name},
                        {"need", one.fixed},
                        {"per_sample", one.per_sample},
                        {"least_batch", one.least_batch}});
  }
  return {{"need", demand.fixed},
          {"per_sample", demand.per_sample},
          {"batch", demand.batch},
          {"effective", demand.effective},
          {"least_batch", demand.least_batch},
          {"share_milli", demand.share_milli},
          {cards, demand.cards},
          {"priority", demand.priority},
          {"overdue", demand.overdue},
          {"variants", std::move(variants)}};
}

std::string statistics_text(const Policy& policy) {
  Json json = Json::object();
  for (const Statistic& statistic : policy.statistics()) json[statistic.name] = statistic.value;
  return json.dump();
}

StepResult step_result(std::int32_t code, const char* what) {
  if (code == 0) return StepResult::ok;
  if (code == 1) return StepResult::oom;
  if (code == 2) return StepResult::error;
  throw InputError(what, "is " + std::to_string(code) +
                             ". Allowed: 0 (it succeeded), 1 (out of memory), 2 (another failure).");
}

Observation observation_of(const vramlab_step* cards, std::uint64_t count, CardsRule rule) {
  require(cards, "the reading");
  if (count < 1 || count > kMostCards) {
    throw InputError("", "a reading is of 1 to " + std::to_string(kMostCards) + " cards, not of " +
                             std::to_string(count) + ".");
  }
  if (cards->iteration < 0) throw InputError("iteration", "is below 0.");
  if (cards->time_ns < 0) throw InputError("time_ns", "is below 0. It counts from the start of the run.");
  Observation observation{
      .iteration = cards->iteration, .time = SimTime{cards->time_ns}, .reading = cards->iteration};
  std::vector<MemoryView> views;
  for (std::uint64_t i = 0; i < count; ++i) views.push_back(view_of(cards[i]));
  observation.memory = count == 1 ? views.front() : view_of_cards(views, rule);
  if (count > 1) observation.cards = std::move(views);
  return observation;
}

}  // namespace vramlab
