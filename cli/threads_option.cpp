#include "cli/threads_option.hpp"

#include <algorithm>
#include <thread>

namespace vramlab {

namespace po = boost::program_options;

void add_threads_option(Options& options) {
  options.add_options()("jobs,j", po::value<unsigned>()->default_value(0, "all cores")->value_name("N"),
                        "threads; the results do not depend on it");
}

unsigned chosen_threads(const Arguments& arguments) {
  const auto threads = arguments["jobs"].as<unsigned>();
  return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace vramlab
