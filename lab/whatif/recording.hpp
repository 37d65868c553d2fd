// What a recording itself shows, before anything is replayed: requests that failed, and the memory held when
// the snapshot was taken.
#pragma once

#include <string>
#include <vector>

#include "lab/json.hpp"
#include "lab/whatif/whatif.hpp"
#include "report/table.hpp"

namespace vramlab {

/// One sentence for each program in whose recording requests failed: how many, and the first.
std::vector<std::string> failure_sentences(const std::vector<ClientProgram>& programs);

/// The first requests that failed; the same one tried again is one row.
Table failures_table(const ClientProgram& program);

/// Which of the failed requests would succeed in a row: "all 3", "none", "1, 3" or "64 of 66".
std::string served_attempts(const ProgramOutcome& outcome);

/// [{"entry", "requested_bytes", "device_free_bytes", …}] of every failed request.
Json failures_json(const ClientProgram& program);

/// What was reserved, live, idle and returnable, in a sentence, by segment, and as JSON.
std::string held_sentence(const ClientProgram& program);
Table held_table(const ClientProgram& program);
Json held_json(const ClientProgram& program);

}  // namespace vramlab
