// A plugin that must not be loaded. The name of its file says what is wrong with it: it is copied under
// several (CMakeLists.txt).
#include <filesystem>
#include <stdexcept>

#include <dlfcn.h>

#include "plugins/plugin.hpp"

namespace {

using namespace vramlab;

class Idle final : public Tuner {
 public:
  TunerAnswer decide(const TunerQuestion&, const Observation&) override { return {}; }
};

TunerEntry idle(const std::string& name) {
  return {.name = name,
          .summary = "does nothing",
          .options = {},
          .profiles = {},
          .default_profile = {},
          .make = [](const OptionMap&, const ParameterSpace&) { return std::make_unique<Idle>(); }};
}

const int here = 0;

std::string fault() {
  ::Dl_info info{};
  ::dladdr(&here, &info);
  return std::filesystem::path(info.dli_fname).stem().string();
}

void add(PolicySet& policies) {
  if (fault() == "adds_nothing") return;
  policies.tuners.add(idle(fault() == "nameless" ? "" : "half"));
  TunerEntry& first = policies.tuners.entries.front();
  if (fault() == "failing_add") throw std::runtime_error("no licence was found");
  if (fault() == "taken_name") policies.tuners.add(idle("job-queue"));
  if (fault() == "no_maker") first.make = nullptr;
  if (fault() == "bad_option") first.options.push_back({.key = "room", .kind = FieldKind::size});
  if (fault() == "bad_profile") {
    first.profiles.push_back({"fast", "unknown keys", {{"speed", std::int64_t{9}, ""}}});
    first.default_profile = "fast";
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PluginDescription* vramlab_plugin() {
  static PluginDescription description{.name = "broken", .version = "1.0", .add = add};
  if (fault() == "no_description") return nullptr;
  if (fault() == "no_name") description.name = nullptr;
  if (fault() == "wrong_layout") description.layout = 1;
  if (fault() == "wrong_toolchain") description.toolchain = "g++ 7, libstdc++ 7, C++ 201402L";
  if (fault() == "wrong_abi") {
    description.abi = 7000;
    description.toolchain = nullptr;  // of another number nothing else may be read
  }
  return &description;
}
