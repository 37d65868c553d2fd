#include "core/error.hpp"

#include <gtest/gtest.h>

namespace vramlab {
namespace {

TEST(InputError, ListsEveryProblemOnItsOwnLine) {
  const InputError error{{{"a.json: /x", "unknown key."}, {"", "no workload."}}};
  EXPECT_STREQ(error.what(), "a.json: /x: unknown key.\nno workload.");
}

TEST(NearestName, FindsAMistypedName) {
  const std::vector<std::string> keys{"profile", "label", "use"};
  EXPECT_EQ(nearest_name("profle", keys), "profile");
  EXPECT_EQ(nearest_name("lable", keys), "label");
  EXPECT_EQ(nearest_name("objective", keys), "");
  EXPECT_EQ(nearest_name("ues", {"label", "use"}), "use");  // two letters swapped are one slip
}

TEST(SuggestName, ListsWhatThereIsWhenNothingIsClose) {
  const std::vector<std::string> keys{"profile", "label"};
  EXPECT_EQ(suggest_name("profle", keys), " Did you mean \"profile\"?");
  EXPECT_EQ(suggest_name("zzzzzz", keys), " Known: profile, label.");
}

}  // namespace
}  // namespace vramlab
