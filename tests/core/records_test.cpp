// A table of rows says everything about a section: what its keys may be, where they are kept, what they are
// when left out.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/records/record.hpp"

namespace vramlab {
namespace {

using ::testing::ElementsAre;

enum class Rule : std::uint8_t { halve, reset };

struct Part {
  std::string name;
  Bytes bytes = 32'212'254'720;  // 30 GiB
};

struct Loss {
  double alpha = 1.5;
};

struct Base {
  std::int64_t steps = 10;
};

struct Section : Base {
  Rule rule = Rule::reset;
  SimTime from{2'500'000'000};
  SimTime to = SimTime::max();
  std::int64_t restart_every = 0;  // 0 = never, outside the row's range
  std::optional<Bytes> limit;
  std::string note;
  std::int32_t busy_milli = 1000;
  Loss loss;
  Part part;
  std::optional<Part> maybe;
  std::vector<Part> parts;
};

const Record<Part>& part_table() {
  static const Record<Part> table{
      {"name", &Part::name, "", 0, 0, "what it is called", kRequired},
      {"bytes", &Part::bytes, "", 0, 1e12, "its size"},
  };
  return table;
}

const Record<Section>& table() {
  using S = Section;
  static const Record<S> rows{
      {"steps", &S::steps, "steps", 1, 100, "how many"},
      {"rule", one_of<&S::rule>({"halve", "reset"}), "", 0, 0, "what to do"},
      {"from_s", &S::from, "s", 0, 100, "when it begins"},
      {"to_s", &S::to, "s", 0, 100, "when it ends"},
      {"restart_every", &S::restart_every, "", 1, 100, "when it begins anew"},
      {"limit", &S::limit, "", 1, 1e12, "at most"},
      {"note", &S::note, "", 0, 0, "for people"},
      {"busy",
       converted(
           &S::busy_milli, [](double share) { return static_cast<std::int32_t>(share * 1000); },
           [](std::int32_t milli) { return milli / 1000.0; }),
       "", 0, 16, "share of the card's time"},
      {"alpha", within(&S::loss, &Loss::alpha), "", 0, 10, "exponent"},
      {"part", object_of(&S::part, part_table()), "", 0, 0, "always there"},
      {"maybe", object_of(&S::maybe, part_table()), "", 0, 0, "there if it is given"},
      {"parts", list_of(&S::parts, part_table()), "", 0, 0, "any number"},
  };
  return rows;
}

std::vector<std::string> defaults() {
  std::vector<std::string> texts;
  for (const Field& field : table().fields) texts.push_back(default_text(field));
  return texts;
}

const FieldAccess& access_of(const std::string& key) {
  const std::vector<std::string> keys = keys_of(table().fields);
  return table().access.at(static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin()));
}

TEST(Record, DefaultsAreThoseOfTheSectionAndNoneOutsideTheRange) {
  EXPECT_THAT(defaults(), ElementsAre("10", "reset", "2.5", "", "", "", "", "1", "1.5", "", "", ""));
}

TEST(Record, ARequiredKeyHasNoDefault) {
  EXPECT_FALSE(part_table().fields.at(0).default_value);
  EXPECT_EQ(default_text(part_table().fields.at(1)), "30GiB");
}

TEST(Record, AMembersTypeIsItsKind) {
  std::vector<FieldKind> kinds;
  for (const Field& field : table().fields) kinds.push_back(field.kind);
  using K = FieldKind;
  EXPECT_THAT(kinds, ElementsAre(K::integer, K::choice, K::number, K::number, K::integer, K::size, K::text,
                                 K::number, K::number, K::object, K::object, K::list));
}

TEST(Record, StoresValuesWhereTheyAreKept) {
  Section section;
  access_of("steps").store(&section, std::int64_t{7});
  access_of("rule").store(&section, std::string{"halve"});
  access_of("to_s").store(&section, 1.5);
  access_of("limit").store(&section, std::int64_t{4096});
  access_of("busy").store(&section, 0.25);
  access_of("alpha").store(&section, 2.0);
  EXPECT_EQ(section.steps, 7);
  EXPECT_EQ(section.rule, Rule::halve);
  EXPECT_EQ(section.to, SimTime{1'500'000'000});
  EXPECT_EQ(section.limit, Bytes{4096});
  EXPECT_EQ(section.busy_milli, 250);
  EXPECT_EQ(section.loss.alpha, 2.0);
}

TEST(Record, EntersPartsAndMakesThoseThatAreNotThere) {
  Section section;
  EXPECT_EQ(access_of("part").enter(&section), &section.part);
  void* made = access_of("maybe").enter(&section);
  ASSERT_TRUE(section.maybe);
  EXPECT_EQ(made, &*section.maybe);
  access_of("parts").enter(&section);
  const void* second = access_of("parts").enter(&section);
  EXPECT_EQ(second, &section.parts.at(1));
  EXPECT_THAT(keys_of(table().fields.at(11).fields), ElementsAre("name", "bytes"));
}

TEST(Record, ValuesReadAsAFileWouldHaveThem) {
  EXPECT_EQ(shortest_text(0.1), "0.1");
  EXPECT_EQ(exact_size_text(0), "0");
  EXPECT_EQ(exact_size_text(1536), "1536");
  EXPECT_EQ(exact_size_text(1'610'612'736), "1536MiB");
}

}  // namespace
}  // namespace vramlab
