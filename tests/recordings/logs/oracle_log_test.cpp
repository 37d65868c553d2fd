#include "recordings/logs/oracle_log.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "recordings/scripts/recorded_program.hpp"

namespace vramlab {
namespace {

using testing::HasSubstr;

const std::string kHead =
    R"({"torch": "2.11.0", "device": "H100", "total_memory": 1000, "fraction": 0.5, "conf": "",)"
    R"( "keys": ["num_ooms"], "streams": [0, 7], "ops": [)";

std::string refusal(const std::string& text) {
  try {
    parse_oracle_log(text, "x.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

// The pointer 34 is two blocks, one after the other; the failed allocation is one that nothing frees, and
// nothing is freed at 90.
TEST(OracleProgram, NamesTheBlockOfAPointer) {
  const OracleLog log = parse_oracle_log(kHead + R"(["alloc", 12, 1, 34, [0]], ["alloc_t", 12, 0, 56, [0]],
                 ["free", 0, 0, 34, [0]], ["oom", 99, 0, 0, [1], "CUDA out of memory."],
                 ["alloc", 12, 0, 34, [1]], ["free_deferred", 0, 0, 56, [1]], ["free", 0, 0, 90, [1]],
                 ["free", 0, 0, 34, [1]]]})",
                                         "x.json");
  const OracleProgram written = oracle_program(log);
  std::vector<ProgramBlock> freed;
  for (const ClientAction& action : written.program.actions) {
    if (action.kind == ClientAction::Kind::free) freed.push_back(action.block);
  }
  EXPECT_EQ(freed, (std::vector<ProgramBlock>{0, 1, 3}));
  EXPECT_EQ(written.program.blocks, 4u);
  EXPECT_EQ(written.first_action, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 8, 8, 9}));
}

TEST(OracleLog, ReadsItsFields) {
  const OracleLog log =
      parse_oracle_log(kHead + R"(["alloc", 12, 1, 34, [5]], ["settings", 0, 0, "max_split_size_mb:32", [5]],
                 ["oom", 99, 0, 0, [6], "CUDA out of memory."]]})",
                       "x.json");
  EXPECT_EQ(log.total_memory, 1000u);
  EXPECT_EQ(log.fraction, 0.5);
  EXPECT_EQ(log.streams, (std::vector<StreamId>{0, 7}));
  ASSERT_EQ(log.operations.size(), 3u);
  EXPECT_EQ(log.operations[0].kind, "alloc");
  EXPECT_EQ(log.operations[0].bytes, 12u);
  EXPECT_EQ(log.operations[0].tag, 1);
  EXPECT_EQ(log.operations[0].pointer, 34u);
  EXPECT_EQ(log.operations[1].argument, "max_split_size_mb:32");
  EXPECT_EQ(log.operations[2].text, "CUDA out of memory.");
  EXPECT_EQ(log.operations[2].counters, std::vector<std::int64_t>{6});
}

TEST(OracleLog, SaysWhereItIsWrong) {
  EXPECT_THAT(refusal("{"), HasSubstr("x.json: byte 2: not valid JSON"));
  EXPECT_THAT(refusal("{}"), HasSubstr("x.json: /torch: is missing"));
  EXPECT_THAT(refusal(R"({"torch": 3})"), HasSubstr("/torch: found 3, needed is a text in quotes"));
  EXPECT_THAT(refusal(kHead + R"(["aloc", 1, 0, 0, [0]]]})"),
              HasSubstr("/ops/0/0: \"aloc\" is not a kind of operation. Did you mean \"alloc\"?"));
  EXPECT_THAT(refusal(kHead + R"(["alloc", 1, 0]]})"), HasSubstr("/ops/0: is not [kind"));
  EXPECT_THAT(refusal(kHead + R"(["alloc", 1, 0, 0, [0, 1]]]})"),
              HasSubstr("/ops/0/4: has 2 values for 1 keys"));
  EXPECT_THAT(refusal(kHead + R"(["alloc", -1, 0, 0, [0]]]})"), HasSubstr("/ops/0/1: found -1"));
  EXPECT_THAT(refusal(kHead + R"(["alloc", 1, 0, 1.5, [0]]]})"), HasSubstr("/ops/0/3: found 1.5"));
  EXPECT_THAT(refusal(kHead + R"(["alloc", "big", 0, 0, [0]]]})"), HasSubstr("/ops/0/1: found "));
}

}  // namespace
}  // namespace vramlab
