// Results of `check` as JUnit XML, which build servers show.
#pragma once

#include <string>
#include <vector>

#include "lab/scenario/expectations.hpp"

namespace vramlab {

/// One file with its expectations.
struct CheckedFile {
  std::string file;
  std::vector<CheckedExpectation> expectations;
};

/// A suite a file, a case an expectation; the trace around a failure is its text.
std::string junit_xml(const std::vector<CheckedFile>& files);

}  // namespace vramlab
