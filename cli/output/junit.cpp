#include "cli/output/junit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "report/html_page.hpp"

namespace vramlab {
namespace {

std::size_t failures(const CheckedFile& file) {
  return static_cast<std::size_t>(std::count_if(file.expectations.begin(), file.expectations.end(),
                                                [](const CheckedExpectation& one) { return !one.ok; }));
}

std::string case_xml(const CheckedFile& file, const CheckedExpectation& one) {
  const std::string head = fmt::format("    <testcase classname=\"{}\" name=\"{}\"", xml_text(file.file),
                                       xml_text(one.policy + " " + one.metric + " " + one.bound));
  if (one.ok) return head + "/>\n";
  std::string around;
  for (const std::string& line : one.around) around += line + '\n';
  return fmt::format(
      "{}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>\n", head,
      xml_text(fmt::format("{} {} is {} ({})", one.policy, one.metric, format_number(one.value), one.bound)),
      xml_text(around));
}

}  // namespace

std::string junit_xml(const std::vector<CheckedFile>& files) {
  std::size_t tests = 0;
  std::size_t failed = 0;
  std::string suites;
  for (const CheckedFile& file : files) {
    tests += file.expectations.size();
    failed += failures(file);
    suites += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n", xml_text(file.file),
                          file.expectations.size(), failures(file));
    for (const CheckedExpectation& one : file.expectations) suites += case_xml(file, one);
    suites += "  </testsuite>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" "
      "failures=\"{}\">\n{}</testsuites>\n",
      tests, failed, suites);
}

}  // namespace vramlab
