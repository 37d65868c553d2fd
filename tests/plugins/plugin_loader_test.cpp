// What is loaded, and what is not: every refusal is one sentence, and leaves nothing of the plugin behind.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "plugins/plugin.hpp"
#include "policies/contract/session.hpp"
#include "tests/cli/scratch_folder.hpp"
#include "tests/plugins/loaded.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const ParameterSpace kBatch{{{"batch", 1, 64}}};

TEST(PluginLoader, AddsAPolicyLikeABuiltIn) {
  const auto policies = loaded("skeleton_twin");
  const TunerEntry& twin = policies->tuners.find("skeleton-twin", {});
  const TunerEntry& builtin = builtin_policies()->tuners.find("skeleton");
  EXPECT_EQ(twin.summary, builtin.summary);
  EXPECT_EQ(keys_of(twin.options), keys_of(builtin.options));
  EXPECT_EQ(default_text(twin.options.back()), default_text(builtin.options.back()));
  EXPECT_NE(policies->tuners.make({"skeleton-twin", "", {}, ""}, kBatch), nullptr);
  ASSERT_EQ(policies->plugins.size(), 1u);
  EXPECT_EQ(policies->plugins[0].name, "skeleton-twin");
  EXPECT_EQ(policies->plugins[0].version, "1.0");
  EXPECT_THAT(policies->plugins[0].policies, ElementsAre("skeleton-twin"));
  EXPECT_EQ(policies->tuners.entries.size(), builtin_policies()->tuners.entries.size() + 1);
  EXPECT_EQ(builtin_policies()->plugins.size(), 0u);
}

// The option table is the plugin's; the messages are those of a built-in.
TEST(PluginLoader, ChecksOptionsAgainstThePluginsTable) {
  const auto policies = loaded("skeleton_twin");
  const auto problem = [&](const OptionEntry& option) {
    try {
      OptionMap options;
      options.set(option.key, option.value, option.where);
      policies->tuners.make({"skeleton-twin", "", options, "/policies/1"}, kBatch);
    } catch (const InputError& error) {
      return error.problems().front();
    }
    return Problem{};
  };
  EXPECT_EQ(problem({"highest_usage", 1.5, "/policies/1/highest_usage"}),
            (Problem{"/policies/1/highest_usage", "1.5 is out of range. Allowed: 0.01 to 1."}));
  EXPECT_EQ(problem({"highest_use", 0.5, "/policies/1/highest_use"}),
            (Problem{"/policies/1/highest_use",
                     "unknown key \"highest_use\". Did you mean \"highest_usage\"? (vramlab policies "
                     "skeleton-twin lists all keys)"}));
  EXPECT_THAT(problem({"parameter", std::string("seq"), ""}).what, HasSubstr("moves \"seq\""));
}

// A policy outlives the set and the library's last handle that anybody else had.
TEST(PluginLoader, KeepsTheLibraryWhileAPolicyLives) {
  auto policies = loaded("skeleton_twin");
  TunerSession session{
      policies->tuners.make({"skeleton-twin", "", {{"adjustment_frequency", std::int64_t{1}, ""}}, ""},
                            kBatch),
      kBatch,
      {8}};
  policies.reset();
  const StepDecision decision =
      session.after_step(StepResult::ok, {1, SimTime{0}, {.peak_allocated = 300, .total = 1000}});
  EXPECT_EQ(decision.reason, "period peak 0.300 is below 0.850: batch +1");
  EXPECT_EQ(session.point(), (Point{9}));
}

TEST(PluginLoader, TheSameFileAgainAddsNothing) {
  const auto policies = loaded("skeleton_twin");
  EXPECT_EQ(with_plugin(policies, test_plugin("skeleton_twin")), policies);
  const auto roundabout = std::filesystem::path(VRAMLAB_TEST_PLUGINS) / ".." / "loaded" / "skeleton_twin.so";
  EXPECT_EQ(with_plugin(policies, roundabout), policies);
}

