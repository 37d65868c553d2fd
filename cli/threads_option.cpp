#include "cli/threads_option.hpp"

#include <algorithm>
#include <cstdint>
#include <thread>

#include <fmt/format.h>

#include "sim/core/error.hpp"

namespace vramlab {

namespace po = boost::program_options;

void add_threads_option(Options& options) {
  options.add_options()("jobs,j", po::value<std::int64_t>()->default_value(0, "all cores")->value_name("N"),
                        "threads; the results do not depend on it");
}

unsigned chosen_threads(const Arguments& arguments) {
  constexpr std::int64_t kMost = 1024;
  const auto threads = arguments["jobs"].as<std::int64_t>();
  if (threads < 0 || threads > kMost) {
    throw InputError(
        "--jobs", fmt::format("{} is out of range; allowed is 1 to {}, or 0 for all cores.", threads, kMost));
  }
  return threads != 0 ? static_cast<unsigned>(threads) : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace vramlab
