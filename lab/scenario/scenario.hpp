// What scenarios of every kind have: a name, a seed, the policies to try and what must come out; and the rows
// of their tables for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/records/record.hpp"
#include "core/units.hpp"
#include "lab/scenario/expectations.hpp"
#include "lab/scenario/fields.hpp"
#include "lab/scenario/file.hpp"
#include "lab/scenario/policies.hpp"
#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// A scenario, checked and ready to run; a kind adds what is its own.
struct Scenario {
  std::string file;  ///< as it was named
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  std::string gpu;               ///< name of the card, for people; empty where the kind names none
  bool context_assumed = false;  ///< what a context takes was not measured on one of the cards
  std::shared_ptr<const PolicySet> known = builtin_policies();  ///< where its policies are found; never null
  std::vector<PolicyEntry> policies;
  std::vector<Expectation> expectations;
};

/// What heads of results call the card: "NVIDIA A10 (context assumed) limited to 12.0 GiB".
std::string card_text(const Scenario& scenario, const std::optional<Bytes>& limit);

/// The sentence for results without such a head; empty where nothing is assumed.
std::string assumed_context_text(const Scenario& scenario);

/// What a file of any kind says and a reader turns into the above.
struct ScenarioSections {
  std::vector<std::string> plugins;
  std::vector<PolicySection> policy_sections;
};

/// The keys in front: "$schema", "version", "kind" (only `kind`), "name", "description".
std::vector<Row<Scenario>> head_rows(const std::string& kind);
std::vector<Row<Scenario>> seed_rows();

/// What "policies" is in most kinds.
inline constexpr const char* kPoliciesHelp = "what is compared; further keys are options of the policy";

/// "plugins", and "policies" that `help` describes.
std::vector<Row<ScenarioSections>> plugins_rows();
std::vector<Row<ScenarioSections>> policies_rows(const std::string& help, bool required);

/// "expect" of kinds that are judged by metrics alone.
std::vector<Row<Scenario>> expectations_rows(const Record<Expectation>& table);
std::vector<Row<Scenario>> sweep_rows();

/// Reads a document by the table of its kind into `scenario`, whose type is the table's section. Throws
/// InputError with everything that the table does not allow.
template <class File>
void read_file(const ScenarioDocument& document, const Record<File>& table, File& file) {
  require_fields(document.json, table, document.file + ": ");
  read_into(document.json, table, &file);
  file.file = document.file;
}

}  // namespace vramlab
