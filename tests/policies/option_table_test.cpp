#include <limits>

#include <gmock/gmock.h>

#include "policies/contract/options.hpp"

namespace vramlab {
namespace {

using testing::ElementsAre;

enum class Colour : std::uint8_t { red, green };

struct Sample {
  bool quick = true;
  std::int64_t count = 3;
  double share = 0.25;
  std::string label = "none";
  Colour colour = Colour::green;
};

void check_sample(const Sample& sample, const OptionMap& map, std::vector<Problem>& problems) {
  if (sample.quick && sample.count > 50)
    problems.push_back({place_of(map, {"count"}), "too many to be quick."});
}

const OptionTable<Sample>& table() {
  static const OptionTable<Sample> rows{
      .owner = "sample",
      .options = {{"quick", &Sample::quick, "", 0, 0, "no waiting"},
                  {"count", &Sample::count, "steps", 1, 1e6, "how many"},
                  {"share", &Sample::share, "ratio", 0, 1, "how much"},
                  {"label", &Sample::label, "", 0, 0, "what it is called"},
                  {"colour", one_of<&Sample::colour>({"red", "green"}), "", 0, 0, "how it looks"}},
      .check = check_sample};
  return rows;
}

std::vector<Problem> problems_of(const OptionMap& map) {
  try {
    (void)table().parse(map);
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

TEST(OptionTable, DefaultsAreThoseOfTheStruct) {
  const Sample sample = table().parse({});
  EXPECT_TRUE(sample.quick);
  EXPECT_EQ(sample.count, 3);
  EXPECT_EQ(sample.share, 0.25);
  EXPECT_EQ(sample.label, "none");
  EXPECT_EQ(sample.colour, Colour::green);
}

TEST(OptionTable, ReadsEveryKindOfValue) {
  const Sample sample = table().parse({{"quick", false, ""},
                                       {"count", std::int64_t{7}, ""},
                                       {"share", 0.5, ""},
                                       {"label", std::string("seven"), ""},
                                       {"colour", std::string("red"), ""}});
  EXPECT_FALSE(sample.quick);
  EXPECT_EQ(sample.count, 7);
  EXPECT_EQ(sample.share, 0.5);
  EXPECT_EQ(sample.label, "seven");
  EXPECT_EQ(sample.colour, Colour::red);
}

// As a JSON schema has it: 1 is a number, 7.0 an integer, 7.5 is none.
TEST(OptionTable, WholeNumbersAndNumbersMix) {
  EXPECT_EQ(table().parse({{"share", std::int64_t{1}, ""}}).share, 1.0);
  EXPECT_EQ(table().parse({{"count", 7.0, ""}}).count, 7);
  EXPECT_THAT(problems_of({{"count", 7.5, "/count"}}),
              ElementsAre(Problem{"/count", "7.5 does not fit: a whole number is needed (1 to 1000000)."}));
}

TEST(OptionTable, RangesIncludeTheirEnds) {
  EXPECT_TRUE(problems_of({{"share", 0.0, ""}, {"count", std::int64_t{1'000'000}, ""}, {"quick", false, ""}})
                  .empty());
  EXPECT_TRUE(problems_of({{"share", 1.0, ""}}).empty());
  EXPECT_THAT(problems_of({{"share", 1.2, "/share"}}),
              ElementsAre(Problem{"/share", "1.2 is out of range. Allowed: 0 to 1."}));
  EXPECT_THAT(problems_of({{"count", std::int64_t{0}, "/count"}}),
              ElementsAre(Problem{"/count", "0 is out of range. Allowed: 1 to 1000000."}));
  EXPECT_EQ(problems_of({{"share", std::numeric_limits<double>::quiet_NaN(), ""}}).size(), 1u);
}

TEST(OptionTable, ReportsAllProblemsAtOnce) {
  const auto problems = problems_of({{"quick", std::string("yes"), "/a/quick"},
                                     {"shere", 0.5, "/a/shere"},
                                     {"colour", std::string("gren"), "/a/colour"},
                                     {"share", true, "/a/share"}});
  EXPECT_THAT(
      problems,
      ElementsAre(Problem{"/a/quick", "\"yes\" does not fit: true or false is needed (true or false)."},
                  Problem{"/a/shere",
                          "unknown key \"shere\". Did you mean \"share\"? (vramlab "
                          "policies sample lists all keys)"},
                  Problem{"/a/colour", "\"gren\" is none of red, green. Did you mean \"green\"?"},
                  Problem{"/a/share", "true does not fit: a number is needed (0 to 1)."}));
}

TEST(OptionTable, RulesBetweenOptionsComeAfterTheirRanges) {
  EXPECT_THAT(problems_of({{"count", std::int64_t{51}, "/count"}}),
              ElementsAre(Problem{"/count", "too many to be quick."}));
  EXPECT_EQ(problems_of({{"count", std::int64_t{51}, "/count"}, {"share", 2.0, "/share"}}).size(), 1u);
}

TEST(OptionTable, WithoutAPlaceTheKeyIsThePlace) {
  EXPECT_EQ(problems_of({{"share", 2.0, ""}}).at(0).where, "share");
}

TEST(OptionTable, DescribesEveryOptionForHelpAndSchema) {
  const auto rows = table().describe();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[1].kind, FieldKind::integer);
  EXPECT_EQ(default_text(rows[1]), "3");
  EXPECT_EQ(rows[1].unit, "steps");
  EXPECT_EQ(rows[1].high, 1e6);
  EXPECT_EQ(rows[4].kind, FieldKind::choice);
  EXPECT_EQ(default_text(rows[4]), "green");
  EXPECT_THAT(rows[4].choices, ElementsAre("red", "green"));
  EXPECT_EQ(option_type_name(rows[0].kind), "boolean");
  EXPECT_EQ(describe_allowed(rows[1]), "1 to 1000000");
  EXPECT_EQ(describe_allowed(rows[4]), "red, green");
}

TEST(OptionMap, KeepsItsOrderAndEveryKeyOnce) {
  OptionMap map{{"b", std::int64_t{1}, ""}, {"a", std::int64_t{2}, ""}};
  map.set("b", std::int64_t{3}, "/b");
  ASSERT_EQ(map.entries().size(), 2u);
  EXPECT_EQ(map.entries()[0], (OptionEntry{"b", std::int64_t{3}, "/b"}));
  const OptionMap both = overlay(map, {{"a", true, ""}, {"c", 0.5, ""}});
  EXPECT_EQ(both.entries().size(), 3u);
  EXPECT_EQ(both.find("a")->value, OptionValue(true));
  EXPECT_EQ(both.find("d"), nullptr);
}

TEST(OptionMap, ValuesPrintAsTheyAreWritten) {
  EXPECT_EQ(format_option_value(true), "true");
  EXPECT_EQ(format_option_value(std::int64_t{-3}), "-3");
  EXPECT_EQ(format_option_value(0.85), "0.85");
  EXPECT_EQ(format_option_value(std::string("text")), "text");
}

}  // namespace
}  // namespace vramlab
