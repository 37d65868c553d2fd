// An oracle log as the program that was run to record it.
#pragma once

#include "trace/client_program.hpp"
#include "trace/oracle_log.hpp"

namespace vramlab {

/// A log's operations as a program's actions. A request that failed in the log is an allocation like any
/// other: it may fail again, and then nothing is freed. `first_action` gives, for each operation, the number
/// of actions before it.
struct OracleProgram {
  ClientProgram program;
  std::vector<std::size_t> first_action;
};

/// Throws InputError, with the place in the log, for an operation that contradicts an earlier one.
OracleProgram oracle_program(const OracleLog& log);

}  // namespace vramlab
