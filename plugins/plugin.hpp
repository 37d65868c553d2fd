// What a plugin is: a shared library with one C function, which says what the library was built for and adds
// policies. The last lines of a policy's source make it one:
//
//   void add(vramlab::PolicySet& policies) { policies.tuners.add(my_policy_entry()); }
//   VRAMLAB_PLUGIN("my-policy", "1.0", add)
//
#pragma once

#include <cstddef>
#include <cstdint>

#include "policies/contract/policy_set.hpp"

namespace vramlab {

/// Number of the contract between program and plugins. It grows when a header that plugins include changes or
/// moves so that they must be built anew; a program loads plugins of its own number only.
inline constexpr std::uint32_t kPluginAbi = 7;

#define VRAMLAB_TEXT_OF(value) #value
#define VRAMLAB_TEXT(value) VRAMLAB_TEXT_OF(value)
#if defined(__clang__)
#define VRAMLAB_COMPILER "clang++ " VRAMLAB_TEXT(__clang_major__)
#else
#define VRAMLAB_COMPILER "g++ " VRAMLAB_TEXT(__GNUC__)
#endif
#if defined(_LIBCPP_VERSION)
#define VRAMLAB_LIBRARY "libc++ " VRAMLAB_TEXT(_LIBCPP_VERSION)
#elif defined(_GLIBCXX_DEBUG)
#define VRAMLAB_LIBRARY "libstdc++ " VRAMLAB_TEXT(_GLIBCXX_RELEASE) " in debug mode"
#elif _GLIBCXX_USE_CXX11_ABI
#define VRAMLAB_LIBRARY "libstdc++ " VRAMLAB_TEXT(_GLIBCXX_RELEASE)
#else
#define VRAMLAB_LIBRARY "libstdc++ " VRAMLAB_TEXT(_GLIBCXX_RELEASE) " with the old ABI"
#endif

/// Compiler, standard library and language that these lines are compiled with.
inline constexpr const char* kPluginToolchain =
    VRAMLAB_COMPILER ", " VRAMLAB_LIBRARY ", C++ " VRAMLAB_TEXT(__cplusplus);

/// A number made of the sizes of `Types`.
template <class... Types>
constexpr std::uint64_t layout_of() {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::size_t size : {sizeof(Types)..., alignof(Types)...}) hash = (hash ^ size) * 1099511628211u;
  return hash;
}

/// That of everything that crosses the border. Most fields added to one of these without a new kPluginAbi are
/// noticed; one in padding, two of a size that changed places and a new virtual function are not.
inline constexpr std::uint64_t kPluginLayout =
    layout_of<MemoryView, Observation, Parameter, ParameterSpace, Field, OptionEntry, OptionMap,
              PolicyProfile, TunerEntry, AdmitterEntry, ComposerEntry, SearcherEntry, PolicySet, Statistic,
              TunerQuestion, TunerAnswer, PhaseReport, CardView, ClusterView, WaitingJobs, RunningJobs,
              CardIndex, JobDemand, AdmitterQuestion, AdmitterAnswer, QueueRules, Sample, BatchShape,
              Candidates, AccumulationRule, ComposerQuestion, ComposerAnswer, BatchOutcome, Probe, ProbedCard,
              SearcherQuestion, SearcherAnswer, ProbeDepth, Problem, InputError>();

/// What a plugin says of itself. `abi` is the first member for ever: where it differs, nothing else is read.
struct PluginDescription {
  std::uint32_t abi = kPluginAbi;
  const char* toolchain = kPluginToolchain;
  std::uint64_t layout = kPluginLayout;
  const char* name = nullptr;                  ///< of the plugin, for people
  const char* version = nullptr;               ///< of the plugin, for people
  void (*add)(PolicySet& policies) = nullptr;  ///< adds entries to the families' lists
};

/// The name of the C function, `const PluginDescription* vramlab_plugin()`.
inline constexpr const char* kPluginSymbol = "vramlab_plugin";

}  // namespace vramlab

/// Defines the C function. `name` and `version` are texts, `add_policies` a function of
/// PluginDescription::add.
#define VRAMLAB_PLUGIN(plugin_name, plugin_version, add_policies)                                          \
  extern "C" __attribute__((visibility("default"))) const ::vramlab::PluginDescription* vramlab_plugin() { \
    static constexpr ::vramlab::PluginDescription description{                                             \
        .name = plugin_name, .version = plugin_version, .add = add_policies};                              \
    return &description;                                                                                   \
  }