TEST(PluginLoader, RefusesWhatIsNoPlugin) {
  ScratchFolder scratch;
  EXPECT_EQ(refusal(scratch.file("none.so")), "there is no such plugin.");
  std::ofstream{scratch.file("text.so")} << "no library at all";
  EXPECT_EQ(refusal(scratch.file("text.so")), "is not a shared library. A plugin is one (docs/plugins.md).");
  EXPECT_EQ(refusal(scratch.path().string()), "is not a shared library. A plugin is one (docs/plugins.md).");
  std::ofstream{scratch.file("cut.so")} << "\x7f"
                                        << "ELF and no more";
  EXPECT_THAT(refusal(scratch.file("cut.so")), StartsWith("could not be loaded: "));
  for (const std::uintmax_t left : {5000u, 100u}) {  // unmapped segments; no list of segments
    std::filesystem::copy_file(test_plugin("no_symbol"), scratch.file("part.so"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(scratch.file("part.so"), left);
    EXPECT_EQ(refusal(scratch.file("part.so")),
              "is cut off: parts that its header lists are missing. Build or copy it again.");
  }
  EXPECT_EQ(
      refusal(test_plugin("no_symbol")),
      "is not a plugin of vramlab: it has no function vramlab_plugin. The macro VRAMLAB_PLUGIN defines it.");
}

TEST(PluginLoader, RefusesWhatWasBuiltForAnotherProgram) {
  EXPECT_EQ(refusal(test_plugin("wrong_abi")), "was built for plugin ABI 7000; this program has " +
                                                   std::to_string(kPluginAbi) +
                                                   ". Build it again with this program's headers.");
  EXPECT_EQ(refusal(test_plugin("wrong_toolchain")),
            std::string("was built with g++ 7, libstdc++ 7, C++ 201402L; this program with ") +
                kPluginToolchain + ". Build it again with the same compiler.");
  EXPECT_EQ(refusal(test_plugin("wrong_layout")),
            "was built with headers of another version. Build it again with this program's headers.");
}

TEST(PluginLoader, RefusesADescriptionThatLacksSomething) {
  EXPECT_EQ(refusal(test_plugin("no_description")), "its function vramlab_plugin describes nothing.");
  EXPECT_EQ(refusal(test_plugin("no_name")),
            "its description lacks a name, a version or the function that adds policies. The macro "
            "VRAMLAB_PLUGIN gives all three.");
  EXPECT_EQ(refusal(test_plugin("failing_add")), "could not add its policies: no licence was found.");
  EXPECT_EQ(refusal(test_plugin("adds_nothing")), "adds no policy.");
  EXPECT_EQ(refusal(test_plugin("nameless")), "adds a policy without a name.");
  EXPECT_EQ(refusal(test_plugin("no_maker")), "its policy \"half\" has no function that makes it.");
  EXPECT_EQ(refusal(test_plugin("bad_option")),
            "its policy \"half\" has an option \"room\" of a kind that options cannot have.");
  EXPECT_THAT(refusal(test_plugin("bad_profile")),
              StartsWith("its policy \"half\" has a wrong profile: unknown key \"speed\"."));
}

// Its first policy would be good.
TEST(PluginLoader, HalfAPluginIsNotLoaded) {
  const auto before = builtin_policies()->tuners.entries.size();
  EXPECT_EQ(refusal(test_plugin("taken_name")),
            "adds a policy \"job-queue\", and there is one of that name. Rename it.");
  EXPECT_EQ(builtin_policies()->tuners.entries.size(), before);
  const auto twins = loaded("skeleton_twin");
  EXPECT_EQ(refusal(test_plugin("taken_name"), twins), refusal(test_plugin("taken_name")));
  EXPECT_EQ(twins->tuners.entries.size(), before + 1);
}

TEST(PluginLoader, ListsTheLibrariesOfAFolderByName) {
  ScratchFolder scratch;
  for (const char* name : {"b.so", "a.so", "notes.txt"}) std::ofstream{scratch.file(name)} << "x";
  EXPECT_THAT(plugins_in(scratch.path()), ElementsAre(scratch.path() / "a.so", scratch.path() / "b.so"));
  EXPECT_THROW(plugins_in(scratch.file("none")), InputError);
}

}  // namespace
}  // namespace vramlab
